//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/hub"
	"hearth/internal/remote"
)

var kills = flag.Int("kills", 5, "how often TestKill kills the model's process")

// victim is a server in this process whose model runs in another one.
type victim struct {
	url    string
	engine *remote.Engine
	back   chan struct{} // gets one whenever the model is back
	client *http.Client

	tokens atomic.Int64  // events of all streams
	target atomic.Int64  // 0: none
	hit    chan struct{} // gets one when tokens reach target, which is then none

	whole, cut, refused atomic.Int64
}

func newVictim(t *testing.T, delay time.Duration) *victim {
	t.Helper()
	v := &victim{back: make(chan struct{}, 1), hit: make(chan struct{}, 1), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	cfg := config.Default()
	cfg.ModelProcess, cfg.CacheMemoryMB, cfg.Threads = "always", 64, 1
	think := true // or Messages, unlike Chat, would not think of replies this short
	cfg.EnableThinking = &think
	src, err := catalog.Find("demo", hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	models := catalog.New(src, cfg)
	bs := withWorkers(cfg, slog.New(slog.DiscardHandler), io.Discard)
	bs.Workers.Command = func() (*exec.Cmd, error) { return exec.Command("hearth", workerName), nil }
	bs.Workers.Build = workerMark(t)
	bs.Workers.Delay = func(int) time.Duration { return delay }
	bs.Workers.Warn = func(line string) {
		if line == "the model is back" {
			v.back <- struct{}{}
		}
	}
	if err := models.Load(bs); err != nil {
		t.Fatal(err)
	}
	v.engine = models.Main().Weights().Engine.(*remote.Engine)
	srv := httptest.NewServer(newServer(cfg, models, slog.New(slog.DiscardHandler)))
	v.url = srv.URL
	t.Cleanup(func() {
		v.client.CloseIdleConnections()
		srv.Close()
		if err := models.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

// workerMark is the build that the program on the path says it is: this one, by another name.
func workerMark(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("hearth")
	if err != nil {
		t.Fatal(err)
	}
	ours, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.Stat(ours)
	if err != nil {
		t.Fatal(err)
	}
	mark := fmt.Sprintf(" %d %d", b.Size(), b.ModTime().UnixNano())
	return strings.TrimSuffix(buildMark(), mark) + fmt.Sprintf(" %d %d", a.Size(), a.ModTime().UnixNano())
}

// kind is how a request is made.
type kind struct{ anthropic, stream bool }

func (k kind) path() string {
	if k.anthropic {
		return "/v1/messages"
	}
	return "/v1/chat/completions"
}

// ask makes a request and reads the reply. It is an error if that is neither whole nor ended as its protocol says errors are.
func (v *victim) ask(k kind, text string, tokens int) (reply string, whole bool, err error) {
	body, err := json.Marshal(map[string]any{"max_tokens": tokens, "stream": k.stream, "temperature": 0,
		"messages": []any{map[string]string{"role": "user", "content": text}}})
	if err != nil {
		return "", false, err
	}
	res, err := v.client.Post(v.url+k.path(), "application/json", bytes.NewReader(body))
	if err != nil {
		return "", false, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || !k.stream {
		b, err := io.ReadAll(res.Body)
		if err != nil {
			return "", false, err
		}
		return v.plain(k, res, b)
	}
	return v.stream(k, res.Body)
}

// plain checks a reply that is no stream.
func (v *victim) plain(k kind, res *http.Response, b []byte) (string, bool, error) {
	var r struct {
		Type    string
		Error   *struct{ Type, Message string }
		Content []struct{ Text string }
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return "", false, fmt.Errorf("%s: %w: %s", res.Status, err, b)
	}
	switch {
	case res.StatusCode == http.StatusOK && len(r.Content) == 1:
		v.whole.Add(1)
		return r.Content[0].Text, true, nil
	case res.StatusCode == http.StatusOK && len(r.Choices) == 1:
		v.whole.Add(1)
		return r.Choices[0].Message.Content, true, nil
	case res.StatusCode >= 500 && r.Error != nil && r.Error.Message != "" && (r.Type == "error") == k.anthropic:
		v.refused.Add(1)
		return "", false, nil
	}
	return "", false, fmt.Errorf("%s: %s", res.Status, b)
}

// stream checks that a stream ends with the event that its protocol has for the end, or for an error.
func (v *victim) stream(k kind, body io.Reader) (string, bool, error) {
	var text strings.Builder
	last := ""
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if last = data; data == "[DONE]" {
			continue
		}
		var e struct {
			Type    string
			Error   *struct{ Type, Message string }
			Delta   struct{ Text string }
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return "", false, fmt.Errorf("%w: %s", err, data)
		}
		text.WriteString(e.Delta.Text)
		for _, c := range e.Choices {
			text.WriteString(c.Delta.Content)
		}
		if n, at := v.tokens.Add(1), v.target.Load(); at > 0 && n >= at && v.target.CompareAndSwap(at, 0) {
			v.hit <- struct{}{}
		}
		if e.Error != nil {
			if e.Error.Type == "" || e.Error.Message == "" || k.anthropic && e.Type != "error" {
				return "", false, fmt.Errorf("an error without type or message: %s", data)
			}
			v.cut.Add(1)
			return "", false, lines.Err()
		}
	}
	if err := lines.Err(); err != nil {
		return "", false, err
	}
	if k.anthropic && !strings.Contains(last, `"message_stop"`) || !k.anthropic && last != "[DONE]" {
		return "", false, fmt.Errorf("the stream just stops, after %s", last)
	}
	v.whole.Add(1)
	return text.String(), true, nil
}

// use is what a process holds.
type use struct {
	files, goroutines int
	heap, resident    int64 // bytes
}

func inUse(t *testing.T, v *victim) use {
	t.Helper()
	v.client.CloseIdleConnections()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := use{goroutines: runtime.NumGoroutine(), heap: int64(m.HeapAlloc), resident: console.ResidentMemory()}
	if dir, err := os.ReadDir("/proc/self/fd"); err == nil {
		u.files = len(dir)
	}
	return u
}

const killWorkers = 8

// load keeps requests of all kinds coming until stop, and checks every reply against what the same request got before.
func (v *victim) load(t *testing.T, stop <-chan struct{}, want *sync.Map) *sync.WaitGroup {
	prompts := []string{"Hello!", "Who are you?", "What is 12 + 30?", "Name three colors.", "Tell me about yourself"}
	var wg sync.WaitGroup
	for w := range killWorkers {
		r := rand.New(rand.NewPCG(7, uint64(w)))
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				text := prompts[r.IntN(len(prompts))]
				k := kind{anthropic: r.IntN(2) == 0, stream: r.IntN(4) > 0}
				got, whole, err := v.ask(k, text, 60)
				if err != nil {
					t.Errorf("%+v: %v", k, err)
					return
				}
				if first, known := want.LoadOrStore(text, got); whole && known && first != got {
					t.Errorf("%q: %q, earlier %q", text, got, first)
				}
			}
		})
	}
	return &wg
}

// TestKill kills the model's process again and again, at some token of some stream: streams end with their protocol's error,
// requests that come afterwards are answered, with what they were answered before, and nothing is left of the dead.
func TestKill(t *testing.T) {
	v := newVictim(t, 0)
	r := rand.New(rand.NewPCG(1, 2))
	want := &sync.Map{}
	for _, text := range []string{"Hello!", "Who are you?", "What is 12 + 30?", "Name three colors.", "Tell me about yourself"} {
		got, _, err := v.ask(kind{anthropic: true}, text, 60)
		if err != nil {
			t.Fatal(err)
		}
		want.Store(text, got)
	}
	before := inUse(t, v)
	stop := make(chan struct{})
	wg := v.load(t, stop, want)
	for n := range *kills {
		v.target.Store(v.tokens.Load() + 1 + r.Int64N(200))
		<-v.hit
		pid, _ := v.engine.Worker()
		sig := syscall.SIGKILL
		if n%5 == 3 {
			sig = syscall.SIGABRT
		}
		if pid == 0 {
			t.Fatal("there is no process to kill")
		}
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatal(err)
		}
		<-v.back
		if _, whole, err := v.ask(kind{n%2 == 0, n%4 < 2}, "Hello!", 20); err != nil || !whole {
			t.Fatalf("after kill %d: whole %t, error %v", n+1, whole, err)
		}
	}
	close(stop)
	wg.Wait()
	if _, loaded := v.engine.Worker(); loaded != *kills+1 {
		t.Errorf("%d processes for %d kills", loaded, *kills)
	}
	after := inUse(t, v)
	for range 100 { // connections of the clients end when the server has noticed
		if after.files <= before.files && after.goroutines <= before.goroutines {
			break
		}
		time.Sleep(10 * time.Millisecond)
		after = inUse(t, v)
	}
	t.Logf("%d kills, %d events: %d replies whole, %d streams cut, %d refused; before %+v, after %+v", *kills, v.tokens.Load(),
		v.whole.Load(), v.cut.Load(), v.refused.Load(), before, after)
	if after.files > before.files || after.goroutines > before.goroutines || after.heap > before.heap+4<<20 || after.resident > before.resident+64<<20 {
		t.Errorf("something is left: before %+v, after %+v", before, after)
	}
	if cut := v.cut.Load() + v.refused.Load(); cut > int64(*kills*(killWorkers+1)) || v.cut.Load() == 0 {
		t.Errorf("%d replies did not end well for %d kills of at most %d at once", cut, *kills, killWorkers+1)
	}
}

// TestRestarting: while the process of the model is away the server lives and is not ready, and no probe waits for it.
func TestRestarting(t *testing.T) {
	v := newVictim(t, time.Hour)
	pid, _ := v.engine.Worker()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ready, body := 0, []byte(nil)
	for end := time.Now().Add(time.Minute); ready != http.StatusServiceUnavailable; time.Sleep(time.Millisecond) {
		if ready, body = request(t, "GET", v.url+"/readyz", ""); time.Now().After(end) {
			t.Fatalf("/readyz: %d %s", ready, body)
		}
	}
	if live, _ := request(t, "GET", v.url+"/livez", ""); live != http.StatusOK || string(body) != `{"status":"loading"}`+"\n" {
		t.Errorf("/livez: %d, /readyz: %s", live, body)
	}
}

// zombie reports whether a process has ended and nobody has asked how. Not every system's init does.
func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && bytes.Contains(b, []byte(") Z "))
}

