package cli

import (
	"path/filepath"

	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/hub"
)

// roots are the folders in which models are looked for, and the further names that they have.
func roots(cfg *config.Config) *hub.Roots {
	named, usual := cfg.ModelFolders()
	list := []hub.Root{{Dir: cfg.HubCache, Name: "Hugging Face cache"}}
	for _, dir := range named {
		list = append(list, hub.Root{Dir: dir, Name: "--models-dir"})
	}
	for _, dir := range usual {
		name := "LM Studio"
		if filepath.Base(filepath.Dir(dir)) == "llm" {
			name = "~/llm/models"
		}
		list = append(list, hub.Root{Dir: dir, Name: name})
	}
	r := hub.NewRoots(list...)
	r.Judge = catalog.Judge
	r.Aliases = &hub.Aliases{File: cfg.AliasFile()}
	return r
}
