package cli

import (
	"fmt"
	"strings"

	"hearth/internal/config"
	"hearth/internal/store"
)

// atRest says which files text of clients and models goes to.
func atRest(cfg *config.Config) string {
	var files []string
	if store.Mode(cfg.Store) == store.Disk {
		files = append(files, "responses and conversations in "+cfg.StoreFolder())
		if cfg.ArchiveFolder() != "" && cfg.ConversationTTL > 0 {
			files = append(files, fmt.Sprintf("those idle for %s in %s", strings.TrimSuffix(strings.TrimSuffix(cfg.ConversationTTL.String(), "0s"), "0m"), cfg.ArchiveFolder()))
		}
	}
	if cfg.PromptCache && cfg.Script == "" && cfg.PrefixCacheFolder() != "" {
		files = append(files, "the prompt cache in "+cfg.PrefixCacheFolder())
	}
	if cfg.LogPrompts {
		files = append(files, "words of prompts in this log")
	}
	if len(files) == 0 {
		return "text on disk: none; what is said stays in memory"
	}
	return "text on disk: " + strings.Join(files, ", ") + "; --private keeps it in memory"
}
