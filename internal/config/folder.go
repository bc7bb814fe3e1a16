package config

import (
	"fmt"
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

// keepPrivate replaces all settings by which text of prompts or replies would outlive the process.
func (c *Config) keepPrivate() {
	if c.Store == "disk" {
		c.overrule("store", "memory")
	}
	for _, flag := range []string{"prefix-cache-dir", "conversation-archive"} {
		c.overrule(flag, "off")
	}
	c.overrule("log-prompts", "false")
}

// overrule sets a knob to what --private wants of it, and notes where something else was said.
func (c *Config) overrule(flag, value string) {
	for i := range Knobs {
		k := &Knobs[i]
		if k.Flag != flag {
			continue
		}
		v := k.bind(c)
		if said := v.String(); c.origin[flag] != "" && said != value {
			c.overruled = append(c.overruled, fmt.Sprintf("--private, from %s, comes before %s %s, from %s", c.origin["private"], flag, said, c.origin[flag]))
		}
		if err := v.Set(value); err != nil {
			panic(err)
		}
		c.origin[flag] = c.origin["private"]
	}
}

// ModelFolders are the folders in which models are looked for besides the Hugging Face cache: those that the user names, and
// where other programs keep them.
func (c *Config) ModelFolders() (named, usual []string) {
	if c.user != "" {
		for _, dir := range []string{".lmstudio/models", ".cache/lm-studio/models", "llm/models"} {
			usual = append(usual, filepath.Join(c.user, filepath.FromSlash(dir)))
		}
	}
	return c.ModelsDir, usual
}

// AliasFile is where further names of models are kept, beside the settings file; "" if that is not known.
func (c *Config) AliasFile() string { return c.aliasFile }

func findAliasFile(env Env) string {
	file := defaultFile(env)
	if file == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(file), "aliases.json")
}

// StoreFolder is where responses are kept on disk, "" if that is not known.
func (c *Config) StoreFolder() string { return c.storeFolder }

// ArchiveFolder is where chains of responses are archived, "" if nowhere.
func (c *Config) ArchiveFolder() string { return c.archiveFolder }

// findStoreFolders are the folders that --store-dir and --conversation-archive mean: in the user's data folder unless they name
// others.
func (c *Config) findStoreFolders(env Env) (store, archive string) {
	user := home(env)
	if store = expand(c.StoreDir, user); store == "" {
		if base := userData(env, user); base != "" {
			store = filepath.Join(base, "hearth")
		}
	}
	switch {
	case c.Archive == "off":
	case c.Archive != "":
		archive = expand(c.Archive, user)
	case store != "":
		archive = filepath.Join(store, "conversation_logs")
	}
	return store, archive
}

// userCache is where programs of this user keep what can be made again, userData what cannot; "" if that is not known.
func userCache(env Env, user string) string {
	return userFolder(env, user, "XDG_CACHE_HOME", "Library/Caches", ".cache")
}

func userData(env Env, user string) string {
	return userFolder(env, user, "XDG_DATA_HOME", "Library/Application Support", ".local/share")
}

// userFolder is the folder that a variable names, else that of the system in the user's home.
func userFolder(env Env, user, name, mac, unix string) string {
	if base, _ := env(name); filepath.IsAbs(base) {
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
		return filepath.Join(user, filepath.FromSlash(mac))
	}
	return filepath.Join(user, filepath.FromSlash(unix))
}
