package cli

import (
	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/catalog"
)

// backends are those of this build; auto takes the first that works.
func backends() catalog.Backends {
	return catalog.Backends{
		Open: map[string]catalog.Opener{"cpu": func() (backend.Backend, error) { return cpu.New(), nil }},
		Auto: []string{"cpu"},
	}
}
