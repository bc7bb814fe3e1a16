package catalog

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"hearth/internal/backend"
	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/embed"
	"hearth/internal/model"
	"hearth/internal/remote"
	"hearth/internal/tokenizer"
)

// Encoder is a model that embeds or ranks texts. Life as Catalog's.
type Encoder struct {
	src  *Source
	cfg  *config.Config
	kind model.Kind // wanted; Generates: what the folder says
	// names are what it answers to towards clients.
	names names

	loading
	// Set before loading ends, read-only afterwards.
	service    *embed.Service
	loaded     *model.Encoder
	checkpoint *model.Checkpoint
	backend    backend.Backend
	away       *remote.Encoder // in the place of backend, where the model runs in another process
	runs       Runs
	took       time.Duration
	warnings   []Warning
}

// textAliases are names of embedding models that clients have built in.
var textAliases = []string{"default", "default_model", "local", "text-embedding-*"}

// newEncoder makes an Encoder of the model of src for the wanted use. Nothing is read yet.
func newEncoder(src *Source, cfg *config.Config, kind model.Kind) *Encoder {
	return &Encoder{src: src, cfg: cfg, kind: kind, names: newNames(src, cfg.ServedModelName, false), loading: loading{done: make(chan struct{})}}
}

// encodes reports whether the folder of src says that its model embeds or ranks. What is wrong with a folder is said by who
// loads it.
func encodes(src *Source) bool {
	c, err := model.OpenCheckpoint(src.FS, src.Where)
	if err != nil {
		return false
	}
	p, err := c.Pooling()
	return errors.Join(err, c.Close()) == nil && p.Kind != model.Generates
}

// load reads the model and starts its service.
func (e *Encoder) load(bs Backends) error {
	start := time.Now()
	err := e.open(bs)
	if err != nil {
		err = errors.Join(err, e.free())
	}
	e.took = time.Since(start)
	e.end(err)
	return err
}

func (e *Encoder) open(bs Backends) (err error) {
	if e.checkpoint, err = model.OpenCheckpoint(e.src.FS, e.src.Where); err != nil {
		return err
	}
	if e.kind == model.Generates && e.cfg.AdapterPath != "" {
		return &model.LoadError{What: "adapter", Where: e.cfg.AdapterPath, Problem: "adapters of models that embed or rank are not supported",
			Hint: "fuse it into the model first"}
	}
	p, err := e.checkpoint.Pooling()
	if err != nil {
		return err
	}
	tok, err := tokenizer.Load(e.src.FS)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &model.LoadError{Where: e.src.Where, File: "tokenizer.json", Err: err, Hint: "fetch the tokenizer from where the model came from"}
	case err != nil:
		return &model.LoadError{Where: e.src.Where, Err: err}
	}
	if err := e.fit(&p, tok); err != nil {
		return err
	}
	c := embed.Config{
		Tokenizer: tok,
		MaxTokens: e.cfg.EmbeddingMaxLength, Truncate: e.cfg.EmbeddingOverflow == "truncate",
		StepRows: embed.StepRows, MaxWaiting: e.cfg.MaxQueue,
	}
	if err := e.place(bs, p, &c); err != nil {
		return err
	}
	e.warnings = e.src.warnings(e.checkpoint.Warnings, e.loaded.Warnings, tok.Warnings())
	c.Info = chat.Model{ID: e.names.id(), Path: e.src.Path, Created: e.src.Created, Description: e.loaded.Description}
	e.service, err = embed.New(c)
	if err != nil {
		return &model.LoadError{Where: e.src.Where, Err: err, Hint: "see --embedding-max-length"}
	}
	return nil
}

