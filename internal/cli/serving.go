package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"hearth/internal/backend/cpu"
	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/hub"
	"hearth/internal/mcp"
	"hearth/internal/server"
	"hearth/internal/store"
)

// serving is a server from its settings to its end.
type serving struct {
	cfg            *config.Config
	puller         *puller
	stdout, stderr io.Writer
	log            *slog.Logger

	src     *catalog.Source
	beside  beside
	sockets *sockets
	metrics net.Listener // of /metrics alone; nil: there is none

	models *catalog.Catalog
	roots  *hub.Roots   // in which models on disk are looked for
	store  *store.Store // of responses
	mcp    *mcp.Config  // nil: there are no MCP servers
	host   *mcp.Host    // of those
	token  string       // of who may manage the models
	server *server.Server
	reload []func() error // what SIGHUP has a service read again

	hangups <-chan os.Signal                                     // SIGHUP to a service
	reread  func(warn func(line string)) (*config.Config, error) // see rereads

	served, loaded chan error // how serving and loading have ended, once each
	shown, ready   bool       // the first lines are printed; the models are loaded
}

// serve listens first and loads then, so that /health answers from the start.
func (s *serving) serve(ctx context.Context) error {
	ctx, stop, hangups := untilSignal(ctx, onTerminal())
	defer stop()
	s.token, s.served, s.loaded, s.hangups = newToken(), make(chan error, 1), make(chan error, 1), hangups
	if err := s.listen(ctx); err != nil {
		return err
	}
	s.find()
	s.start(ctx)
	defer s.stopMCP()
	defer s.announce()()
	return s.run(ctx, stop)
}

// listen opens the sockets, after everything that is quickly refused.
func (s *serving) listen(ctx context.Context) (err error) {
	activated, err := takeActivation()
	if err != nil {
		return err
	}
	if err := s.cfg.Refused(); err != nil {
		return console.Hintf(err, "serve one of its models: hearth serve MODEL")
	}
	if s.src, err = s.puller.find(ctx); err != nil {
		return err
	}
	if s.beside, err = findBeside(ctx, s.puller, "small-model", "embedding-model", "rerank-model"); err != nil {
		return err
	}
	if s.cfg.DebugRequestDir != "" {
		if err := os.MkdirAll(s.cfg.DebugRequestDir, 0o700); err != nil {
			return fmt.Errorf("make the folder for request summaries: %w", err)
		}
	}
	if s.mcp, err = readMCP(s.cfg, s.stderr); err != nil {
		return err
	}
	if s.metrics, err = listenMetrics(s.cfg); err != nil {
		return err
	}
	s.sockets, err = openSockets(s.cfg, activated)
	return err
}

// find makes the models from what is on the disk. None is loaded.
func (s *serving) find() {
	// The engine's threads compute for as long as a step takes; the server's goroutines get processors of their own.
	runtime.GOMAXPROCS(cpu.Threads() + 2)
	s.log = newLog(s.cfg, s.stderr)
	_, forced := config.Environ(kernelsEnv)
	warnKernels(s.log, forced)
	s.models, s.roots = catalog.New(s.src, s.cfg), roots(s.cfg)
	s.beside.add(s.models)
	if s.cfg.Models == "on-demand" && s.cfg.Script == "" {
		s.models.AddDisk(onDisk{s.roots}, s.cfg.IdleUnload)
	}
	s.reload = append(s.reload, s.readAliases)
	s.models.Note = func(line string) { s.log.Info(line) }
	s.store = responseStore(s.cfg, func(line string) { s.log.Warn(line) })
	s.models.DiskCache = &catalog.DiskCache{Build: buildMark(), Warn: func(line string) { s.log.Warn(line) }}
}

// responseStore keeps responses as the settings say. It opens nothing before there is one.
func responseStore(cfg *config.Config, warn func(line string)) *store.Store {
	o := store.Options{Mode: store.Mode(cfg.Store), Dir: cfg.StoreFolder(), Responses: cfg.ResponsesTTL, Conversation: cfg.ConversationTTL,
		Archive: cfg.ArchiveFolder(), Note: warn}
	if o.Mode == store.Memory {
		o.Archive = "" // what is to end with the server does not go to a file
	}
	return store.New(o)
}

// start serves until ctx ends, and loads.
func (s *serving) start(ctx context.Context) {
	opts := serverOptions(s.cfg, s.models, s.store, s.log)
	s.sockets.set(&opts)
	opts.Encoders = s.models
	opts.Manager, opts.Token = manager{s.cfg, s.roots, s.models, &fits{}}, s.token
	s.startMCP(&opts)
	switch {
	case s.cfg.LogFormat == "json":
		opts.PerfLog = true
	case s.tells():
		opts.Perf = s.stderr
	}
	s.server = server.New(opts)
	s.followKeys(ctx)
	s.followCertificate()
	go func() { s.served <- s.server.Serve(ctx, s.sockets.listeners...) }()
	if s.metrics != nil {
		go func() {
			if err := s.server.ServeMetrics(ctx, s.metrics); err != nil {
				s.log.Error("metrics are served no more", "error", err)
			}
		}()
	}
	go func() {
		bs := withWorkers(s.cfg, s.log, s.stderr)
		bs.Memory = catalog.NewMachine(s.cfg)
		go catalog.WatchMemory(ctx, bs.Memory)
		s.loaded <- s.models.Load(bs)
	}()
}

