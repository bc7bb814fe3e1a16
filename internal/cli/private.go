package cli

import (
	"fmt"
	"strings"

	"hearth/internal/config"
	"hearth/internal/store"
)

// atRest says which files text of clients and models goes to; kept: the prompt cache of the main model goes to the disk. Another
// server may have its folder, and one that embeds has none.
func atRest(cfg *config.Config, kept bool) string {
	var files []string
	if store.Mode(cfg.Store) == store.Disk {
		files = append(files, "responses and conversations in "+cfg.StoreFolder())
		if cfg.ArchiveFolder() != "" && cfg.ConversationTTL > 0 {
			files = append(files, fmt.Sprintf("those idle for %s in %s", strings.TrimSuffix(strings.TrimSuffix(cfg.ConversationTTL.String(), "0s"), "0m"), cfg.ArchiveFolder()))
		}
	}
	switch dir := cfg.PrefixCacheFolder(); {
	case kept:
		files = append(files, "the prompt cache in "+dir)
	case cfg.PromptCache && cfg.Script == "" && dir != "" && cfg.Models == "on-demand":
		files = append(files, "the prompt cache of models loaded on demand in "+dir)
	}
	if cfg.LogPrompts {
		files = append(files, "words of prompts in this log")
	}
	if len(files) == 0 {
		return "text on disk: none; what is said stays in memory"
	}
	return "text on disk: " + strings.Join(files, ", ") + "; --private keeps it in memory"
}
