//go:build linux

// Package bigfolder proves that models of a real size fit the memory that "hearth show" forecasts: it has hearth write a folder
// of random weights in files of several gigabytes, serves it with and without --low-memory, asks it for an answer and measures
// the server's peak memory; then it loads and closes the model in one process and looks at what stays. It is only a test, run
// by hand: `make bigfolder`. Results stand in docs/models.md.
package bigfolder

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/engine"
	"hearth/internal/hub"
)

var (
	binary = flag.String("hearth", "", "hearth's binary; without it the test is skipped")
	folder = flag.String("folder", "", "folder to use, or to write if it is not there; it stays")
	shape  = flag.String("shape", "qwen3.5-27b", "sizes to write")
	layers = flag.Int("layers", 50, "how many of the shape's layers")
	shard  = flag.String("shard-size", "5GB", "most bytes in a file")
	words  = flag.Int("words", 150, "words in the prompt, about three tokens each")
	unload = flag.String("unload", "", "folder to load and close in this process")
	mapped = flag.Bool("low-memory", false, "of -unload")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *unload != "" {
		if err := loadAndClose(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if *mixRun != "" {
		if err := child(*mixRun); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// step is how many tokens of a prompt run at once; the server must not choose itself, for the forecast is of the largest step.
const step = "256"

// within is how far the measured peak may be from the forecast.
const within = 0.05

// memory are figures of /proc/PID/status, in bytes.
type memory struct {
	peak, now, private, files int64
}

func memoryOf(pid int) (m memory, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return m, err
	}
	fields := map[string]*int64{"VmHWM:": &m.peak, "VmRSS:": &m.now, "RssAnon:": &m.private, "RssFile:": &m.files}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && fields[f[0]] != nil {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return m, err
			}
			*fields[f[0]] = n << 10
		}
	}
	return m, nil
}

func TestBigFolder(t *testing.T) {
	if *binary == "" {
		t.Skip("run by hand: make bigfolder")
	}
	dir := *folder
	if dir == "" {
		dir = filepath.Join(t.TempDir(), "model")
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		began := time.Now()
		out, err := exec.Command(*binary, "bench", "folder", dir, "--shape", *shape, "--layers", strconv.Itoa(*layers), "--shard-size", *shard).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		t.Logf("%s (%s)", bytes.TrimSpace(out), time.Since(began).Round(time.Second))
	}
	for _, low := range []bool{false, true} {
		t.Run(fmt.Sprintf("low-memory=%v", low), func(t *testing.T) { serveOnce(t, dir, low) })
	}
	for _, low := range []bool{false, true} {
		t.Run(fmt.Sprintf("unload low-memory=%v", low), func(t *testing.T) {
			out, err := exec.Command(os.Args[0], "-unload", dir, fmt.Sprintf("-low-memory=%v", low)).CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
			t.Logf("%s", bytes.TrimSpace(out))
		})
	}
}

// serveOnce compares one server's peak with the forecast for what it was asked.
func serveOnce(t *testing.T, dir string, low bool) {
	began := time.Now()
	url, pid := start(t, dir, low)
	loaded, err := memoryOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ready after %s: peak %s, private %s, files %s", time.Since(began).Round(time.Second/10), mb(loaded.peak), mb(loaded.private), mb(loaded.files))
	began = time.Now()
	tokens := ask(t, url)
	took := time.Since(began)
	after, err := memoryOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	f := forecast(t, dir, tokens)
	sum, private := f.Bytes, f.Bytes
	if low {
		sum, private = f.LowMemory.Bytes+f.LowMemory.Files, f.LowMemory.Bytes
	}
	t.Logf("%d tokens in %s: peak %s, private %s, files %s", tokens, took.Round(time.Second/10), mb(after.peak), mb(after.private), mb(after.files))
	t.Logf("forecast %s, private %s: peak off by %+.1f %%, private by %+.1f %%", mb(sum), mb(private), off(after.peak, sum), off(after.private, private))
	if math.Abs(off(after.peak, sum)) > 100*within {
		t.Errorf("the peak is %s, the forecast %s", mb(after.peak), mb(sum))
	}
	if after.private > private+int64(within*float64(sum)) {
		t.Errorf("%s are private, the forecast is %s", mb(after.private), mb(private))
	}
}

func mb(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

func off(measured, forecast int64) float64 { return 100 * (float64(measured)/float64(forecast) - 1) }

// shownMemory is a forecast of hearth show.
type shownMemory struct {
	Bytes     int64 `json:"bytes"`
	LowMemory struct {
		Bytes int64 `json:"bytes"`
		Files int64 `json:"files"`
	} `json:"low_memory"`
}

func forecast(t *testing.T, dir string, tokens int) shownMemory {
	t.Helper()
	cmd := exec.Command(*binary, "show", dir, "--json", "--contexts", strconv.Itoa(tokens), "--prefill-step-size", step)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Memory []shownMemory `json:"memory"`
	}
	if err := json.Unmarshal(out, &s); err != nil || len(s.Memory) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	return s.Memory[0]
}

// start serves the folder on a free port until the test ends.
func start(t *testing.T, dir string, low bool) (url string, pid int) {
	t.Helper()
	cmd := exec.Command(*binary, "serve", dir, "--port", "0", "--log-level", "error", "--prefix-cache-dir", "off",
		"--prefill-step-size", step, "--step-target", "0", fmt.Sprintf("--low-memory=%v", low))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", *binary, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("hearth ended with %v", err)
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			url, _, _ = strings.Cut(rest, " ")
		}
		if strings.HasPrefix(lines.Text(), "ready in ") {
			t.Log(lines.Text())
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return url, cmd.Process.Pid
		}
	}
	t.Fatal("hearth serve did not get ready")
	return "", 0
}

