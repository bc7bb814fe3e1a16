package cli

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/demo"
)

func newLaunchClaudeCmd() *cobra.Command {
	var asDemo, printOnly bool
	cmd := &cobra.Command{
		Use:   "claude [-- ARGS]",
		Short: "Run Claude Code on a local model",
		Long: `Runs Claude Code, which must be installed, on the model of a hearth server of this user. Without one it serves a model
itself for as long as Claude Code runs. ARGS go to Claude Code. Its settings reach it as environment variables; with
--print they are printed for a shell instead, and nothing is run.`,
		Example: `  hearth launch claude --model mlx-community/Qwen3-Coder-30B-A3B-Instruct-4bit
  hearth launch claude -- -p "what does this repository do?"
  eval "$(hearth launch claude --print)" && claude`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() > 0 || len(args) > 0 && cmd.ArgsLenAtDash() < 0 {
				return hintf(fmt.Errorf("unexpected argument %q", args[0]), "arguments of Claude Code go after --: %s -- %s", cmd.CommandPath(), strings.Join(args, " "))
			}
			return nil
		},
	}
	cfg := settings(cmd, config.Listen, config.Access, config.Model, config.Run, config.Sampling, config.API)
	cmd.Flags().BoolVar(&asDemo, "demo", false, "allow the demo model, which cannot do an agent's work")
	cmd.Flags().BoolVar(&printOnly, "print", false, "print the variables as shell exports and run nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("port") {
			cfg.Port = 0 // a server of one's own is in nobody's way
		}
		if err := load(cmd, cfg); err != nil {
			return err
		}
		program, err := exec.LookPath("claude")
		if err != nil && !printOnly {
			return hintf(errors.New("there is no claude on the path: Claude Code is not installed"), "npm install -g @anthropic-ai/claude-code")
		}
		t, err := claudeTarget(cmd, cfg, asDemo, printOnly)
		if err != nil {
			return err
		}
		defer t.close()
		if t.kind == chat.Completes {
			return hintf(fmt.Errorf("%s is %s, so Claude Code cannot use it", t.Model, baseModel), "use its instruct or chat version; for what it is worth, "+makeChat)
		}
		if printOnly {
			exports(cmd.OutOrStdout(), claudeEnv(t))
			return nil
		}
		return runAgent(cmd, program, args, claudeEnv(t))
	}
	return cmd
}

// claudeTarget finds the server to use, or starts one.
func claudeTarget(cmd *cobra.Command, cfg *config.Config, asDemo, onlyFind bool) (*target, error) {
	t, err := running(cmd.Context(), cfg.Model, cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	isDemo := cfg.Model == "" || cfg.Model == demo.Name
	if t != nil {
		isDemo = t.Demo
	}
	if isDemo && !asDemo {
		if t != nil {
			t.close()
		}
		return nil, hintf(errors.New("the demo model cannot do an agent's work"), "name a model: %s --model mlx-community/Qwen3-Coder-30B-A3B-Instruct-4bit; --demo insists", cmd.CommandPath())
	}
	if t != nil {
		if t.Locked && t.Key == "" {
			if t.Key = cfg.APIKey(); t.Key == "" {
				return nil, hintf(errors.New("the server that runs asks for a key and knows no more than the hashes of those it accepts"),
					"name yours: %s --api-key KEY", cmd.CommandPath())
			}
		}
		return t, nil
	}
	if onlyFind {
		return nil, hintf(errors.New("no server runs"), "start one: hearth serve %s", cfg.Model)
	}
	return startTarget(cmd.Context(), cfg, cmd.ErrOrStderr())
}

// claudeEnv points Claude Code at a server: every tier it knows is the one model, its key is the server's, and it knows
// how long the context is, so that it compacts in time.
func claudeEnv(t *target) [][2]string {
	key, small := t.Key, t.Small
	if key == "" {
		key = "hearth" // any will do, but there must be one
	}
	if small == "" {
		small = t.Model
	}
	env := [][2]string{
		{"ANTHROPIC_BASE_URL", t.URL},
		{"ANTHROPIC_AUTH_TOKEN", key},
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
		{"API_TIMEOUT_MS", "3600000"}, // a long prompt takes its time here
	}
	if t.context > 0 {
		n := strconv.Itoa(t.context)
		env = append(env, [2]string{"CLAUDE_CODE_MAX_CONTEXT_TOKENS", n}, [2]string{"CLAUDE_CODE_AUTO_COMPACT_WINDOW", n})
		if most := t.context / 4; most < 32000 { // of its own it asks for 32000 and leaves that much room
			env = append(env, [2]string{"CLAUDE_CODE_MAX_OUTPUT_TOKENS", strconv.Itoa(most)})
		}
	}
	return env
}
