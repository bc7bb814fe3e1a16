package catalog

import "hearth/internal/config"

// cacheShare of the machine's memory goes to the KV cache unless the knob says otherwise, at most cacheMost.
const (
	cacheShare = 4
	cacheMost  = 8 << 30
)

// cacheBudget is the KV cache's share of memory in bytes.
func cacheBudget(cfg *config.Config) int64 {
	if cfg.CacheMemoryMB > 0 {
		return int64(cfg.CacheMemoryMB) << 20
	}
	m := machineMemory()
	if m <= 0 {
		return cacheMost / 4
	}
	return min(m/cacheShare, cacheMost)
}
