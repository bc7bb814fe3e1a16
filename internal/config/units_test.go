package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestUnits(t *testing.T) {
	for arg, want := range map[string]int64{"0": 0, "1000": 1000, "512MB": 512e6, "2GiB": 2 << 30, "1.5 kib": 1536, "3g": 3e9, "7B": 7} {
		if c, _, err := load(t, nil, "--prompt-cache-bytes="+arg); err != nil || c.PromptCacheMax != want {
			t.Errorf("%q: %v %v, want %d", arg, c, err, want)
		}
	}
	for _, arg := range []string{"", "x", "-1", "1 zb", "nan", "1e30", "GB"} {
		if _, _, err := load(t, nil, "--prompt-cache-bytes="+arg); err == nil {
			t.Errorf("%q is a size", arg)
		}
	}
	for arg, want := range map[string]int64{"128MiB": 2 * MaxBodyBytes, "1GiB": 1 << 30} {
		if c, _, err := load(t, nil, "--max-request-bytes="+arg); err != nil || c.MaxRequestBytes != want {
			t.Errorf("%q: %v %v, want %d", arg, c, err, want)
		}
	}
	if _, _, err := load(t, nil, "--max-request-bytes=127MiB"); err == nil || !strings.Contains(err.Error(), "at least 128MiB") {
		t.Errorf("no room for the longest body: %v", err)
	}
	c, warns, err := load(t, map[string]string{"CONTEXT_TTL_MS": "1500", "CONTEXT_MAX_SESSIONS": "7", "PROMPT_CACHE_BYTES": "1MB", "PROMPT_CACHE": "0"})
	if err != nil || len(warns) > 0 || c.ContextTTL != 1500*time.Millisecond || c.ContextSessions != 7 || c.PromptCacheMax != 1e6 || c.PromptCache {
		t.Errorf("%+v %v %v", c, warns, err)
	}
	c, warns, err = load(t, map[string]string{"CONTEXT_TTL_MS": "12h", "CONTEXT_MAX_SESSIONS": "0", "PROMPT_CACHE_BYTES": "lots"})
	if err != nil || len(warns) != 3 || !cmp.Equal(c.ContextTTL, Default().ContextTTL) || c.ContextSessions != 500 {
		t.Errorf("names that other programs use: %v %v", warns, err)
	}
}

func TestKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte("# of the team\none\n\n two \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args     []string
		want     []string
		isolated bool
	}{
		{nil, nil, false},
		{[]string{"--api-key=a"}, []string{"a"}, false},
		{[]string{"--api-key=a", "--cache-isolation=key"}, []string{"a"}, true},
		{[]string{"--api-key=a,b", "--api-key=c"}, []string{"a", "b", "c"}, true},
		{[]string{"--api-key=a", "--api-key-file=" + file}, []string{"a", "one", "two"}, true},
		{[]string{"--api-key=a,b", "--cache-isolation=none"}, []string{"a", "b"}, false},
	} {
		c, _, err := load(t, nil, tc.args...)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, k := range c.Keys() {
			got = append(got, k.Plain)
		}
		if !cmp.Equal(got, tc.want) || c.Isolated() != tc.isolated {
			t.Errorf("%v: %v, isolated %t", tc.args, got, c.Isolated())
		}
	}
	for _, file := range []string{filepath.Join(t.TempDir(), "none"), os.DevNull} {
		if _, _, err := load(t, nil, "--api-key-file="+file); err == nil {
			t.Errorf("keys from %s", file)
		}
	}
}
