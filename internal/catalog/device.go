package catalog

import (
	"fmt"

	"hearth/internal/backend"
	"hearth/internal/config"
)

// deviceRoom is the state that fits a backend's device beside weights of so many bytes and the steps of its prompts: more than
// any machine has where the backend has no device.
func deviceRoom(be backend.Backend, cfg *config.Config, weights int64) (int64, error) {
	d, ok := be.(backend.Device)
	if !ok {
		return 1 << 60, nil
	}
	return d.Room(weights, cfg.PrefillStepSize)
}

// limitOf is what a backend's device may use of the machine's memory, 0 where it has none or does not tell.
func limitOf(be backend.Backend) int64 {
	if d, ok := be.(backend.Device); ok {
		return d.Memory().Limit
	}
	return 0
}

// onDevice lowers a budget for keys and values to what the device has room for, unless the user asked for it by name.
func onDevice(be backend.Backend, cfg *config.Config, weights, budget int64) (int64, error) {
	room, err := deviceRoom(be, cfg, weights)
	switch {
	case err != nil:
		return 0, err
	case budget <= room:
		return budget, nil
	case cfg.CacheMemoryMB > 0:
		return 0, fmt.Errorf("divide memory: the GPU has %s for keys and values beside the weights, and --cache-memory-mb asks for %s: lower it",
			size(room), size(budget))
	}
	return room, nil
}
