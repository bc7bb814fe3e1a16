package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/nn"
	"hearth/internal/regular"
)

// Kind is what a model is for.
type Kind uint8

const (
	Generates Kind = iota // text, token after token
	Embeds                // texts become vectors
	Ranks                 // a query and a text become a score
)

func (k Kind) String() string { return [...]string{"generates text", "embeds texts", "ranks texts"}[k] }

// Encoder is a loaded model that gives one row per text instead of logits. A text is a span of a batch without state: all
// of it is in one step.
type Encoder struct {
	Type        string // model_type as config.json spells it
	Vocab       int    // tokens
	Context     int    // tokens of a text; 0 if the config does not say
	Width       int    // columns of a row: of a vector, or what a score is made of
	Pooling     Pooling
	Params      int64
	Bytes       int64    // as stored
	Reading     *Reading // what the architecture made of config.json
	Warnings    []string // what is wrong with the folder, or not understood, a line each
	Description string   // for example "bert, 23M parameters, 32 bits, embeds texts in 384 numbers"

	net    *pooled
	loader B.Loader
}

// Close frees the weights. The checkpoint stays open; close it after.
func (e *Encoder) Close() error { return e.loader.Close() }

// Prepare fills in which rows of the batch's spans the model needs to be told about.
func (e *Encoder) Prepare(b *B.Batch) {
	b.Out = b.Out[:0]
	for i := range b.Spans {
		s := &b.Spans[i]
		switch e.Pooling.Rows {
		case B.PoolFirst:
			b.Out = append(b.Out, int32(s.Row))
		case B.PoolLast:
			b.Out = append(b.Out, int32(s.Row+s.Len-1))
		default:
			for r := range s.Len {
				b.Out = append(b.Out, int32(s.Row+r))
			}
		}
	}
}

// Forward gives a row per span of a prepared batch: [spans, Width]. What is left to do with a row are Vector and Score.
func (e *Encoder) Forward(o B.Ops, b *B.Batch) B.Array { return e.net.Forward(o, b) }

// encoderMaker declares an architecture that only encodes.
type encoderMaker func(cfg *config, b *Build) (encoderBody, error)

// encoderBody is a network of which an Encoder needs the rows.
type encoderBody interface {
	Model
	renamer
	// Sizes are tokens, positions and columns.
	Sizes() (vocab, context, width int)
	// classifier is the head that ranks with these many scores, and which rows it reads.
	classifier(labels int) (head, B.PoolKind)
}

var encoders = map[string]encoderMaker{}

func registerEncoder(name string, m encoderMaker) { encoders[name] = m }

// EncoderTypes lists the values of model_type that only encode, aliases included, sorted.
func EncoderTypes() []string {
	types := slices.AppendSeq(slices.Collect(maps.Keys(encoders)), maps.Keys(encoderAliases))
	slices.Sort(types)
	return types
}

func resolveEncoder(modelType string) string {
	modelType = named(modelType)
	if t, ok := encoderAliases[modelType]; ok {
		return t
	}
	return modelType
}

// embedder is a decoder under a name that says what the config does not: that it embeds or ranks, and how.
type embedder struct {
	as   string     // the decoder
	both bool       // rows see what follows them too
	rows B.PoolKind // that become the text's, where the folder does not say
	unit bool       // vectors have length 1, though modules.json has no module for it
}

// embedders are the embedder types by name.
var embedders = map[string]embedder{
	"qwen3_embedding":      {as: "qwen3", rows: B.PoolLast},
	"gemma3_embedding":     {as: "gemma3_text", both: true, rows: B.PoolMean},
	"ministral3_embedding": {as: "ministral3", both: true, rows: B.PoolMean},
	"llama_bidirec":        {as: "llama", both: true, rows: B.PoolMean},
	"lfm2_embedding":       {as: "lfm2", both: true, rows: B.PoolFirst, unit: true},
	"lfm2_bidirectional":   {as: "lfm2", both: true, rows: B.PoolFirst, unit: true},
}

