// Package soak keeps a running hearth under mixed load for as long as it is told: `make soak TIME=10m`. It is only a
// test, run by hand; its results stand in docs/benchmarks.md.
package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hearth/interop/program"
)

var (
	length  = flag.Duration("soak", 0, "how long to keep the server busy; 0 skips the test")
	binary  = flag.String("hearth", "", "the hearth binary under test")
	workers = flag.Int("workers", 8, "clients at once")
)

// counts is what the clients saw.
type counts struct{ plain, streamed, left, refused, tokens atomic.Int64 }

// TestSoak: no failure of the server's own, no lost reply, and memory that has stopped growing by the second half.
func TestSoak(t *testing.T) {
	if *length == 0 {
		t.Skip("run by hand: make soak TIME=10m")
	}
	url, pid := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), *length)
	defer cancel()
	var n counts
	var wg sync.WaitGroup
	failures := make(chan error, *workers)
	for w := range *workers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			for ctx.Err() == nil {
				if err := one(ctx, r, url, &n); err != nil && ctx.Err() == nil {
					failures <- fmt.Errorf("client %d: %w", w, err)
					cancel()
				}
			}
		})
	}
	var early, late int64
	half := time.Now().Add(*length / 2)
	for tick := time.NewTicker(*length / 40); ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-tick.C:
			kb := resident(t, pid)
			if time.Now().Before(half) {
				early = max(early, kb)
			} else {
				late = max(late, kb)
			}
			fmt.Printf("%d plain, %d streamed, %d left early, %d refused, %d tokens, %d MB\n",
				n.plain.Load(), n.streamed.Load(), n.left.Load(), n.refused.Load(), n.tokens.Load(), kb>>10)
		}
	}
	wg.Wait()
	select {
	case err := <-failures:
		t.Error(err)
	default:
	}
	if n.plain.Load() == 0 || n.streamed.Load() == 0 || n.left.Load() == 0 || n.refused.Load() == 0 {
		t.Error("some kind of request never happened")
	}
	if late > early+early/10+20<<10 {
		t.Errorf("memory grew from %d MB in the first half to %d MB in the second", early>>10, late>>10)
	}
}

// start runs hearth serve on a free port until the test ends.
func start(t *testing.T) (url string, pid int) {
	t.Helper()
	// A small budget is full within seconds: what grows after that is a leak and not the prefix cache.
	s := program.Serve(t, *binary, nil, os.Stderr, "--log-level", "error", "--cache-memory-mb", "64", "--prefix-cache-dir", "off")
	return s.URL, s.PID
}

var prompts = []string{
	"Hello!", "Who are you?", "What is 12 + 30?", "Which port does hearth use?", "Repeat after me: the moon looks bright",
	"Name three colors.", "日本語で答えて", strings.Repeat("the same words again and again ", 150), "\x00\x01 \u202e odd \U0001F600",
}

// one sends one request of a random kind and checks that the reply is whole.
func one(ctx context.Context, r *rand.Rand, url string, n *counts) error {
	anthropic, stream := r.IntN(2) == 0, r.IntN(2) == 0
	body := map[string]any{
		"messages":    []any{map[string]any{"role": "user", "content": prompts[r.IntN(len(prompts))]}},
		"max_tokens":  1 + r.IntN(80),
		"temperature": r.Float64(),
		"stream":      stream,
	}
	bad := r.IntN(12) == 0
	if bad {
		body["messages"] = []any{map[string]any{"role": "nobody", "content": 1}}
	}
	path := "/v1/chat/completions"
	if anthropic {
		path = "/v1/messages"
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	switch {
	case bad:
		if res.StatusCode != http.StatusBadRequest {
			return fmt.Errorf("bad request got %s", res.Status)
		}
		n.refused.Add(1)
		return nil
	case res.StatusCode != http.StatusOK:
		text, _ := io.ReadAll(res.Body)
		return fmt.Errorf("%s: %s", res.Status, text)
	case !stream:
		n.plain.Add(1)
		return plain(res.Body, n)
	case r.IntN(5) == 0:
		n.left.Add(1)
		_, _ = io.CopyN(io.Discard, res.Body, int64(r.IntN(2000)))
		return nil
	}
	n.streamed.Add(1)
	return streamed(res.Body, anthropic)
}

// plain checks a whole reply of either protocol.
func plain(body io.Reader, n *counts) error {
	var reply struct {
		Usage struct {
			Output     int64 `json:"output_tokens"`
			Completion int64 `json:"completion_tokens"`
		} `json:"usage"`
	}
	if err := json.NewDecoder(body).Decode(&reply); err != nil {
		return err
	}
	if reply.Usage.Output+reply.Usage.Completion == 0 {
		return errors.New("a reply without output tokens")
	}
	n.tokens.Add(reply.Usage.Output + reply.Usage.Completion)
	return nil
}

// streamed checks that a stream ends the way its protocol says.
func streamed(body io.Reader, anthropic bool) error {
	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	end := "data: [DONE]"
	if anthropic {
		end = "event: message_stop"
	}
	if !bytes.Contains(raw, []byte(end)) {
		return fmt.Errorf("stream without %q: %s", end, raw)
	}
	return nil
}

// resident is the memory of a process in KiB; 0 where the system does not tell.
func resident(t *testing.T, pid int) int64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), "VmRSS:")
	f := strings.Fields(rest)
	if len(f) == 0 {
		return 0
	}
	kb, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb
}
