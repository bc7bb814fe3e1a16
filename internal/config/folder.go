package config

import (
	"path/filepath"
	"runtime"
)

// PrefixCacheFolder is where pages of the prompt cache are kept, "" if nowhere.
func (c *Config) PrefixCacheFolder() string { return c.prefixFolder }

// findPrefixFolder is the folder that --prefix-cache-dir means: in the user's cache folder unless it names one.
func (c *Config) findPrefixFolder(env Env) string {
	user := home(env)
	switch c.PrefixCacheDir {
	case "off":
		return ""
	case "":
	default:
		return expand(c.PrefixCacheDir, user)
	}
	base := userCache(env, user)
	if base == "" {
		return ""
	}
	return filepath.Join(base, "hearth", "prefix-cache")
}

// userCache is where programs of this user keep what can be made again, "" if that is not known.
func userCache(env Env, user string) string {
	if base, _ := env("XDG_CACHE_HOME"); filepath.IsAbs(base) {
		return base
	}
	if runtime.GOOS == "windows" {
		base, _ := env("LOCALAPPDATA")
		return base
	}
	switch {
	case user == "":
		return ""
	case runtime.GOOS == "darwin":
		return filepath.Join(user, "Library", "Caches")
	}
	return filepath.Join(user, ".cache")
}
