package interop

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const realKey = "interop-key"

// startHearth runs hearth serve on a free port until the test ends and returns its URL; args are further flags. HEARTH_BIN
// names the binary; without it one is built.
func startHearth(t *testing.T, args ...string) string {
	t.Helper()
	bin := os.Getenv("HEARTH_BIN")
	if bin == "" {
		bin = filepath.Join(t.TempDir(), "hearth")
		build := exec.Command("go", "build", "-o", bin, "./cmd/hearth")
		build.Dir = "../.."
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build hearth: %v\n%s", err, out)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	args = append([]string{"serve", "--port", "0", "--prefix-cache-dir", "off", "--api-key", realKey}, args...)
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	url := ""
	for url == "" && lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			url, _, _ = strings.Cut(rest, " ")
		}
	}
	drained := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, out); close(drained) }()
	t.Cleanup(func() {
		cancel()
		<-drained
		if err := cmd.Wait(); err != nil && ctx.Err() == nil {
			t.Errorf("hearth ended with %v", err)
		}
	})
	if url == "" {
		t.Fatal("hearth serve printed no address")
	}
	return url
}
