package catalog

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"hearth/internal/backend"
	"hearth/internal/budget"
	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/embed"
	"hearth/internal/model"
	"hearth/internal/remote"
	"hearth/internal/tokenizer"
)

// Encoder is a model that embeds or ranks texts, loaded.
type Encoder struct {
	service    *embed.Service
	model      *model.Encoder
	checkpoint *model.Checkpoint
	backend    backend.Backend
	away       *remote.Encoder // in the place of backend, where the model runs in another process
	holding    holding
	runs       Runs
	took       time.Duration
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

// openEncoder reads the model of src and starts its service, under the name id. kind is the wanted use; Generates: what the
// folder says.
func openEncoder(ctx context.Context, src *Source, cfg *config.Config, id string, kind model.Kind, bs Backends) (*Encoder, []Warning, error) {
	start := time.Now()
	e := &Encoder{}
	warnings, err := e.open(ctx, src, cfg, id, kind, bs)
	if err != nil {
		return nil, nil, errors.Join(err, e.close())
	}
	e.took = time.Since(start)
	return e, warnings, nil
}

func (e *Encoder) open(ctx context.Context, src *Source, cfg *config.Config, id string, kind model.Kind, bs Backends) (_ []Warning, err error) {
	if e.checkpoint, err = model.OpenCheckpoint(src.FS, src.Where); err != nil {
		return nil, err
	}
	e.checkpoint.Stop = bs.stop(ctx)
	if kind == model.Generates && cfg.AdapterPath != "" {
		return nil, &model.LoadError{What: "adapter", Where: cfg.AdapterPath, Problem: "adapters of models that embed or rank are not supported",
			Hint: "fuse it into the model first"}
	}
	p, err := e.checkpoint.Pooling()
	if err != nil {
		return nil, err
	}
	tok, err := tokenizer.Load(src.FS)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &model.LoadError{Where: src.Where, File: "tokenizer.json", Err: err, Hint: "fetch the tokenizer from where the model came from"}
	case err != nil:
		return nil, &model.LoadError{Where: src.Where, Err: err}
	}
	if err := fit(src, kind, &p, e.checkpoint.Type, tok); err != nil {
		return nil, err
	}
	c := embed.Config{
		Tokenizer: tok,
		MaxTokens: cfg.EmbeddingMaxLength, Truncate: cfg.EmbeddingOverflow == "truncate",
		StepRows: embed.StepRows, MaxWaiting: cfg.MaxQueue,
	}
	if err := e.place(ctx, src, cfg, bs, p, &c); err != nil {
		return nil, err
	}
	c.Info = chat.Model{ID: id, Path: src.Path, Created: src.Created, Description: e.model.Description}
	if e.service, err = embed.New(c); err != nil {
		return nil, &model.LoadError{Where: src.Where, Err: err, Hint: "see --embedding-max-length"}
	}
	return src.warnings(e.checkpoint.Warnings, e.model.Warnings, tok.Warnings()), nil
}

// place loads the weights where they are to run: in a process of their own, or here.
func (e *Encoder) place(ctx context.Context, src *Source, cfg *config.Config, bs Backends, p model.Pooling, c *embed.Config) (err error) {
	away, left, err := bs.elsewhere(cfg, func(name string) error { return e.openAway(ctx, bs, src, cfg, name, p) })
	if err != nil {
		return err
	}
	if away {
		c.Model, c.Away = e.model, e.away.Forward
		return nil
	}
	if e.backend, err = left.open(cfg); err != nil {
		return err
	}
	c.Stuck = left.stuck(src.ID)
	e.model, c.Memory, e.runs, err = loadEncoder(src, e.checkpoint, cfg, e.backend, p, left, &e.holding)
	c.Model, c.Backend = e.model, e.backend
	return err
}

// loadEncoder loads a model of such a use on be, in this process.
func loadEncoder(src *Source, c *model.Checkpoint, cfg *config.Config, be backend.Backend, p model.Pooling, bs Backends, h *holding) (m *model.Encoder, steps *embed.Memory, r Runs, err error) {
	o := Options(src, cfg, p.Kind, be.Caps())
	o.Mapped = cfg.LowMemory != nil && *cfg.LowMemory
	r = Runs{be.Name(), o.Precision, o.Precision.VectorRounding(be.Caps())}
	if err = h.take(bs, src, be, WeightBytes(src.FS)); err != nil {
		return nil, nil, r, err
	}
	if m, err = c.LoadEncoder(be, o, p); err != nil {
		return nil, nil, r, err
	}
	if err = h.settle(src, be, o.Mapped); err != nil {
		return m, nil, r, err
	}
	limit, err := embed.Limit(m, cfg.EmbeddingMaxLength)
	if err == nil {
		steps, err = embed.NewMemory(m, be, h.Holding, limit)
	}
	if short := (*budget.ShortError)(nil); errors.As(err, &short) {
		err = tooLarge(src, short)
	}
	return m, steps, r, err
}

// fit turns what a folder is for into kind, which is wanted of it, where that can be.
func fit(src *Source, kind model.Kind, p *model.Pooling, modelType string, tok *tokenizer.Tokenizer) error {
	switch {
	case kind == model.Generates || kind == p.Kind:
		return nil
	case kind == model.Embeds && p.Kind == model.Generates:
		p.Kind = model.Embeds // a conversion that lost the files that say so
		return nil
	case kind == model.Ranks && p.Kind == model.Generates && strings.HasPrefix(modelType, "qwen3"):
		yes, ok := tok.ID("yes")
		no, ok2 := tok.ID("no")
		if ok && ok2 {
			p.Kind, p.Rows, p.Yes, p.No = model.Ranks, backend.PoolLast, yes, no
			return nil
		}
	}
	hint := "--embedding-model takes models that embed, --rerank-model those that rank"
	return &model.LoadError{Where: src.Where, Problem: "the model " + p.Kind.String(), Hint: hint}
}

// Model describes the model.
func (e *Encoder) Model() chat.Model { return e.service.Model() }

// Summary is one line about what was loaded.
func (e *Encoder) Summary() string { return e.model.Description + ", " + e.runs.line() }

// Runs is how the model runs.
func (e *Encoder) Runs() Runs { return e.runs }

// Bytes is the size of the loaded weights.
func (e *Encoder) Bytes() int64 { return e.model.Bytes }

// Stats are what the service has done so far.
func (e *Encoder) Stats() embed.Stats { return e.service.Stats() }

// close frees the model, also one of which only a part was loaded.
func (e *Encoder) close() error {
	var errs []error
	if e.away != nil { // first, so that the service does not wait for it
		errs = append(errs, e.away.Close())
	}
	if e.service != nil {
		errs = append(errs, e.service.Close())
	}
	if e.model != nil && e.away == nil {
		errs = append(errs, e.model.Close())
	}
	if e.backend != nil {
		errs = append(errs, e.backend.Close())
	}
	if e.checkpoint != nil {
		errs = append(errs, e.checkpoint.Close())
	}
	e.holding.close()
	return errors.Join(errs...)
}
