package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/peterh/liner"
	"github.com/spf13/cobra"

	"hearth/internal/catalog"
	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/regular"
)

func newRunCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run [MODEL] [PROMPT]",
		Short: "Ask a model on the terminal",
		Long: `Answers PROMPT on stdout. Without PROMPT it answers what is piped into it, or, on a terminal, holds a conversation.
A single argument is MODEL unless it has a space in it and no such folder exists; MODEL is a folder, an id that is in
the Hugging Face cache, or demo, which is the default. Speed goes to stderr. What a model thinks before it answers is
shown, dimmed, on a terminal only. A base model, which has no chat template, continues PROMPT, or every line by itself.`,
		Example: `  hearth run "What is 17 + 25?"
  hearth run mlx-community/Qwen3-0.6B-4bit "Write a haiku about Go"
  git diff | hearth run ./my-model
  hearth run ./a-model-that-sees "What is this?" --image photo.jpg
  hearth run`,
		Args: console.MaxArgs(2),
	}
	cfg := settings(cmd, config.Model, config.Hub, config.Run, config.Sampling)
	cmd.ValidArgsFunction = completeModel(cfg, 0, toServe)
	var images []string
	cmd.Flags().StringArrayVar(&images, "image", nil, "show the model the image in `FILE` before the first text; again for another one")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := load(cmd, cfg); err != nil {
			return err
		}
		prompt, given := arguments(cfg, args)
		if !given && !console.IsTerminal(cmd.InOrStdin()) {
			b, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), config.MaxBodyBytes))
			if err != nil {
				return fmt.Errorf("read stdin: %w", err)
			}
			if prompt, given = strings.TrimRight(string(b), "\r\n"), true; prompt == "" {
				return console.Hintf(errors.New("there is no prompt: stdin is empty"), `for example: hearth run demo "Hello"`)
			}
		}
		shown, err := readImages(images, cfg.MaxImageBytes)
		if err != nil {
			return err
		}
		return runModel(cmd, cfg, prompt, given, shown)
	}
	return cmd
}

// arguments sorts out MODEL and PROMPT.
func arguments(cfg *config.Config, args []string) (prompt string, given bool) {
	switch len(args) {
	case 2:
		cfg.SetModel(args[0])
		return args[1], true
	case 1:
		if _, err := os.Stat(args[0]); err != nil && strings.ContainsAny(args[0], " \n") {
			return args[0], true
		}
		cfg.SetModel(args[0])
	}
	return "", false
}

// runModel loads the model and answers, once or in a loop.
func runModel(cmd *cobra.Command, cfg *config.Config, prompt string, once bool, images []chat.Part) (err error) {
	src, err := newPuller(cmd, cfg).find(cmd.Context())
	if err != nil {
		return err
	}
	models := catalog.New(src, cfg)
	if err := models.Load(backends()); err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, models.Close()) }()
	for _, w := range models.Warnings() {
		fmt.Fprintf(cmd.ErrOrStderr(), "hearth: warning: %s: %s\n", w.Folder, w.Text)
	}
	printWarnings(cmd.ErrOrStderr(), models)
	gen, err := models.Open(cmd.Context(), "")
	if err != nil {
		return err
	}
	t := &talk{gen: gen, out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr(), terminal: console.IsTerminal(cmd.OutOrStdout())}
	if len(images) > 0 && !gen.Model().Sees {
		return console.Hintf(fmt.Errorf("%s cannot see images", models.ID()), "hearth show %s says what a model can do", models.ID())
	}
	t.images = images
	if t.base = gen.Model().Kind == chat.Completes; t.base {
		t.most = baseTokens(models.Settings())
		fmt.Fprintf(t.notes, "hearth: %s is %s; %s%s\n", models.ID(), baseModel, t.continues(once), makeChat)
	}
	if once {
		return interruptible(cmd.Context(), func(ctx context.Context) error { return t.turn(ctx, prompt) })
	}
	fmt.Fprintf(t.notes, "%s: %s\n", models.ID(), models.Main().Summary())
	line := liner.NewLiner()
	defer line.Close()
	line.SetCtrlCAborts(true)
	return t.loop(cmd.Context(), line)
}

// readImages reads files of at most so many bytes as the images of a message.
func readImages(names []string, most int64) (all []chat.Part, err error) {
	for _, name := range names {
		b, err := regular.Read(name, most)
		if err != nil {
			return nil, fmt.Errorf("--image: %w", err)
		}
		m := &chat.Media{Kind: chat.Image, Name: filepath.Base(name), File: b, Bytes: len(b), Path: "--image " + name}
		all = append(all, chat.Part{Kind: chat.PartMedia, Media: m})
	}
	return all, nil
}

// interruptible runs f with a context that Ctrl-C ends.
func interruptible(ctx context.Context, f func(context.Context) error) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	err := f(ctx)
	if ctx.Err() != nil && err == nil {
		err = errInterrupted
	}
	return err
}

var errInterrupted = errors.New("interrupted")

// prompter reads lines; *liner.State is one.
type prompter interface {
	Prompt(string) (string, error)
	AppendHistory(string)
}

const talkHelp = `Type to talk. Ctrl-C stops an answer, Ctrl-D ends the conversation.
  /clear  forget the conversation
  /help   show this
  /exit   leave
`

const continueHelp = `Type the beginning of a text to have it continued. Ctrl-C stops, Ctrl-D leaves.
  /help   show this
  /exit   leave
`

// fewTokens is how long a text gets that a base model continues, unless a setting says how long: few such texts end.
const fewTokens = 256

// baseTokens is the limit of a text that a base model continues, 0 where the settings have one.
func baseTokens(cfg *config.Config) int {
	if cfg.MaxTokens > 0 || cfg.MaxTokensCap > 0 {
		return 0
	}
	return fewTokens
}

// loop holds a conversation until the user leaves.
func (t *talk) loop(ctx context.Context, in prompter) error {
	fmt.Fprint(t.notes, "/help lists the commands\n")
	for {
		text, err := in.Prompt("> ")
		switch {
		case errors.Is(err, liner.ErrPromptAborted):
			continue
		case errors.Is(err, io.EOF):
			fmt.Fprintln(t.out)
			return nil
		case err != nil:
			return fmt.Errorf("read prompt: %w", err)
		}
		command := strings.TrimSpace(text)
		if !t.base { // where a text ends counts for what continues it
			text = command
		}
		switch command {
		case "":
			continue
		case "/exit", "/quit", "/bye":
			return nil
		case "/help", "/?":
			if t.base {
				fmt.Fprint(t.notes, continueHelp)
			} else {
				fmt.Fprint(t.notes, talkHelp)
			}
			continue
		case "/clear":
			t.messages = nil
			if t.base {
				fmt.Fprintln(t.notes, "there is nothing to forget")
			} else {
				fmt.Fprintln(t.notes, "the conversation is forgotten")
			}
			continue
		}
		in.AppendHistory(text)
		err = interruptible(ctx, func(ctx context.Context) error { return t.turn(ctx, text) })
		var refused *chat.Error
		switch {
		case errors.Is(err, errInterrupted):
			fmt.Fprintln(t.notes, "(stopped)")
		case errors.As(err, &refused):
			report(t.notes, err)
		case err != nil:
			return err
		}
	}
}
