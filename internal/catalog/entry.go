package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/engine"
	"hearth/internal/generate"
	"hearth/internal/model"
	"hearth/internal/script"
)

// Role is what a model is there for.
type Role uint8

const (
	Main     Role = iota // the model of the command line
	Small                // the one beside it for side work
	Beside               // one that embeds or ranks
	OnDemand             // one on disk, for requests that name it
)

// Entry is a model of the table: its names, where it comes from, what it is for and what has become of it.
type Entry struct {
	Role Role

	names names
	src   *Source
	cfg   *config.Config // with what its file says of this model
	kind  model.Kind     // what it is to do; Generates: what its folder says

	known chan struct{} // closed when the model's text side is known to work; see Catalog.Known
	base  bool          // set before known is closed: the model has no chat template
	loading
	current atomic.Pointer[resident] // nil: it is not loaded
	lastUse atomic.Int64             // in Unix nanoseconds; 0: never
	onDemand
}

// used is when a request used the model last; zero: never.
func (e *Entry) used() time.Time {
	if n := e.lastUse.Load(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

func newEntry(role Role, src *Source, cfg *config.Config, kind model.Kind) *Entry {
	return &Entry{Role: role, names: newNames(src, cfg.ServedModelName), src: src, cfg: cfg, kind: kind,
		known: make(chan struct{}), loading: loading{done: make(chan struct{})}}
}

// ID is what the model is called towards clients.
func (e *Entry) ID() string { return e.names.id() }

// loading is how the load of a model that stays goes. It ends once.
type loading struct {
	done chan struct{} // closed when it has ended
	err  error         // set before done is closed
}

// end ends the load, or stands for one that is never begun.
func (l *loading) end(err error) {
	l.err = err
	close(l.done)
}

// failure is how the load has failed, nil while it goes on.
func (l *loading) failure() error {
	select {
	case <-l.done:
		return l.err
	default:
		return nil
	}
}

// Ready reports whether the model is loaded.
func (e *Entry) Ready() bool { return e.loaded() != nil }

// loaded is the model, nil while it is not loaded.
func (e *Entry) loaded() *resident { return e.current.Load() }

// wait waits until the model is loaded. Errors are ctx's, and a *chat.Error where it cannot be.
func (e *Entry) wait(ctx context.Context) (*resident, error) {
	select {
	case <-e.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if e.err != nil {
		return nil, &chat.Error{Kind: chat.Internal, Msg: "the model could not be loaded; see the server's log", Err: e.err}
	}
	return e.current.Load(), nil
}

// resident is a model that is loaded: it generates, or it embeds or ranks.
type resident struct {
	weights  *Weights       // nil where it does not generate, and where a script answers
	gen      chat.Generator // nil where it does not generate
	enc      *Encoder       // nil where it generates
	warnings []Warning
	script   string // file that answers in the model's place
}

// load reads the model and starts what runs it.
func (e *Entry) load(ctx context.Context, bs Backends, disk *DiskCache) error {
	m, err := e.open(ctx, bs, disk)
	e.current.Store(m)
	e.end(err)
	return err
}

// open reads the model. When ctx ends it reads no further.
func (e *Entry) open(ctx context.Context, bs Backends, disk *DiskCache) (m *resident, err error) {
	m = &resident{}
	switch {
	case e.kind != model.Generates:
		m.enc, m.warnings, err = openEncoder(ctx, e.src, e.cfg, e.ID(), e.kind, bs)
	case e.cfg.Script != "":
		m.script = e.cfg.Script
		m.gen, m.warnings, err = openScripted(e.src, e.cfg, e.ID(), bs)
	case encodes(e.src):
		e.setKnown(false) // it has no template
		m.enc, m.warnings, err = openEncoder(ctx, e.src, e.cfg, e.ID(), model.Generates, bs)
	default:
		m.weights, m.gen, m.warnings, err = openLocal(ctx, e.src, e.cfg, e.ID(), bs, disk, e.setKnown)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// setKnown is for models that stay: the others are known when they are loaded.
func (e *Entry) setKnown(base bool) {
	if e.Role != OnDemand {
		e.base = base
		close(e.known)
	}
}

// Model describes the model; while it loads its context is unknown.
func (e *Entry) Model() chat.Model {
	if r := e.loaded(); r != nil {
		m := r.Model()
		m.State = chat.Loaded
		return m
	}
	if e.Role == OnDemand {
		return e.asleep()
	}
	m := chat.Model{ID: e.ID(), Path: e.src.Path, Created: e.src.Created, State: chat.Loading}
	switch e.kind {
	case model.Embeds:
		m.Kind = chat.Embeds
	case model.Ranks:
		m.Kind = chat.Ranks
	default:
		select {
		case <-e.known:
			if e.base {
				m.Kind = chat.Completes
			}
		default:
		}
	}
	return m
}

// Model describes the model.
func (m *resident) Model() chat.Model {
	if m.enc != nil {
		return m.enc.Model()
	}
	return m.gen.Model()
}

// Weights gives the loaded weights and their engine, nil until Ready, where the model does not generate and where a script
// answers.
func (e *Entry) Weights() *Weights {
	if m := e.loaded(); m != nil {
		return m.weights
	}
	return nil
}

// Encoder is the model where it embeds or ranks, nil otherwise and until Ready.
func (e *Entry) Encoder() *Encoder {
	if m := e.loaded(); m != nil {
		return m.enc
	}
	return nil
}

// Summary is one line about what was loaded and how it runs, "" until Ready.
func (e *Entry) Summary() string {
	m := e.loaded()
	switch {
	case m == nil:
		return ""
	case m.enc != nil:
		return m.enc.Summary()
	case m.weights != nil:
		return m.weights.Summary()
	}
	return fmt.Sprintf("no model runs, %s answers", m.script)
}

// Took is how long loading took, 0 until Ready and of a script.
func (e *Entry) Took() time.Duration {
	switch m := e.loaded(); {
	case m == nil:
	case m.enc != nil:
		return m.enc.took
	case m.weights != nil:
		return m.weights.Took
	}
	return 0
}

// Remarks says where the settings contradict the model or cost it much, a line each.
func (e *Entry) Remarks() []string {
	m := e.loaded()
	if m == nil || m.gen == nil {
		return nil
	}
	var lines []string
	if w := m.weights; w != nil {
		if kv := w.Engine.KV(); kv.Rounding() != "" {
			lines = append(lines, fmt.Sprintf("kv-type %v of %s: %s", kv, e.ID(), kv.Rounding()))
		}
	}
	if g, ok := m.gen.(interface{ Warnings() []string }); ok {
		lines = append(lines, g.Warnings()...)
	}
	return lines
}

// Repairs counts what was put right in the model's tool calls, by kind.
func (e *Entry) Repairs() map[string]int64 {
	if m := e.loaded(); m != nil {
		if g, ok := m.gen.(interface{ Repairs() map[string]int64 }); ok {
			return g.Repairs()
		}
	}
	return nil
}

// Decoded counts the files of images that were decoded for the model.
func (e *Entry) Decoded() int64 {
	if m := e.loaded(); m != nil {
		if g, ok := m.gen.(interface{ Decoded() int64 }); ok {
			return g.Decoded()
		}
	}
	return 0
}

// Stats gives the engine's figures, zero until Ready; of a script, how many replies run.
func (e *Entry) Stats() engine.Stats {
	m := e.loaded()
	if m != nil && m.weights != nil {
		return m.weights.Engine.Stats()
	}
	return engine.Stats{Running: len(m.live())}
}

// Stuck reports a step that does not end, of a model in this process. It does not wait for the model.
func (e *Entry) Stuck() bool {
	m := e.loaded()
	if m == nil || m.weights == nil {
		return false
	}
	own, here := m.weights.Engine.(*engine.Engine)
	return here && own.Stuck() > 0
}

// Restarting reports a model that was loaded and whose process has ended or loads again. It does not wait for the model.
func (e *Entry) Restarting() bool {
	m := e.loaded()
	if m == nil || m.weights == nil {
		return false
	}
	pid, starts := m.weights.Process()
	return starts > 0 && pid == 0
}

// live lists what waits and runs.
func (m *resident) live() []engine.Live {
	switch {
	case m == nil || m.gen == nil:
	case m.weights != nil:
		return m.weights.Engine.Live()
	default:
		if s, ok := m.gen.(*script.Generator); ok {
			return s.Live()
		}
	}
	return nil
}

// bytes is the size of the weights.
func (m *resident) bytes() int64 {
	switch {
	case m == nil:
	case m.weights != nil:
		return m.weights.Model.Bytes
	case m.enc != nil:
		return m.enc.Bytes()
	}
	return 0
}

// close frees the model, once its load has ended.
func (e *Entry) close() error {
	<-e.done
	if e.err != nil {
		return nil // load has freed what there was
	}
	return e.current.Swap(nil).close()
}

func (m *resident) close() error {
	switch {
	case m.enc != nil:
		return m.enc.close()
	case m.weights != nil:
		return errors.Join(saveHistory(m.weights, m.gen), m.weights.Close())
	}
	return nil
}

// mustChat refuses a base model, and a template that was given and does not work, before the weights of any model are read. What
// else is wrong with a folder is said when it is loaded.
func mustChat(src *Source, cfg *config.Config) error {
	if encodes(src) {
		return nil
	}
	if cfg.ChatTemplate != "" {
		if text, err := Text(src, cfg); err != nil || text.Template != nil {
			return err
		}
	} else if _, err := generate.LoadTemplate(src.FS, ""); !isBase(err) {
		return nil
	}
	return &model.LoadError{Where: src.Where, Problem: "the small model is a base model: it has no chat template, and what it is for, the side work of clients that chat, it cannot do",
		Hint: fmt.Sprintf("use one that chats, or give it a template in the settings file: [models.%q] and under it chat-template = \"NAME or FILE\"", src.ID)}
}

// generatesNothing refuses a request for text.
func generatesNothing(m chat.Model) *chat.Error {
	does, path := "embeds texts", "/v1/embeddings"
	if m.Kind == chat.Ranks {
		does, path = "ranks texts", "/v1/rerank"
	}
	return &chat.Error{Kind: chat.Invalid, Param: "model", Code: "model_not_supported",
		Msg: fmt.Sprintf("%q %s and generates none: it answers POST %s", m.ID, does, path)}
}

// wanted is how a kind of model is spoken of.
var wanted = map[chat.ModelKind]struct{ noun, verb, flag string }{
	chat.Embeds: {"an embedding model", "embeds texts", "--embedding-model"},
	chat.Ranks:  {"a ranking model", "ranks texts", "--rerank-model"},
}

// refuse says why a name is of no use, and what would be.
func (c *Catalog) refuse(name string, kind, is chat.ModelKind, instead *Entry) *chat.Error {
	w := wanted[kind]
	msg := fmt.Sprintf("%s generates text", shown(cmp.Or(name, c.ID())))
	if is != chat.Chats {
		msg = fmt.Sprintf("%s %s", shown(cmp.Or(name, c.ID())), wanted[is].verb)
	}
	if instead != nil {
		msg += fmt.Sprintf("; what %s here is %q", w.verb, instead.ID())
	} else {
		msg += fmt.Sprintf("; %s is needed: start the server with %s", w.noun, w.flag)
	}
	return &chat.Error{Kind: chat.Invalid, Param: "model", Code: "model_not_supported", Msg: msg}
}
