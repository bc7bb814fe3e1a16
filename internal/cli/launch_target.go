package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hearth/internal/catalog"
	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/demo"
	"hearth/internal/server"
)

// target is a server that an agent is pointed at.
type target struct {
	state
	own     bool   // it was started for the agent
	keyFrom string // where the key is from if the server does not tell it
	context int    // tokens
	kind    chat.ModelKind
	close   func() // ends a server that was started for the agent
}

// about says in a line which server it is and what an agent gets there.
func (t *target) about(a *agent) string {
	which := "the server"
	if t.own {
		which = "a server of its own"
	}
	key := "no key is asked for"
	switch {
	case !t.Locked:
	case t.keyFrom != "":
		key = "with the key from " + t.keyFrom
	case t.KeyOf != "":
		key = "with the key of " + t.KeyOf
	default:
		key = "with its key"
	}
	small := ""
	if a.small && t.Small != "" {
		small = fmt.Sprintf(" and %s", t.Small)
	}
	return fmt.Sprintf("hearth: %s uses %s at %s (process %d): %s%s, %d tokens of context, %s\n", a.name, which, t.URL, t.PID, t.Model, small, t.context, key)
}

// anyKey is the server's key. Agents want one also where none is asked for, and any will do there.
func (t *target) anyKey() string { return cmp.Or(t.Key, "hearth") }

// findTarget finds the server to use, or starts one.
func findTarget(cmd *cobra.Command, a *agent, cfg *config.Config, o launchOptions) (*target, error) {
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
		return nil, console.Hintf(errors.New("no server runs"), "start one: hearth serve %s", cmp.Or(cfg.Model, someModel))
	case s == nil:
		none := "no server runs"
		if also != "" {
			none += " with it"
		}
		fmt.Fprintf(notes, "hearth: %s; loading %s for as long as %s runs\n", none, cmp.Or(cfg.Model, demo.Name), a.name)
		return startTarget(ctx, newPuller(cmd, cfg))
	}
	t, err := attach(ctx, s, notes)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(t.URL, unixPrefix) {
		return nil, console.Hintf(fmt.Errorf("the server that runs listens on %s alone, where %s cannot call it", t.URL, a.name),
			"have it listen on a port too: hearth serve --listen %s --listen 127.0.0.1:8080, or ListenStream=127.0.0.1:8080 in its .socket unit", t.URL)
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

// serves reports whether name means the server's model, which may be named without its owner.
func (s *state) serves(name string) bool {
	return name == "" || s.Model == name || strings.HasSuffix(s.Model, "/"+name)
}

// healthTimeout bounds the look at a server that says it runs, healthEvery is how often one that loads is looked at.
const (
	healthTimeout = 5 * time.Second
	healthEvery   = 200 * time.Millisecond
)

// running lists the servers that say they run and do, the latest first.
func running(ctx context.Context) ([]*state, error) {
	all, err := announced()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(s *state) bool {
		h, err := s.health(ctx)
		return err != nil || h.Model != s.Model || h.Status == "draining"
	}), nil
}

// choose is the first server with the model that was asked for, one that agents can use before others; nil if there is none.
func choose(all []*state, model string, demoToo bool) *state {
	var chosen *state
	for _, s := range all {
		if s.serves(model) && (chosen == nil || chosen.Demo && !s.Demo && !demoToo) {
			chosen = s
		}
	}
	return chosen
}

// others says which servers run besides the chosen one; "" if there are none.
func others(all []*state, chosen *state) string {
	var names []string
	for _, s := range all {
		if s != chosen {
			names = append(names, fmt.Sprintf("%s at %s", s.Model, s.URL))
		}
	}
	return strings.Join(names, ", ")
}

// attach points at a server, after it has loaded its model.
func attach(ctx context.Context, s *state, notes io.Writer) (*target, error) {
	h, err := s.health(ctx)
	if err == nil && h.Status == "loading" {
		fmt.Fprintf(notes, "hearth: waiting for the server at %s (process %d), which loads %s\n", s.URL, s.PID, s.Model)
		h, err = s.loaded(ctx)
	}
	if err != nil {
		return nil, console.Hintf(fmt.Errorf("the server at %s (process %d) ended while it loaded %s: %w", s.URL, s.PID, s.Model, err), "what it printed says why")
	}
	return &target{state: *s, context: h.Context, kind: h.Kind, close: func() {}}, nil
}

// loaded waits until a server has its model: how long the context is, is not known before.
func (s *state) loaded(ctx context.Context) (*server.Health, error) {
	every := time.NewTicker(healthEvery)
	defer every.Stop()
	for {
		if h, err := s.health(ctx); err != nil || h.Status != "loading" {
			return h, err
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// health asks the server how it is.
func (s *state) health(ctx context.Context) (*server.Health, error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base()+"/health", nil)
	if err != nil {
		return nil, err
	}
	res, err := s.client().Do(r)
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

// startTarget serves the model of the settings in this process, for as long as the agent runs.
func startTarget(ctx context.Context, p *puller) (*target, error) {
	cfg := p.cfg
	src, err := p.find(ctx)
	if err != nil {
		return nil, err
	}
	also, err := findBeside(ctx, p, "small-model")
	if err != nil {
		return nil, err
	}
	models := catalog.New(src, cfg)
	also.add(models)
	on, err := openSockets(cfg, nil)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	opts := serverOptions(cfg, models, nil, slog.New(slog.DiscardHandler))
	on.set(&opts)
	served := make(chan struct{})
	go func() {
		_ = server.New(opts).Serve(ctx, on.listeners...) // the agent says what it cannot reach
		close(served)
	}()
	t := &target{state: state{PID: os.Getpid(), Model: models.ID(), Demo: src.Demo()}, own: true, close: func() {
		stop()
		<-served
		_ = models.Close()
	}}
	t.setKey(cfg)
	on.describe(&t.state)
	if small := models.Small(); small != nil {
		t.Small = small.ID()
	}
	if err := models.Load(backends()); err != nil {
		t.close()
		return nil, err
	}
	m := models.Main().Model()
	t.context, t.kind = m.Context, m.Kind
	return t, nil
}
