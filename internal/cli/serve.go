package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"hearth/internal/backend/cpu"
	"hearth/internal/catalog"
	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/demo"
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
folder, an id that is in the Hugging Face cache, or demo, the tiny model inside hearth, which is also the default.
Flags of mlx-lm's server and of vllm-mlx are taken too; docs/config.md says what becomes of each. hearth config, with the
same flags, prints all settings and where they come from.`,
		Example: `  hearth serve
  hearth serve mlx-community/Qwen3-0.6B-4bit --port 8081
  hearth serve ./my-model --api-key "$(openssl rand -hex 16)" --host 0.0.0.0`,
		Args: console.MaxArgs(1),
	}
	cfg := serverSettings(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		// Nobody need read what a server prints, and it goes on when nobody can.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
		stdout, stderr := newPrinter(cmd.OutOrStdout()), newPrinter(cmd.ErrOrStderr())
		cmd.SetOut(stdout)
		cmd.SetErr(stderr)
		err := load(cmd, cfg)
		if err == nil {
			if len(args) > 0 {
				cfg.SetModel(args[0])
			}
			remark(stderr, cfg)
			err = serve(cmd.Context(), cfg, stdout, stderr)
		}
		if err != nil && !errors.Is(err, errListed) {
			report(stderr, err)
			err = &exitError{code: 1, err: err}
		}
		stdout.Close(flushLimit)
		stderr.Close(flushLimit)
		return err
	}
	return cmd
}

// remark says what became of flags of other servers.
func remark(w io.Writer, cfg *config.Config) {
	for _, r := range cfg.Replies() {
		fmt.Fprintf(w, "hearth: %s: %s\n", r.Kind(), r.Line())
	}
}

// untilSignal is a context that SIGINT, SIGTERM and SIGHUP end. After that another SIGINT or SIGTERM ends the process at once.
// Another SIGHUP does not: a terminal that goes away sends it more than once. Where it was ignored from the start (nohup), it
// stays so.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(parent)
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(got, syscall.SIGHUP)
	}
	go func() {
		select {
		case <-got:
			signal.Reset(syscall.SIGINT, syscall.SIGTERM)
			stop()
		case <-ctx.Done():
		}
	}()
	return ctx, stop
}

// closeTimeout is how long a server that was told to end takes at most, beyond --drain-timeout, for what runs to be cut off and
// for its models to end.
const closeTimeout = time.Minute

// within gives f its time. What takes longer is left behind, so that the process ends nevertheless.
func within(limit time.Duration, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case err := <-done:
		return err
	case <-t.C:
		return fmt.Errorf("what runs has not ended within %s and is left behind; what the prompt cache held may not be on disk", limit)
	}
}

// greeting is how long the first lines wait for the model: one that loads at once, or not at all, belongs into them.
const greeting = 300 * time.Millisecond

// serve listens first and loads then, so that /health answers from the start.
func serve(ctx context.Context, cfg *config.Config, stdout, stderr io.Writer) error {
	ctx, stop := untilSignal(ctx)
	defer stop()

	cache := hub.Cache{Dir: cfg.HubCache}
	if err := cfg.Refused(); err != nil {
		return console.Hintf(err, "serve one of its models: hearth serve MODEL")
	}
	src, err := findModel(cfg, cache)
	if err != nil {
		return err
	}
	if cfg.DebugRequestDir != "" {
		if err := os.MkdirAll(cfg.DebugRequestDir, 0o700); err != nil {
			return fmt.Errorf("make the folder for request summaries: %w", err)
		}
	}
	listeners, err := listen(cfg)
	if err != nil {
		return err
	}
	// The engine's threads compute for as long as a step takes; the server's goroutines get processors of their own.
	runtime.GOMAXPROCS(cpu.Threads() + 2)
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level(cfg.LogLevel)}))
	_, forced := config.Environ(kernelsEnv)
	warnKernels(log, forced)
	models := catalog.New(src, cfg)
	all, err := withSmall(models, cfg, cache)
	if err != nil {
		return err
	}
	encoders, err := withEncoders(all, models, cfg, cache)
	if err != nil {
		return err
	}
	models.Note = func(line string) { log.Info(line) }
	models.Keep = &catalog.Keep{Build: buildMark(), Warn: func(line string) { log.Warn(line) }}
	served := make(chan error, 1)
	opts := serverOptions(cfg, models, log)
	opts.Network = public(listeners)
	opts.Models, opts.Encoders, opts.Monitor = encoders, encoders, monitor{cfg, models, all, encoders}
	if level(cfg.LogLevel) <= slog.LevelInfo {
		opts.Perf = stderr
	}
	go func() { served <- server.New(opts).Serve(ctx, listeners...) }()
	loaded := make(chan error, 1)
	go func() {
		bs := apart(cfg, log, stderr)
		loaded <- encoders.Load(bs, all.Load(bs))
	}()

	about := &state{PID: os.Getpid(), URL: baseURL(listeners[0]), Model: models.ID(), Demo: src.Demo(), Started: time.Now()}
	about.setKey(cfg)
	if small, ok := all.(*catalog.Small); ok {
		about.Small = small.ID()
	}
	withdraw, err := announce(about)
	if err != nil {
		log.Warn("hearth launch will not find this server", "error", err)
	} else {
		defer withdraw()
	}
	b := banner{cfg: cfg, src: src, models: models, cache: cache, listeners: listeners}
	greet, known, shown, ready := time.After(greeting), models.Known(), false, false
	end := func() error {
		return within(cfg.DrainTimeout+closeTimeout, func() error {
			err := <-served
			select {
			case failed := <-loaded: // nobody will wait for it any more
				ready, err = true, firstError(err, failed)
			default:
			}
			if !ready { // there is nothing to keep, and no way to break a load off but to end the process
				return err
			}
			return firstError(err, encoders.Close(), all.Close())
		})
	}
	for {
		if !shown && greet == nil && known == nil {
			b.print(stdout)
			fmt.Fprintln(stdout, "loading: requests wait until the model is ready")
			shown = true
		}
		select {
		case <-greet:
			greet = nil
		case <-known:
			known = nil
		case err := <-loaded:
			if err != nil {
				stop()
				return firstError(err, <-served)
			}
			ready = true
			if !shown {
				b.print(stdout)
				shown = true
			}
			b.try(stdout)
			for _, w := range folderWarnings(all, encoders) {
				log.Warn(w.Text, "folder", w.Folder)
			}
			if err := printWarnings(ctx, stderr, models, all); err != nil {
				stop()
				return firstError(err, <-served)
			}
			if opts.Perf != nil {
				printConfig(opts.Perf, cfg, models)
			}
			if e := models.Encoder(); e != nil {
				fmt.Fprintf(stdout, "ready in %.1f s: %s\n", e.Took().Seconds(), e.Summary())
			} else if w := models.Weights(); w != nil {
				fmt.Fprintf(stdout, "ready in %.1f s: %s\n", w.Took.Seconds(), w.Summary())
			} else {
				fmt.Fprintf(stdout, "ready in 0.0 s: no model runs, %s answers\n", cfg.Script)
			}
			if small, ok := all.(*catalog.Small); ok && small.Weights() != nil {
				fmt.Fprintf(stdout, "small model %s, for names with haiku: %s\n", small.ID(), small.Weights().Summary())
			}
			for _, e := range encoders.Beside() {
				fmt.Fprintf(stdout, "%s model %s: %s\n", e.Model().Kind, e.Model().ID, e.Summary())
			}
		case <-ctx.Done():
			fmt.Fprintf(stderr, "hearth: stopping; running replies may go on for %s, another Ctrl-C quits at once\n", cfg.DrainTimeout)
			return end()
		case err := <-served:
			served <- err
			return end()
		}
	}
}

// library is one model or several.
type library interface {
	chat.Models
	engines
	Load(catalog.Backends) error
	Warnings() []catalog.Warning
	Close() error
}

// withSmall adds the small model of cfg, if there is one.
func withSmall(models *catalog.Catalog, cfg *config.Config, cache hub.Cache) (library, error) {
	if cfg.SmallModel == "" {
		return models, nil
	}
	src, err := findNamed(cfg, "small-model", cfg.SmallModel, cache)
	if err != nil {
		return nil, err
	}
	return catalog.NewSmall(models, src, cfg), nil
}

// withEncoders adds the models of cfg that embed or rank.
func withEncoders(all library, models *catalog.Catalog, cfg *config.Config, cache hub.Cache) (*catalog.Encoders, error) {
	e := catalog.NewEncoders(all, models, cfg)
	for _, m := range []struct {
		flag, name string
		add        func(*catalog.Source, *config.Config)
	}{{"embedding-model", cfg.EmbeddingModel, e.AddEmbedder}, {"rerank-model", cfg.RerankModel, e.AddRanker}} {
		if m.name == "" {
			continue
		}
		src, err := findNamed(cfg, m.flag, m.name, cache)
		if err != nil {
			return nil, err
		}
		m.add(src, cfg)
	}
	return e, nil
}

// folderWarnings are those of all models.
func folderWarnings(all library, encoders *catalog.Encoders) []catalog.Warning {
	warnings := all.Warnings()
	for _, e := range encoders.Beside() {
		warnings = append(warnings, e.Warnings()...)
	}
	return warnings
}

// printWarnings says where settings contradict the model, or the small one beside it, a line each.
func printWarnings(ctx context.Context, w io.Writer, models *catalog.Catalog, all library) error {
	for _, line := range models.Settings().Overruled() {
		fmt.Fprintln(w, "hearth: "+line)
	}
	names := []string{}
	if models.Encoder() == nil {
		names = append(names, models.ID())
	}
	if small, ok := all.(*catalog.Small); ok && small.Weights() != nil {
		names = append(names, small.ID())
	}
	for _, name := range names {
		gen, err := all.Open(ctx, name)
		if err != nil {
			return err
		}
		if g, ok := gen.(interface{ Warnings() []string }); ok {
			for _, line := range g.Warnings() {
				fmt.Fprintln(w, "hearth: "+line)
			}
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
	return server.Options{
		Models: models,
		Protocols: []wire.Protocol{
			anthropic.Protocol{Strict: cfg.StrictAnthropic, Version: cfg.AnthropicVersion, Thinking: toggle(cfg.ExposeThinking)},
			openai.Protocol{Strict: cfg.StrictOpenAI, Thinking: toggle(cfg.ExposeThinking), Reasoning: reasoningField(cfg), Unprocessable: cfg.ValidationStatus == "422"}},
		Keys: cfg.Keys(), Isolate: cfg.Isolated(), AllowedHosts: cfg.AllowedHosts, AllowedOrigins: cfg.AllowedOrigins,
		Version: v, Commit: c,
		Health:  func() server.Health { return health(cfg, models) },
		Monitor: monitor{cfg, models, models, nil},
		Log:     log, LogPrompts: cfg.LogPrompts, PeakMemory: console.PeakMemory,
		RequestDir: cfg.DebugRequestDir,
		MaxBody:    config.MaxBodyBytes,
		MaxBodies:  cfg.MaxRequestBytes,
		HugeBodies: collectOften(),
		Interval:   cfg.StreamInterval,
		Drain:      cfg.DrainTimeout,
	}
}

// collectOften has the collector come at 1.4 times what is live while what is made of a huge body fills the heap, and then as
// before: by default it waits for as much again as there is.
func collectOften() func(often bool) {
	before := 0
	return func(often bool) {
		if often {
			before = debug.SetGCPercent(40)
		} else {
			debug.SetGCPercent(before)
		}
	}
}

// toggle turns a knob that may be unset into what the protocols take.
func toggle(b *bool) chat.Toggle {
	switch {
	case b == nil:
		return chat.Default
	case *b:
		return chat.On
	}
	return chat.Off
}

// reasoningField is the knob as openai takes it.
func reasoningField(cfg *config.Config) string {
	if cfg.ReasoningField == "both" {
		return ""
	}
	return cfg.ReasoningField
}

func health(cfg *config.Config, models *catalog.Catalog) server.Health {
	m := models.List()[0]
	h := server.Health{Status: "loading", Model: m.ID, Context: m.Context, Kind: m.Kind}
	if models.Ready() {
		h.Status = "ok"
	}
	s := models.Stats()
	if s.Stuck > 0 {
		h.Status = server.Stuck
	}
	h.PromptCache = server.PromptCache{Enabled: s.Cache.Enabled, Entries: s.Cache.Entries, Bytes: s.Cache.Bytes, CapBytes: s.Budget, TTL: cfg.ContextTTL.Milliseconds()}
	think := models.Settings().Thinking()
	on := m.Thinking && (think == nil || *think)
	h.Thinking = server.Thinking{Enabled: on, Exposed: on && (cfg.ExposeThinking == nil || *cfg.ExposeThinking)}
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
	var urls []string
	for _, l := range b.listeners {
		urls = append(urls, reachable(l.Addr().(*net.TCPAddr), config.OwnAddresses())...)
	}
	fmt.Fprintf(w, "hearth %s (%s)\n", v, c)
	fmt.Fprintf(w, "listening on %s\n", strings.Join(urls, " and "))
	fmt.Fprintf(w, "model: %s", b.models.ID())
	if b.src.Demo() {
		fmt.Fprint(w, ", a tiny demo inside hearth: it shows that everything works and knows next to nothing")
	} else {
		fmt.Fprintf(w, " (%s)", b.src.Path)
	}
	fmt.Fprintln(w)
	if b.src.Demo() {
		fmt.Fprintf(w, "       for a real model: %s\n", realModel(b.cache))
	}
	if file := b.cfg.File(); file != "" {
		fmt.Fprintf(w, "settings: %s\n", strings.Join(append([]string{file}, b.models.Settings().Sections()...), ", "))
	}
	fmt.Fprintf(w, "auth: %s\n", b.auth())
}

// try says what can be done with the model, once it is known to work.
func (b *banner) try(w io.Writer) {
	kind := b.models.List()[0].Kind
	if kind == chat.Completes {
		fmt.Fprintln(w, "base:  "+baseModel+"; chat requests are answered 400 ("+makeChat+")")
	}
	fmt.Fprintf(w, "try:   %s\n", b.curl(baseURL(b.listeners[0]), kind))
}

// What people are told of a model without a chat template.
const (
	baseModel = "a base model (no chat template): it continues text and does not chat"
	makeChat  = "--chat-template NAME or FILE makes it chat; --chat-template list shows the names"
)

// least is the least request that a kind of model answers.
var least = map[chat.ModelKind][2]string{
	chat.Chats:     {"/v1/messages", `{"max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}`},
	chat.Completes: {"/v1/completions", `{"max_tokens": 100, "prompt": "Once upon a time"}`},
	chat.Embeds:    {"/v1/embeddings", `{"input": "Hello"}`},
	chat.Ranks:     {"/v1/rerank", `{"query": "Hello", "documents": ["Hi", "Bye"]}`},
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
		return demo.Real
	}
	return "hearth serve " + best.ID
}

