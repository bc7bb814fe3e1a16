package server

import (
	"context"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/wire/wiretest"
)

// crowd is a generator whose replies go on only when all of them have begun. One for a message that says so has no end.
type crowd struct {
	*wiretest.Generator
	begun   sync.WaitGroup
	endless sync.WaitGroup
}

func (c *crowd) Open(context.Context, string) (chat.Generator, error) { return c, nil }

func (c *crowd) Generate(ctx context.Context, r *chat.Request) (iter.Seq2[chat.Event, error], error) {
	if r.Messages[0].Text() == "endless" {
		return func(yield func(chat.Event, error) bool) {
			defer c.endless.Done()
			more := chat.Event{Kind: chat.EventText, Text: strings.Repeat("x", 1<<16)}
			for ctx.Err() == nil && yield(more, nil) {
			}
		}, nil
	}
	return func(yield func(chat.Event, error) bool) {
		if !yield(chat.Event{Kind: chat.EventText, Text: "0"}, nil) {
			return
		}
		c.begun.Done()
		c.begun.Wait()
		for range 50 {
			if !yield(chat.Event{Kind: chat.EventText, Text: "1"}, nil) {
				return
			}
		}
		yield(chat.Event{Kind: chat.EventFinish, Finish: chat.FinishStop}, nil)
	}, nil
}

// TestCrowd: many streams at once come to their ends, whatever others do not read; those end with their connections.
func TestCrowd(t *testing.T) {
	const streams, unread = 200, 20
	c := &crowd{Generator: wiretest.New()}
	c.begun.Add(streams)
	c.endless.Add(unread)
	o := options()
	o.Models = c
	addr, stop := serve(t, o)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	open := func(ctx context.Context, i int, text string) (*http.Response, error) {
		path := []string{"/v1/chat/completions", "/v1/messages"}[i%2]
		body := `{"stream": true, "messages": [{"role": "user", "content": "` + text + `"}]}`
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, addr+path, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/json")
		return client.Do(r)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for i := range unread {
		res, err := open(ctx, i, "endless")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
	}
	var wg sync.WaitGroup
	for i := range streams {
		wg.Go(func() {
			res, err := open(t.Context(), i, "Hi")
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if n := strings.Count(string(body), `"1"`); n != 50 || err != nil {
				t.Errorf("stream %d: %d tokens, %v", i, n, err)
			}
		})
	}
	wg.Wait()
	leave()
	c.endless.Wait()
	if err := stop(); err != nil {
		t.Error(err)
	}
}
