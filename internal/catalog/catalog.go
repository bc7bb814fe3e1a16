// Package catalog knows which model there is and what it is called. It finds a model's files (embedded, a folder, the
// Hugging Face cache), loads them on a backend it is handed, and answers the names clients send. Package cli makes one;
// server and wire see it as chat.Models. It never picks a concrete backend and never reads a request.
//
// Life: New, then Load once, then Open from any goroutine, then Close. Open waits while the model loads, so a server may
// listen before it is ready.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/engine"
	"hearth/internal/model"
)

// Catalog serves one model. Its methods are safe for concurrent use.
type Catalog struct {
	DiskCache *DiskCache // set before Load; nil: the prompt cache lives in memory only
	// Note is told, once each, which names of others' models are taken for this one. It is set before Open; nil: nobody is told.
	Note func(line string)

	src   *Source
	cfg   *config.Config
	names names

	known chan struct{} // closed when the model's text side is known to work; see Known
	base  bool          // set before known is closed: the model has no chat template
	loading
	// Set before loading ends, read-only afterwards.
	weights  *Weights
	gen      chat.Generator
	enc      *Encoder // in the place of weights and gen where the model does not generate
	warnings []Warning

	closing sync.Once
	telling sync.Mutex
	told    map[string]bool // under telling
}

var _ chat.Models = (*Catalog)(nil)

// New makes a catalog of the model of src. Nothing is read yet.
func New(src *Source, cfg *config.Config) *Catalog {
	cfg = Settings(src, cfg)
	n := newNames(src, cfg.ServedModelName, cfg.AnyModel)
	n.guess = !cfg.StrictModels
	return &Catalog{src: src, cfg: cfg, names: n, known: make(chan struct{}), loading: loading{done: make(chan struct{})}}
}

// Settings is cfg with what its file says of the model of src.
func Settings(src *Source, cfg *config.Config) *config.Config {
	n := newNames(src, cfg.ServedModelName, false)
	return cfg.For(n.exact...)
}

// Settings are those of the model.
func (c *Catalog) Settings() *config.Config { return c.cfg }

// ID is what the model is called towards clients.
func (c *Catalog) ID() string { return c.names.id() }

// Load reads the model and starts its engine. It is called once; its error is also what every Open then says.
func (c *Catalog) Load(bs Backends) error {
	var err error
	switch {
	case c.cfg.Script != "":
		c.gen, c.warnings, err = openScripted(c.src, c.cfg, c.ID(), bs.Warn)
	case encodes(c.src):
		c.setKnown(false) // it has no template
		c.enc = newEncoder(c.src, c.cfg, model.Generates)
		err = c.enc.load(bs)
	default:
		c.weights, c.gen, c.warnings, err = openLocal(c.src, c.cfg, c.ID(), bs, c.DiskCache, c.setKnown)
	}
	c.end(err)
	return err
}

// Known is closed once the model's tokenizer and chat template are known to work: what is loaded from then on is its weights.
// Where they do not, and where a script answers, it never is.
func (c *Catalog) Known() <-chan struct{} { return c.known }

func (c *Catalog) setKnown(base bool) {
	c.base = base
	close(c.known)
}

// Open implements chat.Models.
func (c *Catalog) Open(ctx context.Context, name string) (chat.Generator, error) {
	_, deployment := chat.Deployment(ctx)
	guessed, err := c.names.find(name, deployment)
	if err != nil {
		return nil, err
	}
	if guessed {
		c.tell(name, c.ID())
	}
	if err := c.wait(ctx); err != nil {
		return nil, err
	}
	if c.enc != nil {
		return nil, generatesNothing(c.enc.Model())
	}
	return c.gen, nil
}

// mostTold bounds the names that Note is told of: clients choose them.
const mostTold = 32

// tell notes that name means the model id.
func (c *Catalog) tell(name, id string) {
	if c.Note == nil {
		return
	}
	c.telling.Lock()
	defer c.telling.Unlock()
	if c.told == nil {
		c.told = map[string]bool{}
	}
	if len(c.told) == mostTold || c.told[shown(name)] {
		return
	}
	c.told[shown(name)] = true
	c.Note(fmt.Sprintf("%s is not served here; %q answers in its place (--strict-models refuses such names)", shown(name), id))
}

// Encoder is the model where it does not generate, nil otherwise and until Ready.
func (c *Catalog) Encoder() *Encoder {
	if !c.encodes() {
		return nil
	}
	return c.enc
}

func (c *Catalog) encodes() bool { return c.Ready() && c.enc != nil }

// List implements chat.Models. While the model loads its context is unknown, 0.
func (c *Catalog) List() []chat.Model {
	switch {
	case c.encodes():
		return []chat.Model{c.enc.Model()}
	case c.Ready():
		return []chat.Model{c.gen.Model()}
	}
	m := chat.Model{ID: c.ID(), Path: c.src.Path, Created: c.src.Created}
	select {
	case <-c.known:
		if c.base {
			m.Kind = chat.Completes
		}
	default:
	}
	return []chat.Model{m}
}

// Weights gives the loaded weights and their engine, nil until Ready and where a script answers.
func (c *Catalog) Weights() *Weights {
	if !c.Ready() {
		return nil
	}
	return c.weights
}

// Stats gives the engine's figures, zero until Ready; of a script, how many replies run.
func (c *Catalog) Stats() engine.Stats {
	if w := c.Weights(); w != nil {
		return w.Engine.Stats()
	}
	return engine.Stats{Running: len(c.Live())}
}

// Close frees everything. A Load in progress is waited for. Close may be called again.
func (c *Catalog) Close() error {
	var err error
	c.closing.Do(func() {
		<-c.done
		if c.weights != nil {
			err = errors.Join(saveHistory(c.weights, c.gen), c.weights.Close())
		}
		if c.enc != nil {
			err = c.enc.close()
		}
	})
	return err
}
