package catalog

import (
	"fmt"

	"hearth/internal/config"
)

const (
	// leastContext is the shortest context worth starting for, unless the user or the model asks for less.
	leastContext = 256
	// unknownMemory is assumed to be the cache's where the machine does not tell how much memory it has.
	unknownMemory = 2 << 30
)

// cacheBudget is the memory for keys and values in bytes, of running replies and the prefix cache together: what was
// asked for, or else the share of the machine's memory, machine, that was, but no more than the weights, taken
// as 15 % larger than they are (activations, tables, the program itself), leave.
func cacheBudget(cfg *config.Config, weights, machine int64) (int64, error) {
	switch {
	case cfg.CacheMemoryMB > 0:
		return int64(cfg.CacheMemoryMB) << 20, nil
	case machine <= 0:
		return unknownMemory, nil
	}
	budget := min(int64(float64(machine)*cfg.CacheMemoryPart), machine-weights-weights*15/100)
	if budget <= 0 {
		return 0, fmt.Errorf("divide memory: %s of weights leave nothing of %s for keys and values; choose a smaller model, or set --cache-memory-mb",
			size(weights), size(machine))
	}
	return budget, nil
}

// size spells bytes for people.
func size(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