// TestModelProcess: a server whose model has a process of its own says so; the process goes with the server, however that
// goes, and a reply that runs may end before.
func TestModelProcess(t *testing.T) {
	status := func(p *process) (s struct {
		Process *struct{ PID, Starts int } `json:"model_process"`
	}) {
		t.Helper()
		code, body := request(t, "GET", p.url+"/v1/status", "")
		if err := json.Unmarshal(body, &s); err != nil || code != 200 {
			t.Fatalf("%d: %v: %s", code, err, body)
		}
		return s
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		p := start(t, nil, "--model-process", "always")
		s := status(p)
		if s.Process == nil || s.Process.PID == p.Process.Pid || s.Process.Starts != 1 || !strings.Contains(p.stdout(), "in a process of its own") {
			t.Fatalf("status %+v of process %d\n%s", s.Process, p.Process.Pid, p.stdout())
		}
		res, err := http.Post(p.url+"/v1/messages", "application/json",
			strings.NewReader(`{"stream": true, "max_tokens": 40, "messages": [{"role": "user", "content": "Tell me about yourself"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if sig == syscall.SIGTERM && (err != nil || !bytes.Contains(body, []byte("message_stop"))) {
			t.Errorf("the reply was cut: error %v: %s", err, body)
		}
		err = p.Wait()
		if sig == syscall.SIGTERM && err != nil || strings.Contains(p.stderr.String(), "started again") {
			t.Errorf("%v: exit %v\n%s", sig, err, p.stderr)
		}
		for n := 0; alive(s.Process.PID) && !zombie(s.Process.PID); n++ { // it has to notice
			if n == 500 {
				t.Fatalf("%v: the model's process goes on", sig)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	p := start(t, nil, "--backend", "cpu")
	if s := status(p); s.Process != nil {
		t.Errorf("the cpu backend's model has a process: %+v", s.Process)
	}
	var stderr bytes.Buffer
	cmd := command(t, nil, workerName)
	cmd.Stderr = &stderr
	if err := cmd.Run(); err == nil || !strings.Contains(stderr.String(), "was not started by a server") {
		t.Errorf("error %v, stderr %q", err, stderr.String())
	}
}
