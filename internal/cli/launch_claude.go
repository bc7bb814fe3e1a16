package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/demo"
)

// claudeOptions are the flags that launch claude has of its own.
type claudeOptions struct {
	demo, force, print bool
}

func newLaunchClaudeCmd() *cobra.Command {
	var o claudeOptions
	cmd := &cobra.Command{
		Use:   "claude [-- ARGS]",
		Short: "Run Claude Code on a local model",
		Long: `Runs Claude Code, which must be installed, on the model of a hearth server of this user: the latest, or the one that
serves the model that is named. A server that still loads is waited for. Without one it serves a model itself for as
long as Claude Code runs. It says which server it is. ARGS go to Claude Code. Its settings reach it as environment
variables; with --print they are printed for a shell instead, and nothing is run.

` + fmt.Sprintf(`Claude Code's prompt has some %d tokens. A context of %d tokens is enough for sessions of any length, %d are the
least that is accepted without --force.`, claudePrompt, claudeEnough, claudeLeast),
		Example: `  hearth launch claude --model mlx-community/Qwen3-Coder-30B-A3B-Instruct-4bit
  hearth launch claude -- -p "what does this repository do?"
  eval "$(hearth launch claude --print)" && claude`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() > 0 || len(args) > 0 && cmd.ArgsLenAtDash() < 0 {
				return console.Hintf(fmt.Errorf("unexpected argument %q", args[0]), "arguments of Claude Code go after --: %s -- %s", cmd.CommandPath(), strings.Join(args, " "))
			}
			return nil
		},
	}
	cfg := settings(cmd, config.Listen, config.Access, config.Model, config.Run, config.Sampling, config.API)
	cmd.Flags().BoolVar(&o.demo, "demo", false, "allow the demo model, which cannot do an agent's work")
	cmd.Flags().BoolVar(&o.force, "force", false, "go on where the context is too small for long sessions")
	cmd.Flags().BoolVar(&o.print, "print", false, "print the variables as shell exports and run nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("port") {
			cfg.Port = 0 // a server of one's own is in nobody's way
		}
		if err := load(cmd, cfg); err != nil {
			return err
		}
		program, err := exec.LookPath("claude")
		if err != nil && !o.print {
			return console.Hintf(errors.New("there is no claude on the path: Claude Code is not installed"), "npm install -g @anthropic-ai/claude-code")
		}
		t, err := claudeTarget(cmd, cfg, o)
		if err != nil {
			return err
		}
		defer t.close()
		note, err := claudeCan(t, o, cmd.CommandPath())
		if err != nil {
			return err
		}
		fmt.Fprint(cmd.ErrOrStderr(), t.about("Claude Code"), note)
		if o.print {
			exports(cmd.OutOrStdout(), claudeEnv(t))
			return nil
		}
		return runAgent(cmd, program, args, claudeEnv(t))
	}
	return cmd
}

// claudeTarget finds the server to use, or starts one.
func claudeTarget(cmd *cobra.Command, cfg *config.Config, o claudeOptions) (*target, error) {
	ctx, notes := cmd.Context(), cmd.ErrOrStderr()
	all, err := running(ctx)
	if err != nil {
		return nil, err
	}
	s := choose(all, cfg.Model, o.demo)
	also := others(all, s)
	switch {
	case s == nil && o.print && also != "":
		return nil, console.Hintf(fmt.Errorf("no server runs with %s; there are %s", cfg.Model, also), "start one: hearth serve %s", cfg.Model)
	case s == nil && o.print:
		return nil, console.Hintf(errors.New("no server runs"), "start one: hearth serve %s", cfg.Model)
	case s == nil:
		none := "no server runs"
		if also != "" {
			none += " with it"
		}
		fmt.Fprintf(notes, "hearth: %s; loading %s for as long as Claude Code runs\n", none, cmp.Or(cfg.Model, demo.Name))
		return startTarget(ctx, cfg)
	}
	t, err := attach(ctx, s, notes)
	if err != nil {
		return nil, err
	}
	if t.Locked && t.Key == "" {
		if t.Key = cfg.APIKey(); t.Key == "" {
			return nil, console.Hintf(errors.New("the server that runs asks for a key and knows no more than the hashes of those it accepts"),
				"name yours: %s --api-key KEY", cmd.CommandPath())
		}
		t.keyFrom = cmp.Or(cfg.Origin("api-key"), cfg.Origin("api-key-file"), cfg.Origin("operator-key"))
	}
	if also != "" {
		fmt.Fprintf(notes, "hearth: there are also %s; --model NAME chooses\n", also)
	}
	return t, nil
}

