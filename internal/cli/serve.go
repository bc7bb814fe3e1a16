package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"hearth/internal/backend/cpu"
	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/hub"
	"hearth/internal/model"
	"hearth/internal/server"
	"hearth/internal/wire"
	"hearth/internal/wire/anthropic"
	"hearth/internal/wire/openai"
)

func newServeCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve [MODEL]",
		Short: "Serve a model over HTTP",
		Long: `Serves MODEL over the Anthropic Messages API (/v1/messages) and the OpenAI API (/v1/chat/completions). MODEL is a
folder, an id that is in the Hugging Face cache, or demo, the tiny model inside hearth, which is also the default.`,
		Example: `  hearth serve
  hearth serve mlx-community/Qwen3-0.6B-4bit --port 8081
  hearth serve ./my-model --api-key "$(openssl rand -hex 16)" --host 0.0.0.0`,
		Args: maxArgs(1),
	}
	cfg := settings(cmd, config.Groups...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := load(cmd, cfg); err != nil {
			return err
		}
		if len(args) > 0 {
			cfg.Model = args[0]
		}
		return serve(cmd.Context(), cfg, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

// greeting is how long the first lines wait for the model: one that loads at once, or not at all, belongs into them.
const greeting = 300 * time.Millisecond

// serve listens first and loads then, so that /health answers from the start.
func serve(ctx context.Context, cfg *config.Config, stdout, stderr io.Writer) error {
	ctx, restore := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer restore()
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	cache := hub.Cache{Dir: cfg.HubCache}
	src, err := catalog.Find(cfg.Model, cache)
	if err != nil {
		return err
	}
	listeners, err := listen(cfg)
	if err != nil {
		return err
	}
	// The engine's threads compute for as long as a step takes; the server's goroutines get processors of their own.
	runtime.GOMAXPROCS(cpu.Threads() + 2)
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level(cfg.LogLevel)}))
	models := catalog.New(src, cfg)
	served := make(chan error, 1)
	opts := serverOptions(cfg, models, log)
	if level(cfg.LogLevel) <= slog.LevelInfo {
		opts.Perf = stderr
	}
	go func() { served <- server.New(opts).Serve(ctx, listeners...) }()
	loaded := make(chan error, 1)
	go func() { loaded <- models.Load(backends()) }()

	b := banner{cfg: cfg, src: src, models: models, cache: cache, listeners: listeners}
	greet, shown := time.After(greeting), false
	for {
		select {
		case <-greet:
			if !shown {
				b.print(stdout)
				shown = true
			}
		case err := <-loaded:
			if err != nil {
				stop()
				return firstError(err, <-served)
			}
			if !shown {
				b.print(stdout)
				shown = true
			}
			if err := printWarnings(ctx, stderr, models); err != nil {
				stop()
				return firstError(err, <-served)
			}
			w := models.Weights()
			fmt.Fprintf(stdout, "ready in %.1f s: %s\n", w.Took.Seconds(), w.Summary())
		case <-ctx.Done():
			restore() // a second signal quits at once
			fmt.Fprintf(stderr, "hearth: stopping; running replies may go on for %s, another Ctrl-C quits at once\n", cfg.DrainTimeout)
			err := <-served
			return firstError(err, models.Close())
		case err := <-served:
			return firstError(err, models.Close())
		}
	}
}

