// Package soak keeps a running hearth under mixed load for as long as it is told: `make soak TIME=10m`. It is only a
// test, run by hand; its results stand in docs/benchmarks.md.
package soak

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hearth/interop/program"
)

var (
	length  = flag.Duration("soak", 0, "how long to keep the server busy; 0 skips the test")
	binary  = flag.String("hearth", "", "the hearth binary under test")
	workers = flag.Int("workers", 64, "clients at once")
)

// TestSoak: every answer is the one that its request got alone, nothing is lost, and when all is quiet again the server holds as
// many goroutines and descriptors as before, and no more memory than after the first quarter.
func TestSoak(t *testing.T) {
	if *length == 0 {
		t.Skip("run by hand: make soak TIME=10m")
	}
	all := corpus()
	want := oracle(t, all)
	// A small budget is full within seconds: what grows after that is a leak and not the prefix cache.
	s := program.Serve(t, *binary, nil, os.Stderr, "--log-level", "error", "--cache-memory-mb", "64", "--prefix-cache-dir", "off",
		"--store-dir", t.TempDir(), "--enable-metrics")
	c := newClients(s.URL, all, want)
	for i := range all { // what is made once is made before anything is counted
		if err := c.check(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	before := c.held(t, s.PID)

	ctx, cancel := context.WithTimeout(t.Context(), *length)
	defer cancel()
	var wg sync.WaitGroup
	for w := range *workers {
		wg.Go(func() {
			for r := rand.New(rand.NewPCG(1, uint64(w))); ctx.Err() == nil; {
				if err := c.one(ctx, r); err != nil {
					cancel()
				}
			}
		})
	}
	var quarters [4]int64
	began := time.Now()
	for tick := time.NewTicker(*length / 60); ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-tick.C:
			kb := resident(t, s.PID)
			q := min(int(4*time.Since(began) / *length), 3)
			quarters[q] = max(quarters[q], kb)
			fmt.Printf("%v: %s, %d MB\n", time.Since(began).Round(time.Second), c, kb>>10)
		}
	}
	wg.Wait()
	for _, err := range c.wrong {
		t.Error(err)
	}
	if c.right == 0 || c.left == 0 || c.cancelled == 0 || c.refused == 0 {
		t.Errorf("some kind of request never happened: %s", c)
	}
	slices.Sort(c.first)
	if n := len(c.first); n > 0 {
		fmt.Printf("time to the first token of %d streams: p50 %v, p99 %v, longest %v\n", n, c.first[n/2], c.first[n*99/100], c.first[n-1])
	}
	after := c.held(t, s.PID)
	for end := time.Now().Add(time.Minute); (after.goroutines > before.goroutines || after.descriptors > before.descriptors) && time.Now().Before(end); {
		after = c.held(t, s.PID) // what clients left ends within the server's own limits
	}
	fmt.Printf("when quiet: %d goroutines, then %d; %d descriptors, then %d; memory by quarter in MB: %d %d %d %d\n", before.goroutines, after.goroutines,
		before.descriptors, after.descriptors, quarters[0]>>10, quarters[1]>>10, quarters[2]>>10, quarters[3]>>10)
	if after.goroutines > before.goroutines || after.descriptors > before.descriptors {
		t.Error("something is left of what has ended")
	}
	if late := quarters[3]; late > quarters[0]+quarters[0]/20 {
		t.Errorf("memory grew from %d MB in the first quarter to %d MB in the last", quarters[0]>>10, late>>10)
	}
}

// oracle is what each request is answered alone, by a server without a cache.
func oracle(t *testing.T, all []request) []string {
	t.Helper()
	s := program.Serve(t, *binary, nil, os.Stderr, "--log-level", "error", "--cache-memory-mb", "64", "--prompt-cache=false", "--store-dir", t.TempDir())
	defer s.Stop()
	c := newClients(s.URL, all, nil)
	want := make([]string, len(all))
	for i := range all {
		text, _, err := c.ask(t.Context(), &all[i])
		if err != nil {
			t.Fatalf("%s, alone: %v", all[i].name, err)
		}
		want[i] = text
	}
	return want
}

// clients are those that ask, and what they saw.
type clients struct {
	url  string
	all  []request
	want []string
	http *http.Client

	mu                              sync.Mutex
	right, left, cancelled, refused int
	wrong                           []error
	first                           []time.Duration
}

func newClients(url string, all []request, want []string) *clients {
	return &clients{url: url, all: all, want: want, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * *workers}}}
}

