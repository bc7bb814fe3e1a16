package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNearest(t *testing.T) {
	all := []string{"port", "host", "max-tokens", "max-tokens-cap", "rate-limit", "temperature", "top-p", "top-k"}
	for name, want := range map[string]string{
		"prot": "port", "hst": "host", "ports": "port", "MAX_TOKEN": "max-tokens", "maxtokens": "max-tokens", "tokens-cap": "max-tokens-cap", "ratelimit": "rate-limit",
		"temperatre": "temperature", "temp": "temperature", "topp": "top-p", "top-q": "top-p", "temperature-default": "temperature",
		"": "", "a": "", "nope": "", "limits-of-all": "", strings.Repeat("port", 1000): "",
	} {
		if got := Nearest(name, all); got != want {
			t.Errorf("%.40q: %q, want %q", name, got, want)
		}
	}
	if Nearest("port", nil) != "" {
		t.Error("there is something near nothing")
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "axc", 1}, {"abcd", "acbd", 1}, {"abc", "cab", 2}, {"kitten", "sitting", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
		if got := distance(c.b, c.a); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.b, c.a, got, c.want)
		}
	}
}

// Variables that are called like settings and are none are named; those of MLX, of tests and of other programs are not.
func TestStrays(t *testing.T) {
	got := Strays([]string{
		"HEARTH_PORT=1", "HEARTH_TEMP=1", "HEARTH_RATE_LIMIT=60", "MLX_MODEL=x", "MLX_TRUST_REMOTE_CODE=1", "MLX_OMNI_LOG_LEVEL=debug", "HEARTH_CPU=avx2", "HEARTH_BIN=x", "HEARTH_TEST_MLX=x",
		"MLX_METAL_FAST_SYNCH=1", "MLX_MAX_OPS_PER_BUFFER=1", "MLX_BUFFER_CACHE_LIMIT=1", "MLX_DISABLE_COMPILE=1", "MLX_RANK=0", "MLX_USE_CUDA_GRAPHS=0",
		"VLLM_MLX_X=1", "XMLX_MODEL=1", "PATH=HEARTH_X", "HEARTH_EMPTY=", "=odd", "odd",
		"HEARTH_PROT=1", "MLX_MODELL=x", "MLX_TOPP=1", "MLX_TOP_K=1", "MLX_PORT=1", "MLX_CONTEXT_LENGTHS=1", "HEARTH_=1", "MLX_FROBNICATE=1", "HEARTH_\x1b[31m=1",
	})
	want := []string{
		`HEARTH_ is set and is no setting`,
		`HEARTH_PROT is set and is no setting; did you mean HEARTH_PORT?`,
		`HEARTH_\x1b[31m is set and is no setting`,
		`MLX_CONTEXT_LENGTHS is set and is no setting; did you mean HEARTH_CONTEXT_LENGTH?`,
		`MLX_FROBNICATE is set and is no setting`,
		`MLX_MODELL is set and is no setting; did you mean MLX_MODEL?`,
		`MLX_PORT is set and is no setting; did you mean HEARTH_PORT?`,
		`MLX_TOPP is set and is no setting; did you mean MLX_TOP_P?`,
		`MLX_TOP_K is set and is no setting; did you mean HEARTH_TOP_K?`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
