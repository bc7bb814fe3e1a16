package catalog

import (
	"fmt"

	"hearth/internal/budget"
	"hearth/internal/config"
	"hearth/internal/sysmem"
)

// NewMachine is the memory of this machine, for all models that are loaded here, as cfg divides it.
func NewMachine(cfg *config.Config) *budget.Machine {
	return budget.New(budget.Readers{Total: sysmem.Total, Available: sysmem.Available, Private: sysmem.Private}, reserveOf(cfg, sysmem.Total()))
}

const (
	// leastContext is the shortest context worth starting for, unless the user or the model asks for less.
	leastContext = 256
	// unknownMemory is assumed to be the cache's where the machine does not tell how much memory it has.
	unknownMemory = 2 << 30
)

// cacheBudget is the memory for keys and values in bytes, of running replies and the prefix cache together: what was
// asked for, or else the share of the machine's memory, machine, that was, but no more than is left beside the weights and, of
// 15 % of these (activations, tables, the program itself) and what is the system's, the larger.
func cacheBudget(cfg *config.Config, weights, machine int64) (int64, error) {
	switch {
	case cfg.CacheMemoryMB > 0:
		return int64(cfg.CacheMemoryMB) << 20, nil
	case machine <= 0:
		return unknownMemory, nil
	}
	reserve := reserveOf(cfg, machine)
	most := min(int64(float64(machine)*cfg.CacheMemoryPart), machine-weights-max(weights*15/100, reserve))
	if most <= 0 {
		return 0, fmt.Errorf("divide memory: %s of weights leave nothing of %s for keys and values, of which %s are the system's; choose a smaller model, or set --cache-memory-mb or --os-reserve",
			size(weights), size(machine), size(reserve))
	}
	return most, nil
}

// reserveOf is what of so much memory is the system's.
func reserveOf(cfg *config.Config, machine int64) int64 {
	if cfg.OSReserve != nil {
		return *cfg.OSReserve
	}
	return budget.Reserve(machine)
}

// size spells bytes for people.
func size(n int64) string { return budget.Size(n) }