// What Claude Code needs, measured with the version that interop/claude pins; docs/claude-code.md says how.
const (
	claudePrompt = 14_000 // tokens before a word of the user's, rounded up: others' tools and a CLAUDE.md come on top
	claudeReply  = 2_048  // the shortest limit of a reply that is worth asking for
	// With claudeLeast, a session of small files goes on for ever; after one in which large ones were read last, what Claude Code
	// shows again of them (five files of up to 5,000 tokens) leaves no room. With claudeEnough it does.
	claudeLeast  = 40_960
	claudeEnough = 81_920
	// Claude Code takes no smaller window for compaction as a setting, and compacts where the longest reply and claudeSpare more
	// would not fit any more.
	claudeWindow = 100_000
	claudeSpare  = 13_000
)

// claudeCan refuses a server with which Claude Code cannot work, or only until its context is full, and has a line to print about
// one where that may happen.
func claudeCan(t *target, o claudeOptions, command string) (note string, err error) {
	which := fmt.Sprintf("the server at %s (process %d) has %s: ", t.URL, t.PID, t.Model)
	more := fmt.Sprintf("where the model can, start that server with --context-length %d", claudeEnough)
	if t.own {
		which, more = "", fmt.Sprintf("where the model can, ask for more: %s --context-length %d", command, claudeEnough)
	}
	other := fmt.Sprintf("name a model: %s --model mlx-community/Qwen3-Coder-30B-A3B-Instruct-4bit", command)
	refuse := func(hint, format string, args ...any) (string, error) {
		return "", console.Hintf(fmt.Errorf("%s%w", which, fmt.Errorf(format, args...)), "%s", hint)
	}
	fits := t.context >= claudePrompt+claudeReply
	switch {
	case t.kind == chat.Completes:
		return refuse("use its instruct or chat version; for what it is worth, "+makeChat, "%s is %s, so Claude Code cannot use it", t.Model, baseModel)
	case t.kind != chat.Chats:
		return refuse(other, "%s is a model for %s and does not chat, so Claude Code cannot use it", t.Model, t.kind)
	case t.Demo && !fits:
		return refuse(other, "the demo model cannot do an agent's work, and Claude Code's prompt of some %d tokens does not fit into its context of %d", claudePrompt, t.context)
	case t.Demo && !o.demo:
		return refuse(other+"; --demo insists", "the demo model cannot do an agent's work")
	case !fits:
		return refuse(more+"; or "+other, "Claude Code's prompt of some %d tokens does not fit into a context of %d", claudePrompt, t.context)
	case t.context < claudeLeast && !o.force:
		return refuse(more+"; --force goes on all the same",
			"a context of %d tokens is too small for Claude Code: its prompt takes some %d, and a session that fills the rest does not go on; %d are enough",
			t.context, claudePrompt, claudeEnough)
	case t.context < claudeLeast:
		note = "a session that fills them may not go on"
	case t.context < claudeEnough:
		note = "a session that fills them is compacted, but may not go on if it has just read several files of thousands of tokens"
	default:
		return "", nil
	}
	return fmt.Sprintf("hearth: %d tokens of context are few for Claude Code: %s; %d are enough (--context-length)\n", t.context, note, claudeEnough), nil
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
		{"CLAUDE_CODE_DISABLE_1M_CONTEXT", "1"},             // what /model calls the default would have a million tokens
		{"CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY", "1"}, // its /model lists what the server has
		{"API_TIMEOUT_MS", "3600000"},                       // a long prompt takes its time here
	}
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
