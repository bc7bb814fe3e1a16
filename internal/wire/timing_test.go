package wire_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"hearth/internal/chat"
	"hearth/internal/wire"
	"hearth/internal/wire/openai"
	"hearth/internal/wire/wiretest"
)

// TestServerTiming: a document has all of it before the body, a stream what is known before and all of it behind.
func TestServerTiming(t *testing.T) {
	start := &chat.Usage{Prompt: 3, Hit: "miss", Queued: 1500 * time.Microsecond, Waited: "slot"}
	end := *start
	end.Output, end.Prefill, end.Decode = 2, 20*time.Millisecond, 3*time.Millisecond
	m := wiretest.New(wiretest.Step{Event: chat.Event{Kind: chat.EventStart, Usage: start}}, wiretest.Step{Event: chat.Event{Kind: chat.EventText, Text: "a"}},
		wiretest.Step{Event: chat.Event{Kind: chat.EventFinish, Finish: chat.FinishStop, Usage: &end}})
	mux := http.NewServeMux()
	openai.Protocol{}.Mount(mux, wire.Options{Models: m}.WithDefaults())
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r.WithContext(wire.WithInfo(r.Context(), &wire.Info{Began: time.Now()})))
	}))
	defer srv.Close()
	const begins = `^load;dur=[\d.]+, prompt;dur=[\d.]+, queue;dur=1.5;desc="slot"`
	const all = begins + `, prefill;dur=20, decode;dur=3, total;dur=[\d.]+$`
	for stream, want := range map[string][2]string{"false": {all, "^$"}, "true": {begins + "$", all}} {
		r, err := http.Post(srv.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"stream":`+stream+`,"messages":[{"role":"user","content":"Hi"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		for i, got := range []string{r.Header.Get(wire.TimingHeader), r.Trailer.Get(wire.TimingHeader)} {
			if !regexp.MustCompile(want[i]).MatchString(got) {
				t.Errorf("stream %s: %q, want %s", stream, got, want[i])
			}
		}
	}
}
