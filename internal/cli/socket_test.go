//go:build unix

package cli

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hearth/internal/config"
)

// stale leaves a socket that nobody listens on.
func stale(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
}

// A server on a Unix socket takes the place of one that was killed, lets nobody else in, counts its clients as one address, is
// found by programs of this machine, and leaves nothing behind. One that answers keeps its place.
func TestServeUnix(t *testing.T) {
	path, runtimeDir := filepath.Join(t.TempDir(), "s"), t.TempDir()
	stale(t, path)
	p := startPiped(t, "umask 0; export XDG_RUNTIME_DIR="+runtimeDir, "--listen", "unix:"+path, "--rate-limit", "2", "--script", scriptFile(t, `{"raw": "Hello."}`))
	if p.url != "unix:"+path {
		t.Fatalf("listens on %s", p.url)
	}
	if st, err := os.Lstat(path); err != nil || st.Mode() != os.ModeSocket|0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	s := &state{URL: p.url}
	for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		res, err := s.client().Post(s.base()+"/v1/messages", "application/json", strings.NewReader(strings.Replace(hello, "{", `{"stream": true, `, 1)))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != want || want == http.StatusOK && !bytes.Contains(body, []byte("message_stop")) {
			t.Errorf("request %d: %s, %v: %s", i, res.Status, err, body)
		}
	}
	out, err := command(t, []string{"XDG_RUNTIME_DIR=" + runtimeDir}, "ps").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("unix:"+path)) {
		t.Errorf("ps: %v: %s", err, out)
	}
	if _, errs, code := launch(t, runtimeDir, "--demo", "--print"); code != 1 || !strings.Contains(errs, "where Claude Code cannot call it") || !strings.Contains(errs, "--listen 127.0.0.1:8080") {
		t.Errorf("launch: %d %s", code, errs)
	}
	if out, err := command(t, nil, "serve", "--listen", "unix:"+path).CombinedOutput(); err == nil || !bytes.Contains(out, []byte("a server answers there")) {
		t.Errorf("a second server: %v: %s", err, out)
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	p.ends(t, "SIGTERM")
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
}

// Programs of this machine load and unload models of a server that listens on a Unix socket alone.
func TestManageUnix(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	if err := writeDemo(filepath.Join(dir, "llm", "models", "other")); err != nil {
		t.Fatal(err)
	}
	env := "HOME=" + dir + " XDG_RUNTIME_DIR=" + dir + " HF_HUB_CACHE=" + filepath.Join(dir, "hub")
	startPiped(t, "export "+env, "--listen", "unix:"+path, "--offline")
	hearth := func(args ...string) string {
		t.Helper()
		out, err := command(t, strings.Fields(env), args...).CombinedOutput()
		if err != nil {
			t.Errorf("%q: %v", args, err)
		}
		return string(out)
	}
	if got := hearth("load", "other", "--keep-alive", "1h"); !strings.Contains(got, "other is loaded at unix:"+path) {
		t.Errorf("load: %s", got)
	}
	if got := hearth("ps"); !strings.Contains(got, "other") || !strings.Contains(got, "unix:"+path) {
		t.Errorf("ps: %s", got)
	}
	hearth("stop", "other")
	got := hearth("ps")
	for deadline := time.Now().Add(20 * time.Second); strings.Contains(got, "other") && time.Now().Before(deadline); {
		got = hearth("ps")
	}
	if strings.Contains(got, "other") || !strings.Contains(got, "unix:"+path) {
		t.Errorf("after stop: %s", got)
	}
}

// A server's end removes its own socket alone.
func TestUnixSocketReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := openUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	stale(t, path)
	l.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("another one's socket: %v", err)
	}
}

// What stands in the way ends the start, and stays as it is; of several sockets none is left open.
func TestUnixSocketMistakes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := filepath.Join(dir, "first")
	for path, says := range map[string]string{
		file:                               "something else than a socket",
		filepath.Join(dir, "none", "s"):    "no such file or directory",
		"/" + strings.Repeat("x", 103):     "has 104 bytes",
		"/" + strings.Repeat("x/", 51):     "no such file or directory",
		filepath.Join(dir, "first") + "/x": "not a directory",
	} {
		cfg := config.Default()
		cfg.Listen = []string{"unix:" + first, "unix:" + path}
		_, err := openSockets(cfg, nil)
		var h interface{ Hint() string }
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "unix:"+filepath.Clean(path)) || !errors.As(err, &h) || h.Hint() == "" {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := os.Lstat(first); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the first socket stays: %v", path, err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "x" {
		t.Errorf("the file: %q, %v", text, err)
	}
}
