package server

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"hearth/internal/chat"
	"hearth/internal/wire/wiretest"
)

// A request that reached a model has its two lines, and what is known before the headers go out is in them.
func TestPerfLines(t *testing.T) {
	usage := chat.Usage{Prompt: 100, Cached: 90, Hit: "prefix", Common: 91, Parted: 3, Disk: 64, Spliced: 7, Queued: time.Second, Prefill: 2 * time.Second}
	end := usage
	end.Output, end.Decode = 5, 4*time.Second
	var lines bytes.Buffer
	o := options()
	o.Perf, o.PeakMemory = &lines, func() int64 { return 2e9 }
	o.Models = wiretest.New(
		wiretest.Step{Event: chat.Event{Kind: chat.EventStart, Usage: &usage}},
		wiretest.Step{Event: chat.Event{Kind: chat.EventText, Text: "hi"}},
		wiretest.Step{Event: chat.Event{Kind: chat.EventFinish, Finish: chat.FinishLength, Usage: &end}})
	s := New(o)
	stream := messages[:len(messages)-1] + `,"stream":true}`
	for _, body := range []string{messages, stream} {
		lines.Reset()
		w := do(s, "POST", "/v1/messages", body, "X-Session-Id: chat-7")
		if got, want := w.Header().Get("X-Hearth-Cache"), "prefix; cached=90; computed=10; common=91; message=2; disk=64"; got != want {
			t.Errorf("header %q, want %q", got, want)
		}
		want := regexp.MustCompile(`^\[cache\] request=req_\w+ session=chat-7 hit=true reason=prefix cached_tokens=90 rest_tokens=10 common_tokens=91 message=2 spliced_tokens=7
\[perf\] \{"request":"req_\w+","input_tokens":100,"output_tokens":5,"cached_tokens":90,"rest_tokens":10,"prompt_tps":5,"generation_tps":1,"peak_memory_gb":2,"ttft_s":[\d.e-]+,"queue_s":1,"wall_s":[\d.e-]+,"tool_calls":0,"thinking":false,"prompt_cache":"prefix","finish":"length"\}
$`)
		if !want.Match(lines.Bytes()) {
			t.Errorf("lines %s", lines.String())
		}
	}
	lines.Reset()
	do(s, "GET", "/health", "")
	if lines.Len() > 0 {
		t.Errorf("a request without a model: %s", lines.String())
	}
}

// The text around the place of parting goes to the caller, in ASCII whatever it is, and into the log only where that is asked
// for.
func TestParting(t *testing.T) {
	usage := chat.Usage{Prompt: 9, Hit: "lcp", Common: 3, Around: [2]string{"a \"b\"\r\nX: y", "\x00é日\U0001F600\xff\x7f"}}
	const shown = `"a \"b\"\r\nX: y" "\x00\u00e9\u65e5\U0001f600\xff\x7f"`
	for _, logged := range []bool{false, true} {
		for _, around := range []bool{true, false} {
			u := usage
			want := shown
			if !around {
				u.Around, want = [2]string{}, ""
			}
			var lines bytes.Buffer
			o := options()
			o.Perf, o.LogPrompts = &lines, logged
			o.Models = wiretest.New(
				wiretest.Step{Event: chat.Event{Kind: chat.EventStart, Usage: &u}},
				wiretest.Step{Event: chat.Event{Kind: chat.EventText, Text: "hi"}},
				wiretest.Step{Event: chat.Event{Kind: chat.EventFinish, Finish: chat.FinishStop, Usage: &u}})
			s := New(o)
			for _, body := range []string{messages, messages[:len(messages)-1] + `,"stream":true}`} {
				lines.Reset()
				if got := do(s, "POST", "/v1/messages", body).Header().Get("X-Hearth-Parting"); got != want {
					t.Errorf("header %s, want %s", got, want)
				}
				first, _, _ := strings.Cut(lines.String(), "\n")
				if has := strings.HasSuffix(first, "spliced_tokens=0 parting="+shown); has != (logged && around) || strings.Contains(first, "parting=") != has {
					t.Errorf("logged %t, text %t: line %s", logged, around, first)
				}
			}
		}
	}
}

// A reply says when its prompt has tokens as they were generated, and a request can ask for a prompt without: on every API,
// streamed or not.
func TestHistoryHeader(t *testing.T) {
	const plain = `{"model":"test-model","messages":[{"role":"user","content":"Hi"}],"max_tokens":5`
	for want, usage := range map[string]chat.Usage{"": {Prompt: 9}, "exact; spliced=7": {Prompt: 9, Spliced: 7}, "exact; spliced=0; reasoning=2": {Prompt: 9, Replayed: 2}} {
		o := options()
		models := wiretest.New(
			wiretest.Step{Event: chat.Event{Kind: chat.EventStart, Usage: &usage}},
			wiretest.Step{Event: chat.Event{Kind: chat.EventText, Text: "hi"}},
			wiretest.Step{Event: chat.Event{Kind: chat.EventFinish, Finish: chat.FinishStop, Usage: &usage}})
		var last *chat.Request
		models.Got = func(r *chat.Request) { last = r }
		o.Models = models
		s := New(o)
		for _, path := range []string{"/v1/messages", "/v1/chat/completions", "/v1/completions"} {
			body := plain
			if path == "/v1/completions" {
				body = `{"model":"test-model","prompt":"Hi","max_tokens":5`
			}
			for _, end := range []string{`}`, `,"stream":true}`} {
				for asked, code := range map[string]int{"": 200, "exact": 200, "text": 200, "plain": 400} {
					var header []string
					if asked != "" {
						header = []string{"X-Hearth-History: " + asked}
					}
					w := do(s, "POST", path, body+end, header...)
					if w.Code != code {
						t.Errorf("%s, %q: %d %s", path, asked, w.Code, w.Body)
					}
					if code == 400 {
						if !strings.Contains(w.Body.String(), `must be exact or text, got \"plain\"`) {
							t.Errorf("%s: %s", path, w.Body)
						}
						continue
					}
					if got := last.PlainHistory; got != (asked == "text") {
						t.Errorf("%s, %q: plain is %v", path, asked, got)
					}
					if got := w.Header().Get("X-Hearth-History"); got != want {
						t.Errorf("%s%s: header %q, want %q", path, end, got, want)
					}
				}
			}
		}
		w := do(s, "POST", "/v1/messages/count_tokens", plain[:strings.LastIndexByte(plain, ',')]+"}", "X-Hearth-History: text")
		if w.Code != 200 || !last.PlainHistory {
			t.Errorf("counting: %d %s", w.Code, w.Body)
		}
	}
}