// ask wants a short answer to a long prompt, and tells how many tokens both have.
func ask(t *testing.T, url string) int {
	t.Helper()
	body, err := json.Marshal(map[string]any{"max_tokens": 8, "messages": []any{
		map[string]any{"role": "user", "content": strings.Repeat("word ", *words)}}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post(url+"/v1/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
		Usage struct {
			Total int `json:"total_tokens"`
		} `json:"usage"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || len(answer.Choices) != 1 || answer.Choices[0].Message.Content == "" {
		t.Fatalf("%s: %+v", res.Status, answer)
	}
	return answer.Usage.Total
}

// loadAndClose is the child that loads a model, has it answer, and closes it.
func loadAndClose() error {
	cfg := config.Default()
	cfg.LowMemory, cfg.PrefixCacheDir = mapped, "off"
	src, err := catalog.Find(*unload, hub.Cache{})
	if err != nil {
		return err
	}
	before, err := memoryOf(os.Getpid())
	if err != nil {
		return err
	}
	w, err := catalog.OpenWeights(src, cfg, catalog.Backends{Auto: []string{"cpu"}, Open: map[string]catalog.Opener{
		"cpu": func(*config.Config) (backend.Backend, error) { return cpu.New(), nil }}})
	if err != nil {
		return err
	}
	err = answer(w)
	running, err2 := memoryOf(os.Getpid())
	err3 := w.Close()
	debug.FreeOSMemory()
	after, err4 := memoryOf(os.Getpid())
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return err
	}
	fmt.Printf("before %s, loaded and running %s, closed %s\n", mb(before.now), mb(running.now), mb(after.now))
	if after.now-before.now > 64<<20 {
		return fmt.Errorf("%s stayed when the model was closed", mb(after.now-before.now))
	}
	return nil
}

func answer(w *catalog.Weights) error {
	s, err := w.Engine.Submit(context.Background(), engine.Prompt{Tokens: []int32{104, 101, 108, 108, 111}, MaxTokens: 2, Logprobs: -1})
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		if _, err := s.Next(); errors.Is(err, io.EOF) {
			if n != 2 {
				return fmt.Errorf("%d tokens of 2", n)
			}
			return nil
		} else if err != nil {
			return err
		}
	}
}
