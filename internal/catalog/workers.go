package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"

	"hearth/internal/backend"
	"hearth/internal/config"
	"hearth/internal/demo"
	"hearth/internal/embed"
	"hearth/internal/engine"
	"hearth/internal/model"
	"hearth/internal/regular"
	"hearth/internal/remote"
	"hearth/internal/tier"
)

// Workers says which models run in processes of their own, and how those are started. A backend that can end its process, as
// Apple's GPU does when its memory runs out, then ends its model's process only, which is started again.
type Workers struct {
	Backends []string                       // whose models do
	Command  func() (*exec.Cmd, error)      // starts this program so that it calls ServeWorker
	Build    string                         // of this program
	Warn     func(line string)              // gets what happens to the processes; called from any goroutine
	Output   func(line string)              // gets what they print, likewise
	Delay    func(deaths int) time.Duration // nil: remote.Delay
}

func (w *Workers) has(backend string) bool { return w != nil && slices.Contains(w.Backends, backend) }

// spec is what a worker process is to load.
type spec struct {
	ID, Path, Where string // of the Source
	Created         time.Time
	Config          *config.Config
	Disk            *diskSpec      // nil: nothing is kept on disk
	Pooling         *model.Pooling // of a model that embeds or ranks; nil: it generates
}

// diskSpec is what of tier.Options crosses.
type diskSpec struct {
	Dir, Name, Fingerprint string
	Quota                  int64
	Shared                 bool
	TTL                    time.Duration
}

// about is what a worker process tells of a model.
type about struct {
	Runs
	Model    Facts
	Encoder  *model.Encoder // its facts, in the place of Model's
	Ahead    bool
	Summary  string
	Limit    int64    // what the backend's device may use, in bytes; 0: not known
	Warnings []string // of the folder, as the worker process read it
}

// elsewhere tries the backends whose models run in processes of their own, as far as they come first in what cfg asks for: open
// loads on one. Where none takes the model, left are those to be tried in this process.
func (b Backends) elsewhere(cfg *config.Config, open func(backend string) error) (taken bool, left Backends, err error) {
	names := []string{cfg.Backend}
	if cfg.Backend == "auto" {
		names = b.Auto
	}
	var missing []error
	for _, name := range names {
		if !b.Workers.has(name) {
			break
		}
		if b.loads != nil {
			b.loads.away.Add(1)
		}
		err := open(name)
		if b.loads != nil {
			b.loads.away.Add(-1)
		}
		var refused *remote.Refused
		if errors.As(err, &refused) && refused.NoBackend && len(names) > 1 {
			missing = append(missing, err)
			continue
		}
		return err == nil, b, err
	}
	switch n := len(missing); n {
	case 0:
	case len(names):
		return false, b, fmt.Errorf("open backend: none works here: %w", errors.Join(missing...))
	default:
		b.Auto = names[n:]
	}
	return false, b, nil
}

// openWeights loads a model where it is to run: in a process of its own, or here. It takes over the checkpoint.
func openWeights(ctx context.Context, src *Source, c *model.Checkpoint, cfg *config.Config, bs Backends, disk *tier.Options) (w *Weights, err error) {
	taken, left, err := bs.elsewhere(cfg, func(name string) error {
		w, err = bs.openAway(ctx, src, cfg, name, disk)
		return err
	})
	if taken || err != nil {
		return w, errors.Join(err, c.Close())
	}
	return loadWeights(src, c, cfg, left, disk, remote.Hooks{Stuck: left.stuck(src.ID)})
}

// openAway loads a model in a process of its own.
func (b Backends) openAway(ctx context.Context, src *Source, cfg *config.Config, backend string, disk *tier.Options) (*Weights, error) {
	start := time.Now()
	s := spec{}
	if disk != nil {
		s.Disk = &diskSpec{disk.Dir, disk.Name, disk.Fingerprint, disk.Quota, disk.Shared, disk.TTL}
	}
	w := &Weights{}
	m, err := b.start(s, src, cfg, backend, &w.holding, func(c remote.Config) (told, error) {
		e, err := remote.Open(ctx, c)
		if err != nil {
			return nil, err
		}
		w.Engine = e // not before: a nil *remote.Engine is no nil Engine
		return e, nil
	})
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	w.Runs, w.Model, w.Ahead, w.Took, w.summary, w.warnings = m.Runs, m.Model, m.Ahead, time.Since(start), m.Summary, m.Warnings
	return w, nil
}

// told is a model in a process of its own.
type told interface{ About() json.RawMessage }

// start has open start the process of a model, which has a share of the machine's memory.
func (b Backends) start(s spec, src *Source, cfg *config.Config, name string, h *holding, open func(remote.Config) (told, error)) (m about, err error) {
	if h.share, err = b.askApart(src, name); err != nil {
		return m, err
	}
	c, err := b.Workers.config(s, src, cfg, name)
	if err != nil {
		return m, err
	}
	c.Share, c.Hour = h.share, b.hour
	r, err := open(c)
	if err != nil {
		h.close()
		return m, advise(err)
	}
	if err := json.Unmarshal(r.About(), &m); err != nil {
		return m, fmt.Errorf("load model: what its process says of it: %w", err)
	}
	if m.Limit > 0 && b.Memory != nil {
		b.Memory.SetDevice(name, m.Limit)
	}
	return m, nil
}