// printWarnings says where settings contradict the model, a line each.
func printWarnings(ctx context.Context, w io.Writer, models *catalog.Catalog) error {
	gen, err := models.Open(ctx, "")
	if err != nil {
		return err
	}
	if g, ok := gen.(interface{ Warnings() []string }); ok {
		for _, line := range g.Warnings() {
			fmt.Fprintln(w, "hearth: "+line)
		}
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// serverOptions wires the protocols. This is the list of them.
func serverOptions(cfg *config.Config, models *catalog.Catalog, log *slog.Logger) server.Options {
	v, c := buildVersion()
	var keys []string
	if cfg.APIKey != "" {
		keys = []string{cfg.APIKey}
	}
	return server.Options{
		Models:    models,
		Protocols: []wire.Protocol{anthropic.Protocol{}, openai.Protocol{}},
		Keys:      keys, AllowedHosts: cfg.AllowedHosts, AllowedOrigins: cfg.AllowedOrigins,
		Version: v, Commit: c,
		Health: func() server.Health { return health(cfg, models) },
		Log:    log, PeakMemory: peakMemory,
		MaxBody: config.MaxBodyBytes,
		Drain:   cfg.DrainTimeout,
	}
}

func health(cfg *config.Config, models *catalog.Catalog) server.Health {
	m := models.List()[0]
	h := server.Health{Status: "loading", Model: m.ID, Context: m.Context}
	if models.Ready() {
		h.Status = "ok"
	}
	s := models.Stats()
	h.PromptCache = server.PromptCache{Enabled: s.Cache.Enabled, Entries: s.Cache.Entries, Bytes: s.Cache.Bytes, CapBytes: s.Budget}
	on := m.Thinking && (cfg.EnableThinking == nil || *cfg.EnableThinking)
	h.Thinking = server.Thinking{Enabled: on, Exposed: on}
	return h
}

func level(name string) slog.Level {
	var l slog.Level
	if l.UnmarshalText([]byte(name)) != nil {
		return slog.LevelInfo
	}
	return l
}

// banner is what serve says first.
type banner struct {
	cfg       *config.Config
	src       *catalog.Source
	models    *catalog.Catalog
	cache     hub.Cache
	listeners []net.Listener
}

func (b *banner) print(w io.Writer) {
	v, c := buildVersion()
	url := baseURL(b.listeners[0])
	fmt.Fprintf(w, "hearth %s (%s)\n", v, c)
	fmt.Fprintf(w, "listening on %s", url)
	for _, l := range b.listeners[1:] {
		fmt.Fprintf(w, " and %s", baseURL(l))
	}
	fmt.Fprintf(w, "\nmodel: %s", b.models.ID())
	if b.src.Demo() {
		fmt.Fprint(w, ", a tiny demo inside hearth: it shows that everything works and knows next to nothing")
	} else {
		fmt.Fprintf(w, " (%s)", b.src.Path)
	}
	fmt.Fprintln(w)
	if b.src.Demo() {
		fmt.Fprintf(w, "       for a real model: %s\n", realModel(b.cache))
	}
	fmt.Fprintf(w, "auth:  %s\n", b.auth())
	fmt.Fprintf(w, "try:   %s\n", b.curl(url))
}

// realModel is the command that serves a model worth talking to, the newest one on this disk if there is any.
func realModel(cache hub.Cache) string {
	var best *hub.Entry
	for _, e := range cache.List() {
		if e.Whole() && slices.Contains(model.Types(), e.ModelType) && (best == nil || e.Time.After(best.Time)) {
			best = &e
		}
	}
	if best == nil {
		return "hf download mlx-community/Qwen3-0.6B-4bit && hearth serve mlx-community/Qwen3-0.6B-4bit"
	}
	return "hearth serve " + best.ID
}

func (b *banner) auth() string {
	if b.cfg.APIKey != "" {
		return "a key is required, set by " + b.cfg.Origin("api-key")
	}
	if b.public() {
		return "none; whoever can reach this address can use it (--api-key KEY asks for one)"
	}
	return "none; any key or no key is accepted (--api-key KEY asks for one)"
}

// public reports whether other machines can reach a listener.
func (b *banner) public() bool {
	return slices.ContainsFunc(b.listeners, func(l net.Listener) bool { return !l.Addr().(*net.TCPAddr).IP.IsLoopback() })
}

func (b *banner) curl(url string) string {
	key := ""
	switch from := b.cfg.Origin("api-key"); {
	case b.cfg.APIKey == "":
	case strings.HasPrefix(from, "--"):
		key = ` -H "x-api-key: KEY"`
	default:
		key = ` -H "x-api-key: $` + from + `"`
	}
	return `curl ` + url + `/v1/messages` + key + ` -H 'content-type: application/json' -d '{"max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}'`
}