func (c *clients) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("%d right, %d refused as they should, %d left, %d cancelled, %d wrong", c.right, c.refused, c.left, c.cancelled, len(c.wrong))
}

// count notes something that all clients share.
func (c *clients) count(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// one sends a request of the corpus. Of the streams some clients go away from, and some are cancelled by their id.
func (c *clients) one(ctx context.Context, r *rand.Rand) error {
	i := r.IntN(len(c.all))
	if c.all[i].stream && r.IntN(6) == 0 {
		return c.leave(ctx, &c.all[i], r)
	}
	return c.check(ctx, i)
}

// check asks, and holds the answer to that of the oracle.
func (c *clients) check(ctx context.Context, i int) error {
	r := &c.all[i]
	got, first, err := c.ask(ctx, r)
	if ctx.Err() != nil {
		return nil
	}
	if err == nil && got != c.want[i] {
		err = fmt.Errorf("answered\n%s\nalone\n%s", got, c.want[i])
	}
	c.count(func() {
		switch {
		case err != nil:
			err = fmt.Errorf("%s: %w", r.name, err)
			c.wrong = append(c.wrong, err)
		case r.status != http.StatusOK:
			c.refused++
		default:
			c.right++
			if r.stream {
				c.first = append(c.first, first)
			}
		}
	})
	return err
}

// leave reads some of a stream and goes away, by itself or after it had the request cancelled.
func (c *clients) leave(ctx context.Context, r *request, rnd *rand.Rand) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	res, err := c.send(ctx, r)
	if err != nil {
		return nil // the run has ended
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, int64(rnd.IntN(2000)))
	if rnd.IntN(2) == 0 {
		c.count(func() { c.left++ })
		return nil
	}
	id := cmp.Or(res.Header.Get("X-Request-Id"), res.Header.Get("Request-Id"))
	ended, err := c.http.Post(c.url+"/v1/requests/"+id+"/cancel", "application/json", nil)
	if err != nil {
		return err
	}
	defer ended.Body.Close()
	if ended.StatusCode != http.StatusOK && ended.StatusCode != http.StatusNotFound { // it may have ended by itself
		err = fmt.Errorf("%s: cancelling it: %s", r.name, ended.Status)
		c.count(func() { c.wrong = append(c.wrong, err) })
		return err
	}
	_, _ = io.Copy(io.Discard, res.Body)
	c.count(func() { c.cancelled++ })
	return nil
}

func (c *clients) send(ctx context.Context, r *request) (*http.Response, error) {
	raw, err := json.Marshal(r.body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+r.path, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return c.http.Do(req)
}

// ask returns the folded answer, and when the first token of a stream came.
func (c *clients) ask(ctx context.Context, r *request) (text string, first time.Duration, err error) {
	began := time.Now()
	res, err := c.send(ctx, r)
	if err != nil {
		return "", 0, err
	}
	defer res.Body.Close()
	var raw bytes.Buffer
	buf := make([]byte, 4096)
	for err == nil {
		var n int
		n, err = res.Body.Read(buf)
		raw.Write(buf[:n])
		if first == 0 && r.stream && hasToken(raw.Bytes()) {
			first = time.Since(began)
		}
	}
	if !errors.Is(err, io.EOF) {
		return "", 0, err
	}
	if res.StatusCode != r.status {
		return "", 0, fmt.Errorf("%s, want %d: %.300s", res.Status, r.status, raw.Bytes())
	}
	text, err = fold(raw.Bytes(), r.stream)
	return text, first, err
}

// hasToken reports a stream in which something of the answer has come.
func hasToken(raw []byte) bool {
	for _, mark := range []string{`_delta"`, `.delta"`, `"content":"`, `"text":"`, `"tool_calls"`} {
		if bytes.Contains(raw, []byte(mark)) {
			return true
		}
	}
	return false
}

// held is what a server holds that nobody asks for anything.
type held struct{ goroutines, descriptors int }

func (c *clients) held(t *testing.T, pid int) (h held) {
	t.Helper()
	c.http.CloseIdleConnections()
	res, err := http.Get(c.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\ngo_goroutines ")
	if h.goroutines, err = strconv.Atoi(strings.TrimSpace(rest[:max(strings.Index(rest, "\n"), 0)])); !ok || err != nil {
		t.Fatalf("no count of goroutines in /metrics: %v", err)
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	h.descriptors = len(files)
	return h
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
