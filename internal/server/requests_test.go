package server

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/wire/wiretest"
)

// A request is cancelled by its id, by whoever made it or an operator; to others there is no such request. It ends at once with
// an error of its protocol, which no client tries again, and nothing of it stays.
func TestCancel(t *testing.T) {
	started, ended := make(chan string, 1), make(chan error, 1)
	gen := wiretest.New()
	gen.Script = func(r *chat.Request) ([]wiretest.Step, error) {
		steps := wiretest.Hello(1)
		steps[1].Before = func(ctx context.Context) {
			started <- r.Origin.ID
			<-ctx.Done()
			ended <- context.Cause(ctx)
		}
		return steps, nil
	}
	o := options()
	o.Models, o.Keys = gen, named("alice", "bob", "OP")
	s := New(o)
	for _, tc := range []struct{ path, body, way, who, want string }{
		{"/v1/messages", messages, "POST /v1/requests/%/cancel", "alice", `{"type":"error","error":{"type":"invalid_request_error","message":"the request was cancelled"`},
		{"/v1/messages", messages, "DELETE /v1/requests/%", "OP", `{"type":"error","error":{"type":"invalid_request_error","message":"the request was cancelled"`},
		{"/v1/chat/completions", messages, "POST /requests/%/cancel/", "alice", `"message":"the request was cancelled"`},
		{"/v1/chat/completions", `{"stream":true,` + messages[1:], "DELETE /requests/%", "alice", `"message":"the request was cancelled"`},
	} {
		reply := make(chan *httptest.ResponseRecorder)
		go func() { reply <- do(s, "POST", tc.path, tc.body, "X-Api-Key: key-alice") }()
		id := <-started
		method, path, _ := strings.Cut(strings.ReplaceAll(tc.way, "%", id), " ")
		stranger, unknown := do(s, method, path, "", "X-Api-Key: key-bob"), do(s, method, strings.ReplaceAll(path, id, "req_none"), "", "X-Api-Key: key-bob")
		if stranger.Code != 404 || strings.ReplaceAll(stranger.Body.String(), id, "") != strings.ReplaceAll(unknown.Body.String(), "req_none", "") {
			t.Errorf("%s of another: %d %s, of none: %s", tc.way, stranger.Code, stranger.Body, unknown.Body)
		}
		if len(ended) > 0 {
			t.Fatalf("%s: another ended it", tc.way)
		}
		if w := do(s, method, path, "", "X-Api-Key: key-"+tc.who); w.Code != 200 || w.Body.String() != `{"id":"`+id+`","status":"cancelled"}`+"\n" {
			t.Errorf("%s: %d %s", tc.way, w.Code, w.Body)
		}
		if err := <-ended; !errors.Is(err, errCancelled) {
			t.Errorf("%s: the model was told %v", tc.way, err)
		}
		w := <-reply
		stream := strings.Contains(tc.body, "stream")
		if !strings.Contains(w.Body.String(), tc.want) || !stream && (w.Code != 400 || w.Header().Get("X-Should-Retry") != "false") {
			t.Errorf("%s: %d %s", tc.way, w.Code, w.Body)
		}
		if w := do(s, method, path, "", "X-Api-Key: key-alice"); w.Code != 404 {
			t.Errorf("%s again: %d %s", tc.way, w.Code, w.Body)
		}
	}
	if len(s.requests.of) > 0 {
		t.Errorf("%d are left", len(s.requests.of))
	}
}

// sleepers are models that load for ever.
type sleepers struct {
	chat.Models
	chat.Encoders
	started chan struct{}
}

func (w sleepers) Open(ctx context.Context, _ string) (chat.Generator, error) {
	w.started <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (w sleepers) OpenEmbedder(ctx context.Context, name string) (chat.Embedder, error) {
	_, err := w.Open(ctx, name)
	return nil, err
}

// What waits for its model is cancelled too, whatever it asks for.
func TestCancelWhileLoading(t *testing.T) {
	for path, body := range map[string]string{"/v1/messages": messages, "/v1/messages/count_tokens": messages, "/v1/embeddings": `{"input":"Hi"}`} {
		w := sleepers{started: make(chan struct{})}
		o := options()
		o.Models, o.Encoders = w, w
		s := New(o)
		reply := make(chan *httptest.ResponseRecorder)
		go func() { reply <- do(s, "POST", path, body) }()
		<-w.started
		s.requests.mu.Lock()
		var id string
		for id = range s.requests.of {
		}
		s.requests.mu.Unlock()
		if w := do(s, "DELETE", "/v1/requests/"+id, ""); w.Code != 200 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		if r := <-reply; r.Code != 400 || !strings.Contains(r.Body.String(), "the request was cancelled") {
			t.Errorf("%s: %d %s", path, r.Code, r.Body)
		}
	}
}
