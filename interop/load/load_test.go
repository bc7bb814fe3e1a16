//go:build unix

// Package load measures what hearth's HTTP front adds to a model's tokens: a child process serves a stub in the model's place
// and this one is its clients: `make load TIME=10s`. It is only a test, run by hand; results stand in docs/benchmarks.md.
package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	measure = flag.Bool("measure", false, "measure; without it the test is skipped")
	length  = flag.Duration("for", 10*time.Second, "length of each measurement")
	child   = flag.Bool("child", false, "be the server")
	steps   = flag.Float64("steps", 0, "of the server: tokens per second and stream")
	gather  = flag.Int("interval", 0, "of the server: tokens per chunk")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *child {
		if err := runServer(*steps, *gather); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// front is a running server and its clients' side.
type front struct {
	url, own string
	client   *http.Client
}

// start runs a server until the test ends.
func start(t *testing.T, steps float64, interval int) *front {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-child", "-steps", fmt.Sprint(steps), "-interval", strconv.Itoa(interval))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f := &front{client: &http.Client{Transport: &http.Transport{DisableCompression: true}}}
	t.Cleanup(func() {
		f.client.CloseIdleConnections()
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the server printed no address: %v", err)
	}
	f.url, f.own, _ = strings.Cut(strings.TrimSpace(line), " ")
	return f
}

func (f *front) usage(t *testing.T, path string) (u usage) {
	t.Helper()
	res, err := http.Get(f.own + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&u); err != nil {
		t.Fatal(err)
	}
	return u
}

// api is a protocol as its clients see it.
type api struct{ name, path, text string }

var apis = []api{
	{"chat", "/v1/chat/completions", `"content":"`},
	{"messages", "/v1/messages", `"text_delta","text":"`},
	{"net/http alone", barePath, `"content":"`},
}

// barePath is served without hearth.
const barePath = "/bare"

// open begins a stream without an end, whose tokens have so many spaces before them.
func (f *front) open(ctx context.Context, a api, spaces int) (*http.Response, error) {
	body := fmt.Sprintf(`{"stream": true, "messages": [{"role": "user", "content": "%d"}]}`, spaces)
	base := f.url
	if a.path == barePath {
		base = f.own
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+a.path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := f.client.Do(r)
	if err == nil && res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return nil, fmt.Errorf("status %d: %s", res.StatusCode, text)
	}
	return res, err
}

// read takes tokens until the stream or ctx ends, a chunk's at a time, and says of each how long it was under way.
func read(ctx context.Context, a api, body io.Reader, each func(time.Duration)) error {
	lines := bufio.NewReaderSize(body, 1<<16)
	marker := []byte(a.text)
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case ctx.Err() != nil || errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		_, text, _ := bytes.Cut(line, marker)
		text, _, _ = bytes.Cut(text, []byte(`"`))
		for made := range bytes.FieldsSeq(text) {
			at, err := strconv.ParseInt(string(made), 10, 64)
			if err != nil {
				return fmt.Errorf("not a time: %s", line)
			}
			each(time.Duration(time.Now().UnixNano() - at))
		}
	}
}

// measured is what one load came to.
type measured struct {
	took, cpu     time.Duration
	before, while usage
	under         []time.Duration // sorted: of every token, from where it was made to its reader
}

// load reads so many streams, and opens so many that nobody reads, for so long after each of the former had its first token and
// the others are stuck.
func (f *front) load(t *testing.T, a api, streams, unread int, long time.Duration) *measured {
	t.Helper()
	m := &measured{before: f.usage(t, "/free")}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for range unread {
		wg.Go(func() {
			res, err := f.open(ctx, a, 1<<16)
			if err != nil {
				t.Errorf("unread stream: %v", err)
				return
			}
			<-ctx.Done()
			res.Body.Close()
		})
	}
	var mu sync.Mutex
	var counts atomic.Bool
	begun := make(chan struct{}, streams)
	for range streams {
		wg.Go(func() {
			var under []time.Duration
			seen := false
			res, err := f.open(ctx, a, 1)
			if err == nil {
				defer res.Body.Close()
				err = read(ctx, a, res.Body, func(d time.Duration) {
					if !seen {
						seen = true
						begun <- struct{}{}
					}
					if counts.Load() {
						under = append(under, d)
					}
				})
			}
			if err != nil && ctx.Err() == nil {
				t.Errorf("stream: %v", err)
				cancel()
			}
			mu.Lock()
			defer mu.Unlock()
			m.under = append(m.under, under...)
		})
	}
	for range streams {
		select {
		case <-begun:
		case <-ctx.Done():
			wg.Wait()
			t.FailNow()
		}
	}
	for f.usage(t, "/").Behind < unread && ctx.Err() == nil {
		<-time.After(100 * time.Millisecond)
	}
	counts.Store(true)
	start, cpu := time.Now(), f.usage(t, "/").CPU
	<-time.After(long)
	m.cpu, m.took = f.usage(t, "/").CPU-cpu, time.Since(start)
	counts.Store(false)
	m.while = f.usage(t, "/free")
	cancel()
	wg.Wait()
	slices.Sort(m.under)
	if len(m.under) == 0 {
		t.Fatal("no tokens came")
	}
	return m
}

// at is how long the given share of the tokens was under way at most.
func (m *measured) at(share float64) time.Duration {
	return m.under[min(int(share*float64(len(m.under))), len(m.under)-1)]
}

// perToken is the server's processor time for one token.
func (m *measured) perToken() time.Duration { return m.cpu / time.Duration(len(m.under)) }

const maxPerToken = 20 * time.Microsecond

// TestLoad prints a table.
func TestLoad(t *testing.T) {
	if !*measure {
		t.Skip("run by hand: make load")
	}
	fmt.Println("| API | streams | tokens/s each | tokens per chunk | never read | tokens/s | CPU per token | p50 | p99 | most | MB before | MB | KB per stream |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	chat, messages, bare := apis[0], apis[1], apis[2]
	for _, tt := range []struct {
		api             api
		streams, unread int
		steps           float64 // 0: as fast as it goes
		interval        int
	}{
		{bare, 64, 0, 50, 1}, {chat, 64, 0, 50, 1}, {messages, 64, 0, 50, 1}, {chat, 64, 0, 50, 8}, {messages, 64, 0, 50, 8},
		{bare, 64, 0, 0, 1}, {chat, 64, 0, 0, 1}, {messages, 64, 0, 0, 1},
		{bare, 1000, 0, 5, 1}, {chat, 1000, 0, 5, 1}, {chat, 1000, 50, 5, 1},
	} {
		rate := "free"
		if tt.steps > 0 {
			rate = fmt.Sprint(tt.steps)
		}
		t.Run(fmt.Sprintf("%s-%d-%s-%d-%d", tt.api.name, tt.streams, rate, tt.interval, tt.unread), func(t *testing.T) {
			f := start(t, tt.steps, tt.interval)
			m := f.load(t, tt.api, tt.streams, tt.unread, *length)
			fmt.Printf("| %s | %d | %s | %d | %d | %.0f | %.1f µs | %.2f ms | %.2f ms | %.2f ms | %.1f | %.1f | %.0f |\n", tt.api.name, tt.streams, rate, tt.interval, tt.unread,
				float64(len(m.under))/m.took.Seconds(), float64(m.perToken().Nanoseconds())/1e3, ms(m.at(0.5)), ms(m.at(0.99)), ms(m.at(1)),
				mb(m.before.Resident), mb(m.while.Resident), float64(m.while.Resident-m.before.Resident)/1024/float64(tt.streams+tt.unread))
			if tt.streams == 64 && m.perToken() > maxPerToken {
				t.Errorf("%v of processor time per token, which may take %v", m.perToken(), maxPerToken)
			}
		})
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
func mb(bytes int64) float64     { return float64(bytes) / (1 << 20) }