func (b *banner) auth() string {
	if keys := b.cfg.Keys(); len(keys) > 0 {
		from := cmp.Or(b.cfg.Origin("api-key"), b.cfg.Origin("api-key-file"), b.cfg.Origin("operator-key"))
		if len(keys) == 1 {
			return "on, from " + from
		}
		operators := 0
		for _, k := range keys {
			if k.Operator {
				operators++
			}
		}
		return fmt.Sprintf("on, %d keys from %s, %d of them an operator's; each has a prompt cache of its own: %t", len(keys), from, operators, b.cfg.Isolated())
	}
	if public(b.listeners) {
		return "none; whoever can reach this address can use it (--api-key KEY asks for one)"
	}
	return "none; any key or no key is accepted (--api-key KEY asks for one)"
}

func (b *banner) curl(url string, kind chat.ModelKind) string {
	key := ""
	switch from := cmp.Or(b.cfg.Origin("api-key"), b.cfg.Origin("operator-key"), "--api-key-file"); {
	case len(b.cfg.Keys()) == 0:
	case strings.HasPrefix(from, "--"), strings.HasPrefix(from, b.cfg.File()+":"):
		key = ` -H "x-api-key: KEY"`
	default:
		key = ` -H "x-api-key: $` + from + `"`
	}
	return `curl ` + url + least[kind][0] + key + ` -H 'content-type: application/json' -d '` + least[kind][1] + `'`
}
