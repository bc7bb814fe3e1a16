// Package catalog knows which models there are and what they are called. It finds a model's files (embedded, a folder, the
// Hugging Face cache), loads them on a backend it is handed, and answers the names clients send. It is a table of entries, one
// for each model: the main one, a small one beside it, those that embed or rank. Package cli makes one; server and wire see it as
// chat.Models and chat.Encoders. It never picks a concrete backend and never reads a request.
//
// The models that the server was started with are loaded by Load and stay. Those on disk are loaded when a request names them,
// one at a time, and go when nobody has used them for a while, or when another one needs their memory (policy.go).
//
// Life: New and what is to be beside, then Load once, then Open from any goroutine, then Close. Open waits while the model loads,
// so a server may listen before it is ready.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"hearth/internal/access"
	"hearth/internal/budget"
	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/embed"
	"hearth/internal/model"
	"hearth/internal/timeline"
)

// Catalog is the table of models. Its methods are safe for concurrent use, but for those that add to it.
type Catalog struct {
	// DiskCache is of the main model and of those that are loaded on demand. It is set before Load; nil: prompt caches live in
	// memory only.
	DiskCache *DiskCache
	// Note is told, once each, which names of others' models are taken for this one. It is set before Open; nil: nobody is told.
	Note func(line string)

	loads loadCount // see Loaded
	hour  timeline.Hour
	made  time.Time // the catalog

	cfg     *config.Config // without what its file says of single models
	entries []*Entry       // the main model first

	closing sync.Once
	telling sync.Mutex
	told    map[string]bool // under telling

	// Of models that are loaded on demand; see AddDisk.
	disk    Disk // nil: there are none
	idle    time.Duration
	now     func() time.Time
	bs      Backends       // set before open
	going   sync.WaitGroup // loads, unloads, and looks at the disk
	looking sync.Mutex     // held by who looks at the disk

	glancing sync.Mutex // held by who looks at what models do; see glance
	glanced  time.Time  // looked, when somebody did last; under glancing

	mu       sync.Mutex // never held while a model is loaded or freed, or the disk is looked at
	open     bool       // the models of the command line are loaded
	closed   bool
	found    []*Entry // that somebody has seen
	listed   []*Entry // of those, that were on disk when it was looked at last
	byName   map[string]*Entry
	looked   time.Time   // when that was
	switched time.Time   // when models went for another one last
	timer    *time.Timer // of the next decision
}

var (
	_ chat.Models   = (*Catalog)(nil)
	_ chat.Encoders = (*Catalog)(nil)
)

// New makes a catalog of the model of src. Nothing is read yet.
func New(src *Source, cfg *config.Config) *Catalog {
	main := newEntry(Main, src, Settings(src, cfg), model.Generates)
	main.names.any, main.names.guess = cfg.AnyModel, !cfg.StrictModels
	return &Catalog{cfg: cfg, entries: []*Entry{main}, now: time.Now, made: time.Now()}
}

// Settings is cfg with what its file says of the model of src.
func Settings(src *Source, cfg *config.Config) *config.Config {
	n := newNames(src, cfg.ServedModelName)
	return cfg.For(n.exact...)
}

// smallPart is the small model's share of the memory that keys and values of the main one get; it comes on top.
const smallPart = 4

// AddSmall puts a small model beside the main one, for the side work that clients give to models with haiku in their names. Of
// the settings it takes everything but what is about the main model alone. It is called before Load, like the other two.
func (c *Catalog) AddSmall(src *Source) {
	own := *c.cfg
	own.ServedModelName, own.AnyModel, own.AdapterPath, own.ChatTemplate = nil, false, "", ""
	own.ContextLength = 0
	own.CacheMemoryMB = (own.CacheMemoryMB + smallPart - 1) / smallPart
	own.CacheMemoryPart /= smallPart
	e := newEntry(Small, src, Settings(src, &own), model.Generates)
	e.names.aliases = smallAliases
	c.entries = append(c.entries, e)
	c.Main().names.guess = false // either could be meant
}

// AddEmbedder and AddRanker put a model beside the others.
func (c *Catalog) AddEmbedder(src *Source) { c.addEncoder(src, model.Embeds) }

func (c *Catalog) AddRanker(src *Source) { c.addEncoder(src, model.Ranks) }

func (c *Catalog) addEncoder(src *Source, kind model.Kind) {
	own := *c.cfg
	own.ServedModelName = nil
	e := newEntry(Beside, src, Settings(src, &own), kind)
	e.names.aliases = textAliases
	c.entries = append(c.entries, e)
}

// Entries are the models of the command line, the main one first.
func (c *Catalog) Entries() []*Entry { return c.entries }

// Main is the entry of the main model.
func (c *Catalog) Main() *Entry { return c.entries[0] }

// Small is that of the small model, nil if there is none.
func (c *Catalog) Small() *Entry {
	for _, e := range c.entries {
		if e.Role == Small {
			return e
		}
	}
	return nil
}

// Settings are those of the main model.
func (c *Catalog) Settings() *config.Config { return c.Main().cfg }

