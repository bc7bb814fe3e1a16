package config

import (
	"path/filepath"
	"runtime"
	"testing"
)

func TestPrefixCacheFolder(t *testing.T) {
	abs, err := filepath.Abs("x")
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join("/u", ".cache", "hearth", "prefix-cache")
	if runtime.GOOS == "darwin" {
		own = filepath.Join("/u", "Library", "Caches", "hearth", "prefix-cache")
	}
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"user's cache":                  {map[string]string{"XDG_CACHE_HOME": abs, "HOME": "/u"}, nil, filepath.Join(abs, "hearth", "prefix-cache")},
		"home":                          {map[string]string{"HOME": "/u"}, nil, own},
		"a relative one counts as none": {map[string]string{"XDG_CACHE_HOME": "x", "HOME": "/u"}, nil, own},
		"no home":                       {nil, nil, ""},
		"off":                           {map[string]string{"HOME": "/u"}, []string{"--prefix-cache-dir=off"}, ""},
		"off by environment":            {map[string]string{"HOME": "/u", "HEARTH_PREFIX_CACHE_DIR": "off"}, nil, ""},
		"named":                         {map[string]string{"HOME": "/u"}, []string{"--prefix-cache-dir", "~/kv"}, filepath.Join("/u", "kv")},
	} {
		if runtime.GOOS == "windows" && c.env["HOME"] != "" {
			continue // there it is LOCALAPPDATA
		}
		cfg, warns, err := load(t, c.env, c.args...)
		if err != nil || warns != nil || cfg.PrefixCacheFolder() != c.want {
			t.Errorf("%s: %q, want %q (%v, %q)", name, cfg.PrefixCacheFolder(), c.want, err, warns)
		}
	}
	if Default().PrefixCacheFolder() != "" {
		t.Error("a configuration that nobody loaded names a folder")
	}
}
