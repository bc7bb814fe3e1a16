package catalog

import (
	"time"

	"hearth/internal/config"
	"hearth/internal/regular"
	"hearth/internal/tier"
)

// DiskCache makes a catalog keep its prompt cache on disk, where the configuration says.
type DiskCache struct {
	Build string       // which build of the program this is: it does not use what another one has computed
	Warn  func(string) // gets a line when something goes wrong; called from any goroutine
}

// options are the tier's for a model, nil if nothing is to be kept. A model that cannot be told from others is not kept.
// A shared quota is for all models together.
func (k *DiskCache) options(src *Source, cfg *config.Config, shared bool) *tier.Options {
	dir := cfg.PrefixCacheFolder()
	if k == nil || dir == "" {
		return nil
	}
	print, err := identity(src, cfg)
	if err != nil {
		k.Warn("prefix cache: nothing is kept on disk: " + err.Error())
		return nil
	}
	return &tier.Options{Dir: dir, Name: src.ID, Fingerprint: print + "\nbuild " + k.Build, Quota: int64(cfg.PrefixCacheMB) << 20, Shared: shared,
		TTL: time.Duration(cfg.PrefixCacheDays) * 24 * time.Hour, Warn: k.Warn}
}

// identity is what keys and values of a model depend on besides the engine: its files and those of its adapter.
func identity(src *Source, cfg *config.Config) (string, error) {
	print, err := src.fingerprint()
	if err != nil || cfg.AdapterPath == "" {
		return print, err
	}
	a := Source{ID: "adapter", Path: cfg.AdapterPath, FS: regular.Dir(cfg.AdapterPath), Where: cfg.AdapterPath}
	more, err := a.fingerprint()
	return print + "\n" + more, err
}
