package catalog

import (
	"hearth/internal/config"
	"hearth/internal/tier"
)

// Keep makes a catalog keep its prompt cache on disk, where the configuration says.
type Keep struct {
	Build string       // which build of the program this is: it does not use what another one has computed
	Warn  func(string) // gets a line when something goes wrong; called from any goroutine
}

// options are the tier's for a model, nil if nothing is to be kept. A model that cannot be told from others is not kept.
func (k *Keep) options(src *Source, cfg *config.Config) *tier.Options {
	dir := cfg.PrefixCacheFolder()
	if k == nil || dir == "" {
		return nil
	}
	print, err := src.fingerprint()
	if err != nil {
		k.Warn("prefix cache: nothing is kept on disk: " + err.Error())
		return nil
	}
	return &tier.Options{Dir: dir, Name: src.ID, Fingerprint: print + "\nbuild " + k.Build, Quota: int64(cfg.PrefixCacheMB) << 20, Warn: k.Warn}
}