// place loads the weights where they are to run: in a process of their own, or here.
func (e *Encoder) place(bs Backends, p model.Pooling, c *embed.Config) (err error) {
	away, left, err := bs.elsewhere(e.cfg, func(name string) error { return e.openAway(bs.Workers, name, p) })
	if err != nil {
		return err
	}
	if away {
		c.Model, c.Away = e.loaded, func(b *backend.Batch) ([]float32, error) { return e.away.Forward(context.Background(), b) }
		return nil
	}
	if e.backend, err = left.open(e.cfg); err != nil {
		return err
	}
	c.Stuck = left.stuck(e.src.ID)
	o := encoderOptions(e.src, e.cfg, e.backend, p)
	c.Model, err = e.checkpoint.LoadEncoder(e.backend, o, p)
	e.loaded, c.Backend = c.Model, e.backend
	e.runs = encoderRuns(e.backend, o)
	return err
}

// encoderOptions are how one of such a use is loaded on be.
func encoderOptions(src *Source, cfg *config.Config, be backend.Backend, p model.Pooling) backend.Options {
	o := Options(src, cfg, p.Kind, be.Caps())
	o.Mapped = cfg.LowMemory != nil && *cfg.LowMemory
	return o
}

// encoderRuns is how one that was loaded with such options runs on be.
func encoderRuns(be backend.Backend, o backend.Options) Runs {
	return Runs{be.Name(), o.Precision, o.Precision.VectorRounding(be.Caps())}
}

// fit turns what a folder is for into what is wanted of it, where that can be.
func (e *Encoder) fit(p *model.Pooling, tok *tokenizer.Tokenizer) error {
	switch {
	case e.kind == model.Generates || e.kind == p.Kind:
		return nil
	case e.kind == model.Embeds && p.Kind == model.Generates:
		p.Kind = model.Embeds // a conversion that lost the files that say so
		return nil
	case e.kind == model.Ranks && p.Kind == model.Generates && strings.HasPrefix(e.checkpoint.Type, "qwen3"):
		yes, ok := tok.ID("yes")
		no, ok2 := tok.ID("no")
		if ok && ok2 {
			p.Kind, p.Rows, p.Yes, p.No = model.Ranks, backend.PoolLast, yes, no
			return nil
		}
	}
	hint := "--embedding-model takes models that embed, --rerank-model those that rank"
	return &model.LoadError{Where: e.src.Where, Problem: "the model " + p.Kind.String(), Hint: hint}
}

// Model describes the model; while it loads its context is unknown.
func (e *Encoder) Model() chat.Model {
	if e.Ready() {
		return e.service.Model()
	}
	kind := chat.Embeds
	if e.kind == model.Ranks {
		kind = chat.Ranks
	}
	return chat.Model{ID: e.names.id(), Path: e.src.Path, Created: e.src.Created, Kind: kind}
}

// Summary is one line about what was loaded, "" until then.
func (e *Encoder) Summary() string {
	if !e.Ready() {
		return ""
	}
	return e.loaded.Description + ", " + e.runs.line()
}

// Runs is how the model runs, zero until it is loaded.
func (e *Encoder) Runs() Runs {
	if !e.Ready() {
		return Runs{}
	}
	return e.runs
}

// Took is how long loading took, 0 until then.
func (e *Encoder) Took() time.Duration {
	if !e.Ready() {
		return 0
	}
	return e.took
}

// Bytes is the size of the loaded weights.
func (e *Encoder) Bytes() int64 {
	if !e.Ready() {
		return 0
	}
	return e.loaded.Bytes
}

// Stats are what the service has done so far.
func (e *Encoder) Stats() embed.Stats {
	if !e.Ready() {
		return embed.Stats{}
	}
	return e.service.Stats()
}

func (e *Encoder) close() error {
	<-e.done
	if e.err != nil {
		return nil // load has freed what there was
	}
	return e.free()
}

func (e *Encoder) free() error {
	var errs []error
	if e.away != nil { // first, so that the service does not wait for it
		errs = append(errs, e.away.Close())
	}
	if e.service != nil {
		errs = append(errs, e.service.Close())
	}
	if e.loaded != nil && e.away == nil {
		errs = append(errs, e.loaded.Close())
	}
	if e.backend != nil {
		errs = append(errs, e.backend.Close())
	}
	if e.checkpoint != nil {
		errs = append(errs, e.checkpoint.Close())
	}
	return errors.Join(errs...)
}