// ID is what the main model is called towards clients.
func (c *Catalog) ID() string { return c.Main().ID() }

// Ready reports whether the main model is loaded.
func (c *Catalog) Ready() bool { return c.Main().Ready() }

// Known is closed once the main model's tokenizer and chat template are known to work: what is loaded from then on is its
// weights. Where they do not, and where a script answers, it never is.
func (c *Catalog) Known() <-chan struct{} { return c.Main().known }

// Load reads the models, one after the other, and starts their engines. It is called once; its error is also what every Open then
// says. A small model that does not chat is refused before any is read.
func (c *Catalog) Load(bs Backends) error {
	bs.loads, bs.hour = &c.loads, &c.hour
	var err error
	if small := c.Small(); small != nil {
		err = mustChat(small.src, small.cfg)
	}
	for i, e := range c.entries {
		var disk *DiskCache
		if i == 0 {
			disk = c.DiskCache
		}
		if err != nil {
			e.end(err)
			continue
		}
		err = e.load(context.Background(), bs, disk)
	}
	if err == nil && c.disk != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if bs.Memory == nil {
			bs.Memory = budget.New(budget.Readers{}, 0)
		}
		c.bs, c.open = bs, true
		c.step()
	}
	return err
}

// Open implements chat.Models. The names of models that do not generate are known, but nothing is there to open.
func (c *Catalog) Open(ctx context.Context, name string) (chat.Generator, error) {
	e, err := c.find(ctx, name)
	if err == nil {
		err = e.mayUse(ctx)
	}
	if err != nil {
		return nil, err
	}
	m, err := c.acquire(ctx, e)
	switch {
	case err != nil:
		return nil, err
	case m.enc != nil:
		return nil, generatesNothing(m.Model())
	}
	return m.gen, nil
}

// OpenEmbedder implements chat.Encoders.
func (c *Catalog) OpenEmbedder(ctx context.Context, name string) (chat.Embedder, error) {
	return c.openEncoder(ctx, name, chat.Embeds)
}

// OpenRanker implements chat.Encoders.
func (c *Catalog) OpenRanker(ctx context.Context, name string) (chat.Ranker, error) {
	return c.openEncoder(ctx, name, chat.Ranks)
}

// openEncoder is the service of findEncoder, once the model is loaded.
func (c *Catalog) openEncoder(ctx context.Context, name string, kind chat.ModelKind) (*embed.Service, error) {
	e, err := c.findEncoder(ctx, name, kind)
	if err == nil {
		err = e.mayUse(ctx)
	}
	if err != nil {
		return nil, err
	}
	m, err := c.acquire(ctx, e)
	switch {
	case err != nil:
		return nil, err
	case m.enc == nil || m.Model().Kind != kind: // its folder said otherwise before it was loaded
		return nil, c.refuse(name, kind, m.Model().Kind, nil)
	}
	return m.enc.service, nil
}

// List implements chat.Models: the models of the command line, the main one first, then those on disk. The context of a model
// of the command line that loads is unknown, 0; of one on disk that has not been loaded it is what its folder allows.
func (c *Catalog) List(ctx context.Context) []chat.Model {
	c.look(context.WithoutCancel(ctx), listAge)
	c.glance()
	var list []chat.Model
	for _, e := range c.all() {
		if e.mayUse(ctx) == nil {
			list = append(list, e.Model())
		}
	}
	return list
}

// mayUse is nil if the client of ctx may use the model. It is asked before anything is loaded.
func (e *Entry) mayUse(ctx context.Context) error {
	client := access.From(ctx)
	if allowed(client.Models, e.names.exact) {
		return nil
	}
	return &chat.Error{Kind: chat.Forbidden, Param: "model", Code: "model_not_allowed",
		Msg: fmt.Sprintf("the key %s may not use the model %s; it may use %s (models= of its line in the file of keys)", shown(client.Name), shown(e.ID()), strings.Join(client.Models, ", "))}
}

// allowed reports whether a model with such names is one of those that patterns name; none: all are.
func allowed(patterns, names []string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(names, func(name string) bool { return matchAny(patterns, name) })
}

// all are the models that can be served.
func (c *Catalog) all() []*Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Concat(c.entries, c.listed)
}

// every is each entry that there is, also of a model that is on disk no more.
func (c *Catalog) every() []*Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Concat(c.entries, c.found)
}

// Warnings are those of the folders of all models that are loaded.
func (c *Catalog) Warnings() []Warning {
	var all []Warning
	for _, e := range c.every() {
		if m := e.loaded(); m != nil {
			all = append(all, m.warnings...)
		}
	}
	return all
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

// Close frees everything. A Load in progress is waited for. Close may be called again.
func (c *Catalog) Close() error {
	var errs []error
	c.closing.Do(func() {
		errs = append(errs, c.closeOnDemand())
		for i := len(c.entries) - 1; i >= 0; i-- {
			errs = append(errs, c.entries[i].close())
		}
	})
	return errors.Join(errs...)
}
