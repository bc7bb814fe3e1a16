package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"hearth/internal/catalog"
	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/hub"
	"hearth/internal/server"
)

func newLaunchCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "launch",
		Short: "Run a coding agent on a local model",
		Long:  `Runs a coding agent with its settings pointed at hearth.`,
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLaunchClaudeCmd())
	return cmd
}

// target is a server that an agent is pointed at.
type target struct {
	state
	context int // tokens
	kind    chat.ModelKind
	close   func() // ends a server that was started for the agent
}

// healthTimeout bounds the look at a server that says it runs, healthEvery is how often one that loads is looked at.
const (
	healthTimeout = 5 * time.Second
	healthEvery   = 200 * time.Millisecond
)

// running finds a server that says it runs and does, with the model asked for if there is one. It returns nil if there
// is none.
func running(ctx context.Context, model string, notes io.Writer) (*target, error) {
	all, err := announced()
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if model != "" && s.Model != model {
			continue
		}
		h, err := askHealth(ctx, s.URL)
		if err == nil && h.Model == s.Model && h.Status == "loading" {
			fmt.Fprintf(notes, "hearth: %s is still loading %s; waiting for it\n", s.URL, s.Model)
			h, err = loaded(ctx, s.URL)
		}
		if err == nil && h.Model == s.Model && h.Status != "draining" {
			return &target{state: *s, context: h.Context, kind: h.Kind, close: func() {}}, nil
		}
	}
	return nil, nil
}

// loaded waits until a server has its model: how long the context is, is not known before.
func loaded(ctx context.Context, url string) (*server.Health, error) {
	every := time.NewTicker(healthEvery)
	defer every.Stop()
	for {
		if h, err := askHealth(ctx, url); err != nil || h.Status != "loading" {
			return h, err
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func askHealth(ctx context.Context, url string) (*server.Health, error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	h := &server.Health{}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET /health: %s", res.Status)
	}
	return h, json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(h)
}

// startTarget serves cfg's model in this process, for as long as the agent runs.
func startTarget(ctx context.Context, cfg *config.Config, notes io.Writer) (*target, error) {
	cache := hub.Cache{Dir: cfg.HubCache}
	src, err := catalog.Find(cfg.Model, cache)
	if err != nil {
		return nil, err
	}
	models := catalog.New(src, cfg)
	all, err := withSmall(models, cfg, cache)
	if err != nil {
		return nil, err
	}
	listeners, err := listen(cfg)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	opts := serverOptions(cfg, models, slog.New(slog.DiscardHandler))
	opts.Models = all
	served := make(chan struct{})
	go func() {
		_ = server.New(opts).Serve(ctx, listeners...) // the agent says what it cannot reach
		close(served)
	}()
	t := &target{state: state{URL: baseURL(listeners[0]), Model: models.ID(), Demo: src.Demo(), Key: cfg.APIKey()}, close: func() {
		stop()
		<-served
		_ = all.Close()
	}}
	if small, ok := all.(*catalog.Small); ok {
		t.Small = small.ID()
	}
	fmt.Fprintf(notes, "hearth: no server runs; loading %s for as long as the agent does\n", models.ID())
	if err := all.Load(backends()); err != nil {
		t.close()
		return nil, err
	}
	m := models.List()[0]
	t.context, t.kind = m.Context, m.Kind
	return t, nil
}

// runAgent runs a program on the terminal until it ends, and passes its exit status on. Ctrl-C reaches it by itself; it
// decides what that means.
func runAgent(cmd *cobra.Command, program string, args []string, env [][2]string) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM)
	defer stop()
	c := exec.CommandContext(ctx, program, args...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.Env = config.ChildEnv(env)
	c.Stdin, c.Stdout, c.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	err := c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &exitError{code: max(exit.ExitCode(), 1), err: err}
	}
	return err
}

// exitError ends the program with the status of another, which has said why.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// exports prints variables for a shell to read.
func exports(w io.Writer, env [][2]string) {
	for _, kv := range env {
		fmt.Fprintf(w, "export %s='%s'\n", kv[0], strings.ReplaceAll(kv[1], "'", `'\''`))
	}
}
