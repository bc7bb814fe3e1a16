package cli

import (
	"cmp"
	"strconv"
)

// Claude Code takes no smaller window for compaction as a setting, and compacts where the longest reply and claudeSpare more
// would not fit any more.
const (
	claudeWindow = 100_000
	claudeSpare  = 13_000
)

// claude is Claude Code. docs/claude-code.md says how its numbers were measured.
func claude() *agent {
	return &agent{
		name: "Claude Code", program: "claude", install: "npm install -g @anthropic-ai/claude-code",
		told: `Its settings reach it as environment
variables; with --print they are printed for a shell instead, and nothing is run.`,
		example: `  hearth launch claude --model ` + someModel + `
  hearth launch claude -- -p "what does this repository do?"
  eval "$(hearth launch claude --print)" && claude`,
		prompt: 14_000, least: 40_960, enough: 81_920,
		// It shows again what was read last, five files of up to 5,000 tokens.
		few:      "if it has just read several files of thousands of tokens",
		small:    true,
		settings: func(t *target) ([]string, [][2]string) { return nil, claudeEnv(t) },
	}
}

// claudeEnv points Claude Code at a server: every tier it knows is the one model, its key is the server's, and it knows
// how long the context is, so that it compacts in time.
func claudeEnv(t *target) [][2]string {
	small := cmp.Or(t.Small, t.Model)
	env := [][2]string{
		{"ANTHROPIC_BASE_URL", t.URL},
		{"ANTHROPIC_AUTH_TOKEN", t.anyKey()},
		{"ANTHROPIC_API_KEY", ""}, // Claude Code would ask which of the two to use
		{"ANTHROPIC_MODEL", t.Model},
		{"ANTHROPIC_DEFAULT_OPUS_MODEL", t.Model},
		{"ANTHROPIC_DEFAULT_SONNET_MODEL", t.Model},
		{"ANTHROPIC_DEFAULT_FABLE_MODEL", t.Model},
		{"ANTHROPIC_DEFAULT_HAIKU_MODEL", small},
		{"ANTHROPIC_SMALL_FAST_MODEL", small},
		{"CLAUDE_CODE_SUBAGENT_MODEL", t.Model},
		{"CLAUDE_CODE_ATTRIBUTION_HEADER", "0"}, // it differs between sessions, at the very front of the prompt
		{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"},
		{"CLAUDE_CODE_DISABLE_1M_CONTEXT", "1"},             // what /model calls the default would have a million tokens
		{"CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY", "1"}, // its /model lists what the server has
		{"API_TIMEOUT_MS", "3600000"},                       // a long prompt takes its time here
	}
	env = append(env, t.trust("NODE_EXTRA_CA_CERTS")...)
	return append(env, claudeLimits(t.context)...)
}

// claudeLimits says how long the context is and how much of it a reply, and the result of a tool, may take. Claude Code compacts
// where the longest reply, of which it counts at most 20,000 tokens, and claudeSpare more would not fit any more. In a small
// context that would be before it has done anything, so there it is told of claudeSpare more than there are: it compacts where
// the longest reply would not fit, and a prompt that does not fit is refused in words on which it compacts as well.
func claudeLimits(context int) [][2]string {
	if context < claudeWindow {
		return [][2]string{
			{"CLAUDE_CODE_MAX_CONTEXT_TOKENS", strconv.Itoa(context + claudeSpare)},
			{"CLAUDE_CODE_AUTO_COMPACT_WINDOW", strconv.Itoa(max(context+claudeSpare, claudeWindow))}, // it grumbles about less
			{"CLAUDE_CODE_MAX_OUTPUT_TOKENS", strconv.Itoa(context / 8)},
			{"CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS", strconv.Itoa(context / 8)}, // of its own it reads 25,000 at once
			{"MAX_MCP_OUTPUT_TOKENS", strconv.Itoa(context / 8)},                   // here too
			{"BASH_MAX_OUTPUT_LENGTH", strconv.Itoa(context / 4)},                  // characters, and 30,000
		}
	}
	n := strconv.Itoa(context)
	limits := [][2]string{{"CLAUDE_CODE_MAX_CONTEXT_TOKENS", n}, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW", n}}
	if output := context / 4; output < 32_000 { // of its own it asks for 32,000
		limits = append(limits, [2]string{"CLAUDE_CODE_MAX_OUTPUT_TOKENS", strconv.Itoa(output)})
	}
	return limits
}
