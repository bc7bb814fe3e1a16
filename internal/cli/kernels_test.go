package cli

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"hearth/internal/kernel"
)

func TestUseKernels(t *testing.T) {
	best := kernel.Current()
	t.Cleanup(func() {
		if err := kernel.Use(""); err != nil {
			t.Error(err)
		}
	})
	env := func(value string) func(string) (string, bool) {
		return func(name string) (string, bool) { return value, name == kernelsEnv }
	}
	for value, want := range map[string]string{"": best, "auto": best, "generic": "generic"} {
		if err := useKernels(env(value)); err != nil || kernel.Current() != want {
			t.Errorf("%q: %s, %v; want %s", value, kernel.Current(), err, want)
		}
	}
	for _, name := range append([]string{"sse2"}, slices.DeleteFunc([]string{"avx2", "avxvnni", "avx512", "avx512vnni", "avx512bf16", "neon"}, func(s string) bool {
		return slices.Contains(kernel.Implementations(), s)
	})...) {
		err := useKernels(env(name))
		if err == nil || !strings.Contains(err.Error(), "HEARTH_CPU="+name) || !strings.Contains(err.Error(), "generic") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWarnKernels(t *testing.T) {
	t.Cleanup(func() { _ = kernel.Use("") })
	if err := kernel.Use("generic"); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	warnKernels(log, true)
	if out.Len() > 0 {
		t.Errorf("asked for: %s", out.String())
	}
	warnKernels(log, false)
	if n := strings.Count(out.String(), "\n"); n != 1 || !strings.Contains(out.String(), "kernel=generic") {
		t.Errorf("%d lines: %s", n, out.String())
	}
}