// tells reports whether lines for benchmarks are printed.
func (s *serving) tells() bool { return level(s.cfg.LogLevel) <= slog.LevelInfo }

// announce says where hearth launch finds the server, and returns what takes it back.
func (s *serving) announce() (withdraw func()) {
	about := &state{PID: os.Getpid(), Model: s.models.ID(), Demo: s.src.Demo(), Token: s.token, Started: time.Now()}
	about.setKey(s.cfg)
	s.sockets.describe(about)
	if small := s.models.Small(); small != nil {
		about.Small = small.ID()
	}
	withdraw, err := announce(about)
	if err != nil {
		s.log.Warn("hearth launch will not find this server", "error", err)
		return func() {}
	}
	if s.sockets.certificate != nil {
		s.reload = append(s.reload, func() error {
			s.sockets.describe(about)
			_, err := announce(about)
			return err
		})
	}
	return withdraw
}

// followCertificate has the server show what is in the files of its certificate whenever it is told to read them again.
func (s *serving) followCertificate() {
	c := s.sockets.certificate
	if c == nil {
		return
	}
	warn := func() {
		for _, line := range c.warnings(time.Now()) {
			s.log.Warn(line)
		}
	}
	warn()
	s.reload = append(s.reload, func() error {
		if err := c.load(); err != nil {
			return fmt.Errorf("the TLS certificate stays as it is: %w", err)
		}
		s.log.Info("the TLS certificate is read again", "certificate", c.about())
		warn()
		return nil
	})
}

// greeting is how long the first lines wait for the model: one that loads at once, or not at all, belongs into them.
const greeting = 300 * time.Millisecond

// run prints how the models come along, until a signal or until loading or serving fails. stop does what a signal does.
func (s *serving) run(ctx context.Context, stop func()) error {
	greet, known := time.After(greeting), s.models.Known()
	for {
		if !s.shown && greet == nil && known == nil {
			s.introduce()
			fmt.Fprintln(s.stdout, "loading: requests wait until the model is ready")
		}
		select {
		case <-greet:
			greet = nil
		case <-known:
			known = nil
		case err := <-s.loaded:
			if err == nil {
				s.ready = true
				s.present()
			} else {
				stop()
				return cmp.Or(err, <-s.served)
			}
		case <-s.hangups:
			s.readAgain()
		case <-ctx.Done():
			fmt.Fprintf(s.stderr, "hearth: stopping; running replies may go on for %s, another Ctrl-C quits at once\n", s.cfg.DrainTimeout)
			return s.drain()
		case err := <-s.served:
			s.served <- err // drain takes it
			return s.drain()
		}
	}
}

// present prints what there is to know of models that are loaded.
func (s *serving) present() {
	s.introduce()
	fmt.Fprintln(s.stdout, atRest(s.cfg, s.models.Main().Stats().Cache.Disk.Dir != ""))
	s.suggest()
	for _, w := range s.models.Warnings() {
		s.log.Warn(w.Text, "folder", w.Folder)
	}
	printWarnings(s.stderr, s.models)
	if s.tells() {
		printConfig(s.stderr, s.cfg, s.models)
	}
	for _, e := range s.models.Entries() {
		switch e.Role {
		case catalog.Main:
			fmt.Fprintf(s.stdout, "ready in %.1f s: %s\n", e.Took().Seconds(), e.Summary())
		case catalog.Small:
			fmt.Fprintf(s.stdout, "small model %s, for names with haiku: %s\n", e.ID(), e.Summary())
		default:
			fmt.Fprintf(s.stdout, "%s model %s: %s\n", e.Model().Kind, e.ID(), e.Summary())
		}
	}
}

// drain waits for what runs, and closes the models.
func (s *serving) drain() error {
	return within(s.cfg.DrainTimeout+closeTimeout, func() error {
		err := <-s.served
		select {
		case failed := <-s.loaded: // nobody will wait for it any more
			s.ready, err = true, cmp.Or(err, failed)
		default:
		}
		err = cmp.Or(err, s.store.Close())
		if !s.ready { // there is nothing to keep, and no way to break a load off but to end the process
			return err
		}
		return cmp.Or(err, s.models.Close())
	})
}

// closeTimeout is how long a server that was told to end takes at most, beyond --drain-timeout, for what runs to be cut off and
// for its models to end.
const closeTimeout = time.Minute

// within runs f for at most limit. What takes longer is left behind, so that the process ends nevertheless.
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

// untilSignal is a context that SIGINT and SIGTERM end, and SIGHUP on a terminal. After that another SIGINT or SIGTERM ends the
// process at once. Another SIGHUP does not: a terminal that goes away sends it more than once. Where it was ignored from the
// start (nohup), it stays so. Without a terminal hangups gets it.
func untilSignal(parent context.Context, terminal bool) (_ context.Context, _ context.CancelFunc, hangups <-chan os.Signal) {
	ctx, stop := context.WithCancel(parent)
	got, hup := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGINT, syscall.SIGTERM)
	switch {
	case signal.Ignored(syscall.SIGHUP):
	case terminal:
		signal.Notify(got, syscall.SIGHUP)
	default:
		signal.Notify(hup, syscall.SIGHUP)
	}
	go func() {
		select {
		case <-got:
			signal.Reset(syscall.SIGINT, syscall.SIGTERM)
			stop()
		case <-ctx.Done():
		}
	}()
	return ctx, stop, hup
}