// openAway loads an encoder in a process of its own.
func (e *Encoder) openAway(ctx context.Context, bs Backends, src *Source, cfg *config.Config, backend string, p model.Pooling) error {
	m, err := bs.start(spec{Pooling: &p}, src, cfg, backend, &e.holding, func(c remote.Config) (told, error) {
		r, err := remote.OpenEncoder(ctx, c)
		e.away = r
		return r, err
	})
	if err == nil && m.Encoder == nil {
		err = errors.New("load model: its process says nothing of it")
	}
	e.model, e.runs = m.Encoder, m.Runs
	return err
}

// config describes a worker process to package remote. Keys stay here.
func (w *Workers) config(s spec, src *Source, cfg *config.Config, backend string) (remote.Config, error) {
	own := *cfg
	own.Backend, own.APIKeys, own.FileKeys, own.LineKeys, own.OperatorKey = backend, nil, nil, nil, ""
	s.ID, s.Path, s.Where, s.Created, s.Config = src.ID, src.Path, src.Where, src.Created, &own
	b, err := json.Marshal(s)
	if err != nil {
		return remote.Config{}, fmt.Errorf("describe the model to its process: %w", err)
	}
	return remote.Config{Start: w.start, Build: w.Build, Spec: b, Warn: w.Warn, Delay: w.Delay}, nil
}

func (w *Workers) start() (remote.Process, error) {
	cmd, err := w.Command()
	if err != nil {
		return nil, err
	}
	return remote.Exec(cmd, w.Output)
}

// ServeWorker is the process of a model: it loads what the parent at the other end of conn says, on one of bs, and runs it until
// the parent has enough of it. Build is that of this program.
func ServeWorker(conn io.ReadWriteCloser, build string, bs Backends) error {
	bs.Workers, bs.Memory = nil, nil
	return remote.Serve(conn, build, func(b json.RawMessage, h remote.Hooks) (*remote.Loaded, error) {
		bs.away = h.Share
		l, err := loadSpec(b, bs, h)
		if err != nil {
			return nil, refuse(err)
		}
		return l, nil
	})
}

func loadSpec(b json.RawMessage, bs Backends, h remote.Hooks) (*remote.Loaded, error) {
	s := &spec{}
	if err := json.Unmarshal(b, s); err != nil || s.Config == nil {
		return nil, fmt.Errorf("read what to load: %w", err)
	}
	src := &Source{ID: s.ID, Path: s.Path, Where: s.Where, Created: s.Created}
	if src.FS = demo.FS(); !src.Demo() {
		src.FS = regular.Dir(s.Path)
	}
	c, err := model.OpenCheckpoint(src.FS, src.Where)
	if err != nil {
		return nil, err
	}
	if s.Pooling != nil {
		return loadSpecEncoder(s, src, c, bs)
	}
	var disk *tier.Options
	if d := s.Disk; d != nil {
		disk = &tier.Options{Dir: d.Dir, Name: d.Name, Fingerprint: d.Fingerprint, Quota: d.Quota, Shared: d.Shared, TTL: d.TTL, Warn: h.Warn}
	}
	w, err := loadWeights(src, c, s.Config, bs, disk, h)
	if err != nil {
		return nil, err
	}
	told, err := json.Marshal(about{Runs: w.Runs, Model: w.Model, Ahead: w.Ahead, Summary: w.Summary(), Warnings: w.warnings, Limit: limitOf(w.backend)})
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return &remote.Loaded{Engine: w.Engine.(*engine.Engine), About: told, Close: w.Close,
		Limits: remote.Limits{Vocab: w.Model.Vocab, MaxSequences: s.Config.MaxSequences, MaxQueue: s.Config.MaxQueue}}, nil
}

// loadSpecEncoder is loadSpec for an encoder. It takes over the checkpoint.
func loadSpecEncoder(s *spec, src *Source, c *model.Checkpoint, bs Backends) (*remote.Loaded, error) {
	be, err := bs.open(s.Config)
	if err != nil {
		return nil, errors.Join(noBackendError{err}, c.Close())
	}
	var m *model.Encoder
	free := func() error {
		var err error
		if m != nil {
			err = m.Close()
		}
		return errors.Join(err, be.Close(), c.Close())
	}
	var steps *embed.Memory
	var r Runs
	if m, steps, r, err = loadEncoder(src, c, s.Config, be, *s.Pooling, bs, &holding{}); err != nil {
		return nil, errors.Join(err, free())
	}
	told, err := json.Marshal(about{Runs: r, Encoder: m, Limit: limitOf(be)})
	if err != nil {
		return nil, errors.Join(err, free())
	}
	forward := func(b *backend.Batch, use func(rows []float32)) error { return embed.Forward(m, be, b, use) }
	return &remote.Loaded{Forward: forward, Room: steps.Room, About: told, Close: free}, nil
}

// crashError is a remote.CrashError with advice.
type crashError struct{ error }

func (e crashError) Unwrap() error { return e.error }
func (e crashError) Hint() string {
	return "--backend cpu does without what ends it, and --model-process never shows all of its last words"
}

func advise(err error) error {
	var crash *remote.CrashError
	if errors.As(err, &crash) {
		return crashError{err}
	}
	return err
}

// noBackendError says that a backend does not open.
type noBackendError struct{ error }

func (e noBackendError) Unwrap() error { return e.error }

// refuse turns an error into one that crosses, with its advice.
func refuse(err error) *remote.Refused {
	r := &remote.Refused{Msg: err.Error()}
	var load *model.LoadError
	var hinted interface{ Hint() string }
	switch {
	case errors.As(err, &load):
		r.Msg, r.Advice = load.Message(), load.Hint
	case errors.As(err, &hinted):
		r.Advice = hinted.Hint()
	}
	var none noBackendError
	r.NoBackend = errors.As(err, &none)
	errors.As(err, &r.Short)
	return r
}
