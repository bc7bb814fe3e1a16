package cli

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"hearth/internal/config"
)

// TestLineBound: a line of a debug command that is too long ends it with an error.
func TestLineBound(t *testing.T) {
	for n, want := range map[int]string{16<<20 - 1: "", 16 << 20: "a line is longer than 16 MiB"} {
		cmd := newRootCmd()
		cmd.SetArgs([]string{"debug", "parse", "--family", "hermes"})
		cmd.SetIn(strings.NewReader(strings.Repeat(" ", n)))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.Execute(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// TestLargeState: a file that is larger than what a server says of itself is read over.
func TestLargeState(t *testing.T) {
	odd := filepath.Join(t.TempDir(), "odd [1] name")
	if err := os.Mkdir(odd, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", odd)
	dir, err := config.RuntimeDir(config.Environ)
	if err != nil {
		t.Fatal(err)
	}
	text := `{"pid": ` + strconv.Itoa(os.Getpid()) + `, "url": "http://127.0.0.1:1"}`
	for n, want := range map[int]int{64 << 10: 1, 64<<10 + 1: 0} {
		file := filepath.Join(dir, "serve-"+strconv.Itoa(os.Getpid())+".json")
		if err := os.WriteFile(file, []byte(text+strings.Repeat(" ", n-len(text))), 0o600); err != nil {
			t.Fatal(err)
		}
		if all, err := announced(); err != nil || len(all) != want {
			t.Errorf("%d bytes: %d servers, %v", n, len(all), err)
		}
	}
}