// calledBy is modelType, or lfm2_embedding where a class of lfm2 says that the model embeds: one in config.json's
// architectures, or in the auto_map to code beside it.
func calledBy(modelType string, top map[string]json.RawMessage) string {
	const class = "Lfm2Bidirectional"
	var names []string
	if named(modelType) != "lfm2" {
		return modelType
	}
	if json.Unmarshal(top["architectures"], &names) == nil && slices.ContainsFunc(names, func(c string) bool { return strings.HasPrefix(c, class) }) ||
		strings.Contains(string(top["auto_map"]), "."+class) {
		return "lfm2_embedding"
	}
	return modelType
}

// NearEncoderTypes lists further values of model_type that only encode, sorted: names of decoders.
func NearEncoderTypes() []string { return slices.Sorted(maps.Keys(embedders)) }

// encodes reports a type that embeds or ranks texts and generates none.
func encodes(modelType string) bool {
	_, is := encoders[resolveEncoder(modelType)]
	_, called := embedders[named(modelType)]
	return is || called
}

// pooled is a body with what comes after it.
type pooled struct {
	Body encoderBody `w:""`
	Head head        `w:""`
	pool B.PoolKind
}

// head are the layers behind the pooled rows; steps runs those that there are.
type head struct {
	Pooler     *nn.Linear   `w:"pooler.dense"`
	Classifier *nn.Linear   `w:"classifier"`
	Inner      *nn.Linear   `w:"classifier.dense"`
	Outer      *nn.Linear   `w:"classifier.out_proj"`
	Score      *nn.Linear   `w:"score"`
	Dense      []*nn.Linear `w:"dense"`
	steps      []step
}

type step struct {
	layer *nn.Linear
	act   B.Activation
	scale float32 // of its result; 0: none
}

// squash is the hyperbolic tangent.
var squash = B.Activation{Kind: B.TanhCap, A: 1}

// lin declares a small layer whose input is never rounded: it runs once per text.
func lin(in, out int, bias bool) *nn.Linear {
	l := nn.Lin(in, out)
	l.Least, l.Bias = B.Float32, bias
	return &l
}

func (p *pooled) States() []B.StateSpec { return p.Body.States() }

// Forward is that of Model with a row for each span: [spans, width].
func (p *pooled) Forward(o B.Ops, b *B.Batch) B.Array {
	h := o.Pool(p.Body.Forward(o, b), p.pool)
	for i := range p.Head.steps {
		s := &p.Head.steps[i]
		if h = s.layer.Forward(o, h); s.scale != 0 && s.scale != 1 {
			h = o.Scale(h, s.scale)
		}
		if s.act.Kind != B.ActNone {
			h = o.Act(h, &s.act)
		}
	}
	return h
}

// Rename leaves the names of dense layers, which have files of their own.
func (p *pooled) Rename(name string) string {
	if strings.HasPrefix(name, denseModule) {
		return name
	}
	return p.Body.Rename(name)
}

// newEncoder declares the network of a model_type for the use that p describes. It sets p.Rows to what a ranking head reads.
func newEncoder(typ string, cfg []byte, p *Pooling, world int) (*pooled, *Reading, error) {
	c, err := openConfig(typ, cfg)
	if err != nil {
		return nil, nil, inConfig(err)
	}
	body, err := newBody(c, p, world)
	if err := cmp.Or(c.err, err); err != nil {
		return nil, nil, inConfig(err)
	}
	r, err := c.finish()
	if err != nil {
		return nil, nil, err
	}
	m, err := pool(body, p)
	return m, r, err
}

