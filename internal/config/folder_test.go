package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
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

// --private comes before whatever would put text on the disk, and says where that was asked for.
func TestPrivate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(file, []byte("private = true\nstore = \"disk\"\nprefix-cache-dir = \"/kv\"\nlog-prompts = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, warns, err := load(t, map[string]string{"HOME": "/u"}, "--config", file, "--conversation-archive=/logs", "--store-dir=/data")
	if err != nil || warns != nil {
		t.Fatal(err, warns)
	}
	if cfg.Store != "memory" || cfg.PrefixCacheFolder() != "" || cfg.ArchiveFolder() != "" || cfg.LogPrompts {
		t.Errorf("store %s, cache %q, archive %q, prompts in the log %t", cfg.Store, cfg.PrefixCacheFolder(), cfg.ArchiveFolder(), cfg.LogPrompts)
	}
	said := strings.Join(cfg.Overruled(), "\n")
	for _, want := range []string{"--private, from " + file + ":1, comes before store disk, from " + file + ":2",
		"prefix-cache-dir /kv", "conversation-archive /logs, from --conversation-archive", "log-prompts true"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in\n%s", want, said)
		}
	}
	if cfg, _, err := load(t, nil, "--private", "--store=off"); err != nil || cfg.Store != "off" || cfg.Overruled() != nil {
		t.Errorf("store %s, %q, %v", cfg.Store, cfg.Overruled(), err)
	}
}
