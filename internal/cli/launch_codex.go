package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

const (
	codexKey = "CODEX_HEARTH_KEY" // with a name of hearth's own, hearth in a shell of Codex's would read it
	// codexMinor is the minor version, of 0, of the oldest Codex that was tried.
	codexMinor = 142
	// codexRoom is what Codex leaves free when it compacts a conversation, or a quarter of the context where that is less: for
	// the results of tools that came last, and for the summary.
	codexRoom = 16_384
	// versionTimeout bounds how long a program may take to say its version.
	versionTimeout = 20 * time.Second
)

// codex is OpenAI's Codex. docs/agents.md says how its numbers were measured.
func codex() *agent {
	return &agent{
		name: "Codex", program: "codex", install: "npm install -g @openai/codex@latest",
		told: `Its settings reach it as arguments,
which count for this run alone and win over those of its own files, and the key as an environment variable; with
--print they are printed for a shell instead, and nothing is run.`,
		example: `  hearth launch codex --model ` + someModel + `
  hearth launch codex -- exec "what does this repository do?"
  eval "$(hearth launch codex --print)"`,
		prompt: 12_000, least: 32_768, enough: 65_536,
		// What the user wrote stays as it was, and what a turn's calls gave last has to fit.
		few:      "after long messages of the user's, or if many tools have just said much at once",
		check:    codexKnown,
		settings: codexSettings,
	}
}

// codexKnown refuses a program that is no Codex, or one that is older than any that was tried.
func codexKnown(ctx context.Context, program string) error {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	c := exec.CommandContext(ctx, program, "--version")
	c.WaitDelay = time.Second
	out, err := c.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && len(exit.Stderr) > 0 {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return fmt.Errorf("ask for the version of Codex: %s --version: %w", program, err)
	}
	said := strings.TrimSpace(string(out))
	var major, minor int
	if _, err := fmt.Sscanf(said, "codex-cli %d.%d", &major, &minor); err != nil {
		return fmt.Errorf("%s is not OpenAI's Codex: its --version says %q", program, said)
	}
	if major == 0 && minor < codexMinor {
		return fmt.Errorf("%s is %s; the oldest version that is known to work is 0.%d", program, said, codexMinor)
	}
	return nil
}

// codexSettings points Codex at a server by a provider of its own: the one it has built in wants a login, and would show this
// server the user's key. It compacts a conversation before the context is full, and asks no other host.
func codexSettings(t *target) (args []string, env [][2]string) {
	for _, s := range []struct {
		key   string
		value any
	}{
		{"model_provider", "hearth"},
		{"model_providers.hearth.name", "OpenAI"}, // by that it knows that the server can sum a conversation up
		{"model_providers.hearth.base_url", t.URL + "/v1"},
		{"model_providers.hearth.wire_api", "responses"},
		{"model_providers.hearth.env_key", codexKey},
		{"model_providers.hearth.stream_idle_timeout_ms", 3_600_000}, // a long prompt takes its time here
		{"model", t.Model},
		{"review_model", t.Model},
		{"model_context_window", t.context},
		{"model_auto_compact_token_limit", t.context - min(t.context/4, codexRoom)},
		{"web_search", "disabled"}, // only OpenAI runs it
		{"analytics.enabled", false},
		{"check_for_update_on_startup", false},
		{"features.plugins", false},           // it looks for them on other hosts
		{"features.apps", false},              // here too
		{"features.daemon_auto_start", false}, // its shared server knows nothing of these settings
	} {
		value, err := json.Marshal(s.value) // as TOML spells it too
		if err != nil {
			panic(err)
		}
		args = append(args, "-c", s.key+"="+string(value))
	}
	return args, append([][2]string{{codexKey, t.anyKey()}}, t.trust("CODEX_CA_CERTIFICATE")...)
}