// pool adds the head or the dense layers that a use needs behind a body.
func pool(body encoderBody, p *Pooling) (*pooled, error) {
	_, _, width := body.Sizes()
	m := &pooled{Body: body, pool: p.Rows}
	if _, ok := body.(*decoderEncoder); !ok && p.yesNo() {
		return nil, inConfig(fmt.Errorf("the model has no logits to tell yes from no by"))
	}
	if p.Kind == Ranks && !p.yesNo() {
		if p.Labels != 1 {
			return nil, inConfig(fmt.Errorf("the model tells %d classes apart; only models with one score per text rank", p.Labels))
		}
		m.Head, m.pool = body.classifier(p.Labels)
		p.Rows = m.pool
		return m, nil
	}
	for i, d := range p.Dense {
		if d.In != width {
			return nil, &LoadError{File: d.file(), Problem: fmt.Sprintf("the layer takes %d numbers, there are %d", d.In, width)}
		}
		m.Head.Dense = append(m.Head.Dense, lin(d.In, d.Out, d.Bias))
		m.Head.steps = append(m.Head.steps, step{layer: m.Head.Dense[i], act: d.Act})
		width = d.Out
	}
	return m, nil
}

// newBody declares an encoder, or makes one of a decoder.
func newBody(c *config, p *Pooling, world int) (encoderBody, error) {
	if mk, ok := encoders[resolveEncoder(c.typ)]; ok {
		return mk(c, &Build{World: world})
	}
	mk, e := makerOf(c.typ), embedders[c.typ]
	if e.as != "" {
		mk = makerOf(e.as)
	}
	if mk == nil {
		return nil, known(c.typ)
	}
	g, err := mk(c, &Build{World: world})
	if err != nil {
		return nil, err
	}
	d, ok := g.(*decoder)
	if !ok {
		return nil, &LoadError{File: configFile, Problem: fmt.Sprintf("architecture %s cannot embed or rank texts here", regular.Quote(c.typ))}
	}
	return encode(d, c, p, e)
}

// width is the columns that come out.
func (p *pooled) width() int {
	if n := len(p.Head.steps); n > 0 {
		return sum(p.Head.steps[n-1].layer.Outs)
	}
	_, _, w := p.Body.Sizes()
	if d, ok := p.Body.(*decoderEncoder); ok && d.tokens != nil {
		return len(d.tokens)
	}
	return w
}

// LoadEncoder builds the model of the checkpoint on be for the use that p describes, see Checkpoint.Pooling. Errors
// are LoadErrors.
func (c *Checkpoint) LoadEncoder(be B.Backend, opts B.Options, p Pooling) (*Encoder, error) {
	if err := c.openDense(p.Dense); err != nil {
		return nil, c.blame(err)
	}
	e, err := loadEncoder(c.Type, c.Config, be, opts, p, c.source, c.Stop)
	if err != nil {
		return nil, c.blame(err)
	}
	e.Warnings = append(slices.Clip(c.Warnings), e.Warnings...)
	return e, nil
}

// LoadEncoder is Load for a model that embeds or ranks.
func (s Synthetic) LoadEncoder(be B.Backend, opts B.Options, p Pooling) (*Encoder, error) {
	typ, err := typeOf(s.Config)
	if err != nil {
		return nil, err
	}
	return loadEncoder(typ, s.Config, be, opts, p, s.source, nil)
}

func loadEncoder(typ string, cfg []byte, be B.Backend, opts B.Options, p Pooling, open func(stateful) (Source, error), stop func() error) (*Encoder, error) {
	world := max(be.Caps().World, 1)
	m, reading, err := newEncoder(typ, cfg, &p, world)
	if err != nil {
		return nil, err
	}
	src, err := open(m)
	if err != nil {
		return nil, err
	}
	count := &counter{Loader: be.NewLoader(opts), bits: map[int]int64{}, stop: stop}
	if err := Load(m, src, count, world); err != nil {
		return nil, errors.Join(err, count.Close())
	}
	e := &Encoder{Type: typ, Pooling: p, Params: count.params, Bytes: count.bytes, Width: m.width(), Reading: reading, Warnings: reading.Warnings(), net: m, loader: count}
	e.Vocab, e.Context, _ = m.Body.Sizes()
	use := fmt.Sprintf("embeds texts in %d numbers", e.Width)
	if p.Kind == Ranks {
		use = "ranks texts"
	}
	e.Description = fmt.Sprintf("%s, %s parameters, %s, %s", typ, scaled(e.Params), count.width(), use)
	return e, nil
}
