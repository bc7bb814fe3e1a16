package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"hearth/internal/access"
	"hearth/internal/catalog"
	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/server"
	"hearth/internal/store"
	"hearth/internal/wire"
	"hearth/internal/wire/anthropic"
	"hearth/internal/wire/openai"
	"hearth/internal/wire/responses"
)

func newServeCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve [MODEL]",
		Short: "Serve a model over HTTP",
		Long: `Serves MODEL over the Anthropic Messages API (/v1/messages) and the OpenAI API (/v1/responses,
/v1/chat/completions). MODEL is a folder, an id that is in the Hugging Face cache, or demo, the tiny model inside
hearth, which is also the default. An id that is not there is fetched from the hub, after asking on a terminal or with --pull.
Flags of mlx-lm's server and of vllm-mlx are taken too; docs/config.md says what becomes of each. hearth config, with the
same flags, prints all settings and where they come from.`,
		Example: `  hearth serve
  hearth serve mlx-community/Qwen3-0.6B-4bit --port 8081
  hearth serve ./my-model --api-key "$(openssl rand -hex 16)" --host 0.0.0.0`,
		Args: console.MaxArgs(1),
	}
	cfg := serverSettings(cmd)
	cmd.ValidArgsFunction = completeModel(cfg, 0, toServe)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		// Nobody need read what a server prints, and it goes on when nobody can.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
		pull := newPuller(cmd, cfg)
		stdout, stderr := newPrinter(cmd.OutOrStdout()), newPrinter(cmd.ErrOrStderr())
		cmd.SetOut(stdout)
		cmd.SetErr(stderr)
		err := load(cmd, cfg)
		lines := io.Writer(stderr)
		if cfg.LogFormat == "json" {
			lines = newJSONLines(stderr)
		}
		if err == nil {
			if len(args) > 0 {
				cfg.SetModel(args[0])
			}
			remark(lines, cfg)
			s := &serving{cfg: cfg, puller: pull, stdout: stdout, stderr: lines, reread: rereads(cmd, os.Args[1:])}
			err = s.serve(cmd.Context())
		}
		if err != nil && !errors.Is(err, errListed) {
			report(lines, err)
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

// beside are the models that are served beside the main one; nil: there is none.
type beside struct {
	small, embedder, ranker *catalog.Source
}

// findBeside finds those that the settings name for such flags; see puller.findNamed.
func findBeside(ctx context.Context, p *puller, flags ...string) (b beside, err error) {
	for _, m := range []struct {
		flag, name string
		src        **catalog.Source
	}{{"small-model", p.cfg.SmallModel, &b.small}, {"embedding-model", p.cfg.EmbeddingModel, &b.embedder}, {"rerank-model", p.cfg.RerankModel, &b.ranker}} {
		if m.name == "" || !slices.Contains(flags, m.flag) {
			continue
		}
		if *m.src, err = p.findNamed(ctx, m.flag, m.name); err != nil {
			return b, err
		}
	}
	return b, nil
}

// add adds them to the table.
func (b beside) add(models *catalog.Catalog) {
	if b.small != nil {
		models.AddSmall(b.small)
	}
	if b.embedder != nil {
		models.AddEmbedder(b.embedder)
	}
	if b.ranker != nil {
		models.AddRanker(b.ranker)
	}
}

// printWarnings says where settings contradict the models or cost them much, a line each.
func printWarnings(w io.Writer, models *catalog.Catalog) {
	lines := models.Settings().Overruled()
	for _, e := range models.Entries() {
		lines = append(lines, e.Remarks()...)
	}
	for _, line := range lines {
		fmt.Fprintln(w, "hearth: "+line)
	}
}

// serverOptions wires the protocols. This is the list of them. Without a store no response is kept.
func serverOptions(cfg *config.Config, models *catalog.Catalog, responsesIn *store.Store, log *slog.Logger) server.Options {
	v, c := buildVersion()
	openAI := openai.Protocol{Strict: cfg.StrictOpenAI, Thinking: chat.ToggleOf(cfg.ExposeThinking), Reasoning: reasoningField(cfg),
		Unprocessable: cfg.ValidationStatus == "422"}
	return server.Options{
		Models: models,
		Protocols: []wire.Protocol{
			anthropic.Protocol{Strict: cfg.StrictAnthropic, Version: cfg.AnthropicVersion, Thinking: chat.ToggleOf(cfg.ExposeThinking)},
			openAI,
			responses.Protocol{Protocol: openAI, RefuseHosted: cfg.HostedTools == "refuse", Store: responsesIn, Sockets: cfg.MaxSockets},
		},
		Keys: cfg.Keys(), Isolation: access.Isolation(cfg.CacheIsolation), Limits: server.Limits{PerMinute: cfg.RateLimit, Requests: cfg.MaxRequests, RequestsPerClient: cfg.MaxRequestsPerClient, Timeout: cfg.Timeout, QueueWait: cfg.QueueWait},
		Proxies: cfg.Proxies, AllowedHosts: cfg.AllowedHosts, AllowedOrigins: cfg.AllowedOrigins,
		Version: v, Commit: c,
		Health:  func() server.Health { return health(cfg, models) },
		State:   func() server.State { return readiness(models.Main()) },
		Monitor: monitor{cfg, models},
		Metrics: newMetrics(cfg, models), MetricsApart: cfg.MetricsAddr != "",
		Log: log, LogPrompts: cfg.LogPrompts, Origin: originOf(cfg, models), PeakMemory: console.PeakMemory,
		RequestDir: cfg.DebugRequestDir,
		MaxBody:    config.MaxBodyBytes,
		MaxBodies:  cfg.MaxRequestBytes,
		HugeBodies: collectOften(),
		Fetch:      fetcher(cfg),
		Interval:   cfg.StreamInterval,
		Drain:      cfg.DrainTimeout,
	}
}

// fetcher gets images for clients, as far as that is wanted.
func fetcher(cfg *config.Config) *server.Fetcher {
	if len(cfg.ImageURLs) == 0 {
		return nil
	}
	return server.NewFetcher(server.FetchOptions{Hosts: cfg.ImageURLs, Bytes: int(cfg.MaxImageBytes), Own: config.OwnAddresses})
}

// collectOften makes the garbage collector run when the heap has grown by 40 % while a huge body is read, and as before
// afterwards: by default it runs when the heap has doubled.
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

// reasoningField is the knob as openai takes it.
func reasoningField(cfg *config.Config) string {
	if cfg.ReasoningField == "both" {
		return ""
	}
	return cfg.ReasoningField
}

func health(cfg *config.Config, models *catalog.Catalog) server.Health {
	m := models.Main().Model()
	h := server.Health{Status: readiness(models.Main()), Model: m.ID, Context: m.Context, Kind: m.Kind}
	s := models.Main().Stats()
	h.PromptCache = server.PromptCache{Enabled: s.Cache.Enabled, Entries: s.Cache.Entries, Bytes: s.Cache.Bytes, CapBytes: s.Budget, TTL: cfg.ContextTTL.Milliseconds()}
	think := models.Settings().Thinking()
	on := m.Thinking && (think == nil || *think)
	h.Thinking = server.Thinking{Enabled: on, Exposed: on && !cfg.HideThinking()}
	return h
}

// readiness is whether a model answers. It never waits for a step.
func readiness(e *catalog.Entry) server.State {
	switch {
	case !e.Ready() || e.Restarting():
		return server.Loading
	case e.Stuck():
		return server.Stuck
	}
	return server.OK
}

func level(name string) slog.Level {
	var l slog.Level
	if l.UnmarshalText([]byte(name)) != nil {
		return slog.LevelInfo
	}
	return l
}
