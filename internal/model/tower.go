package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/regular"
)

// Image is a picture as a tower reads it, prepared as the family's processor does.
type Image struct {
	Patches []float32 // of all patches, in the order of the tower, Tower.Patch numbers each
	Grid    [3]int    // frames, rows and columns of patches
}

// Features are what a tower makes of an image: rows for the places of its tokens. They are pinned, until Free.
type Features struct {
	Rows B.Array   // [positions, Tower.Width]
	Deep []B.Array // of the same size: to be added after the first layers, one each
}

// Free ends the life of the arrays.
func (f *Features) Free(be B.Backend) {
	for _, a := range append(f.Deep, f.Rows) {
		be.Unpin(a)
	}
	*f = Features{}
}

// Bytes is what the features take.
func (f *Features) Bytes() int64 {
	size := int64(4)
	if t := f.Rows.DType(); t == B.BF16 || t == B.F16 {
		size = 2
	}
	return int64(len(f.Deep)+1) * int64(f.Rows.Rows()) * int64(f.Rows.Cols()) * size
}

// Tower is the part of a model that sees. Its weights are not read before Load, which is for the first image.
type Tower struct {
	Type  string // model_type of the model
	Patch int    // numbers of a patch
	Width int    // columns of what comes out
	Deep  int    // arrays that are added after the first layers
	Bytes int64  // of its weights as stored
	// Together: rows of an image see each other in the language model, so that one step must have all of them: see
	// backend.Span.Both. What is cached may still end among them.
	Together bool

	net    vision
	parts  *inventory
	loader B.Loader
}

// vision is a tower with what joins it to the language model, of one family.
type vision interface {
	stateful
	renamer
	// sizes are numbers of a patch, columns of a row and arrays beside the first.
	sizes() (patch, width, deep int)
	// fits says what is wrong with a grid.
	fits(grid [3]int) error
	// together reports that rows of an image see each other in the language model.
	together() bool
	// rows is how many tokens' places an image takes.
	rows(grid [3]int) int
	// batch is the step of an image: its spans and the positions of its patches.
	batch(grid [3]int) *B.Batch
	// encode makes the rows, and those to be added later.
	encode(o B.Ops, b *B.Batch, grid [3]int, patches B.Array) []B.Array
	// at is where row i of an image is, from where the image begins, on the axes of positions of the language model; what follows
	// the image is extent further than where it began.
	at(grid [3]int, i int) [3]int32
	extent(grid [3]int) int
}

// centring is a tower whose processor leaves it to the model to bring pixels around 0.
type centring interface {
	centre(numbers []float32) []float32
}

// visionMaker reads the config's part of a tower. The language model's rows have width columns.
type visionMaker func(cfg *config, width int) (vision, error)

// towers are the types of models that see, by resolved model_type.
var towers = map[string]visionMaker{}

// visionKey is the part of config.json that describes a tower.
const visionKey = "vision_config"

// errBlind is of a model without a tower.
var errBlind = errors.New("has no part that sees")

// newTower declares the tower of a config.
func newTower(typ string, b []byte) (vision, error) {
	mk := towers[resolve(typ)]
	if mk == nil {
		return nil, errBlind
	}
	c, err := openConfig(typ, b)
	if err != nil {
		return nil, inConfig(err)
	}
	if !given(c.top[visionKey]) {
		return nil, errBlind
	}
	var text struct {
		Width int `json:"hidden_size"`
	}
	c.into(&text)
	v, err := mk(c, text.Width)
	if err := cmp.Or(c.err, err); err != nil {
		return nil, inConfig(err)
	}
	return v, nil
}

// vision decodes the tower's keys into tagged fields, which hold the defaults.
func (c *config) vision(to any) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(c.top[visionKey], &keys); err != nil {
		c.fail(keyed(visionKey, err))
		return
	}
	if err := c.decode(keys, visionKey+".", to); err != nil {
		c.fail(fmt.Errorf("%s.%w", visionKey, err))
	}
}

// Tower finds the part of the model that sees, without reading it. It is nil where there is none: the type has none here, or the
// folder has the language model alone. Of a config.json alone it is what that tells of. Errors are LoadErrors.
func (c *Checkpoint) Tower() (*Tower, error) {
	if !c.blank && !slices.ContainsFunc(c.names(), func(name string) bool { return visionName(name) != "" }) {
		return nil, nil
	}
	t, err := findTower(c.Type, c.Config, c.source)
	if err != nil {
		return nil, c.blame(err)
	}
	return t, nil
}

// names are those of all tensors.
func (c *Checkpoint) names() []string {
	var all []string
	for name := range c.where {
		all = append(all, name)
	}
	return all
}

// Tower is that of a model without files.
func (s Synthetic) Tower() (*Tower, error) {
	typ, err := typeOf(s.Config)
	if err != nil {
		return nil, err
	}
	return findTower(typ, s.Config, s.source)
}

func findTower(typ string, cfg []byte, open func(stateful) (Source, error)) (*Tower, error) {
	v, err := newTower(typ, cfg)
	if errors.Is(err, errBlind) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	src, err := open(v)
	if err != nil {
		return nil, err
	}
	t := &Tower{Type: typ, net: v, Together: v.together()}
	t.Patch, t.Width, t.Deep = v.sizes()
	if t.parts, err = find(v, src, 1); err != nil {
		return nil, err
	}
	return t, nil
}

// visionName is the name that a tensor of a tower has without its prefix, "" for others.
func visionName(name string) string {
	name = strings.TrimPrefix(name, "model.")
	for _, p := range []string{"visual.", "vision_tower.", "vision_model."} {
		if rest, ok := strings.CutPrefix(name, p); ok {
			return rest
		}
	}
	return ""
}

// Load reads the weights. Only the first call does.
func (t *Tower) Load(be B.Backend, opts B.Options) error {
	if t.loader != nil {
		return nil
	}
	count := &counter{Loader: be.NewLoader(opts), bits: map[int]int64{}}
	if err := t.parts.load(count); err != nil {
		return errors.Join(err, count.Close())
	}
	t.loader, t.Bytes = count, count.bytes
	return nil
}

// Loaded reports that Load has read the weights.
func (t *Tower) Loaded() bool { return t.loader != nil }

// Close frees the weights.
func (t *Tower) Close() error {
	if t == nil || t.loader == nil {
		return nil
	}
	ld := t.loader
	t.loader = nil
	return ld.Close()
}

// mostPatches is how many patches of one image memory is promised for: what the processors of most families make of the largest.
const mostPatches = 1 << 16

// Largest is the grid of the largest square image, or of the only size there is, that takes up to so many places of tokens and
// mostPatches; false: none does.
func (t *Tower) Largest(rows int) (grid [3]int, ok bool) {
	for n := int(math.Sqrt(mostPatches)); n > 0; n-- {
		if grid = [3]int{1, n, n}; t.net.fits(grid) == nil && t.net.rows(grid) <= rows {
			return grid, true
		}
	}
	return grid, false
}

// dry is a backend that runs steps without computing anything, on weights that were only counted, and tells what they take.
type dry interface {
	DryLoader(o B.Options) (B.Loader, func() int64)
	Rehearse(steps func() error) (int64, error)
}

// Weights tells what the weights take on a backend, in bytes: where it does not tell, those of the files. Nothing is loaded; of a
// tower that is, they are there and count as 0.
func (t *Tower) Weights(be B.Backend, opts B.Options) (int64, error) {
	if t.Loaded() {
		return 0, nil
	}
	if d, ok := be.(dry); ok {
		l, bytes := d.DryLoader(opts)
		err := t.parts.load(l)
		return bytes(), err
	}
	none := B.Visitor(func(B.WeightSpec) (B.Weight, error) { return nil, nil })
	files := &counter{Loader: none.NewLoader(opts), bits: map[int]int64{}}
	err := t.parts.load(files)
	return files.bytes, err
}

// Weigh is Weights, and what a step with an image of such a grid takes beside them; 0 where the backend does not tell. No step
// may be open.
func (t *Tower) Weigh(be B.Backend, opts B.Options, grid [3]int) (weights, step int64, err error) {
	weights, err = t.Weights(be, opts)
	d, ok := be.(dry)
	if err != nil || !ok {
		return weights, 0, err
	}
	step, err = d.Rehearse(func() error {
		b := t.net.batch(grid)
		o := be.Begin(nil, b)
		defer o.End()
		t.net.encode(o, b, grid, o.Upload(make([]float32, b.Rows()*t.Patch), b.Rows(), t.Patch))
		return o.Err()
	})
	return weights, step, err
}

// FeatureBytes is more than what Encode makes of an image takes.
func (t *Tower) FeatureBytes(grid [3]int) int64 {
	return 4 * int64(t.Deep+1) * int64(t.net.rows(grid)) * int64(t.Width)
}

// Check says what is wrong with a grid and so many numbers of its patches.
func (t *Tower) Check(grid [3]int, numbers int) error {
	n := 1
	for _, k := range grid {
		if k <= 0 || k > maxSize/n {
			return fmt.Errorf("an image of %v patches is out of range", grid)
		}
		n *= k
	}
	if n*t.Patch != numbers {
		return fmt.Errorf("an image of %v patches has %d numbers, not %d", grid, numbers, n*t.Patch)
	}
	return t.net.fits(grid)
}

// Rows is how many tokens' places an image takes.
func (t *Tower) Rows(grid [3]int) int { return t.net.rows(grid) }

// lined is a tower between the lines of whose images tokens of text stand.
type lined interface {
	// line is how many rows of features a line has.
	line(grid [3]int) int
}

// Line is how many rows of features a line of an image has, where a token that breaks lines stands between two of them, in one of
// the places that Rows counts; 0: there are no such tokens.
func (t *Tower) Line(grid [3]int) int {
	if l, ok := t.net.(lined); ok {
		return l.line(grid)
	}
	return 0
}

// Feature is which row of features place i of an image takes, where a line has so many (see Tower.Line); false: the token there
// stays.
func Feature(line, i int) (row int, ok bool) {
	if line == 0 {
		return i, true
	}
	return i - i/(line+1), i%(line+1) != line
}

// At is where row i of an image is on the three axes of positions, counted from where the image begins.
func (t *Tower) At(grid [3]int, i int) [3]int32 { return t.net.at(grid, i) }

// Extent is how far behind the beginning of an image the text goes on.
func (t *Tower) Extent(grid [3]int) int { return t.net.extent(grid) }

// Encode runs a loaded tower over an image that passed Check, in a step of its own.
func (t *Tower) Encode(be B.Backend, img *Image) (Features, error) {
	b, numbers := t.net.batch(img.Grid), img.Patches
	if c, ok := t.net.(centring); ok {
		numbers = c.centre(numbers)
	}
	o := be.Begin(nil, b)
	defer o.End()
	all := t.net.encode(o, b, img.Grid, o.Upload(numbers, b.Rows(), t.Patch))
	for i := range all {
		all[i] = o.Pin(all[i])
	}
	o.Submit(all...)
	f := Features{Rows: all[0], Deep: all[1:]}
	if err := o.Err(); err != nil {
		f.Free(be)
		return Features{}, err
	}
	return f, nil
}

// frames are the spans of an image whose patches see those of their frame.
func frames(grid [3]int) *B.Batch {
	b := &B.Batch{}
	n := grid[1] * grid[2]
	for f := range grid[0] {
		b.Spans = append(b.Spans, B.Span{Slot: -1, Row: f * n, Len: n})
	}
	for i := range grid[0] * n {
		b.Out = append(b.Out, int32(i))
	}
	return b
}

// squares gives the row and column of every patch of an image whose patches come in squares of side·side, each of which becomes
// one row of features.
func squares(grid [3]int, side int) (row, col []int32) {
	for range grid[0] {
		for r := 0; r < grid[1]; r += side {
			for c := 0; c < grid[2]; c += side {
				for i := range side * side {
					row, col = append(row, int32(r+i/side)), append(col, int32(c+i%side))
				}
			}
		}
	}
	return row, col
}

// inLine is where row i of an image is in a language model whose positions have one axis.
func inLine(i int) [3]int32 { return [3]int32{int32(i), int32(i), int32(i)} }

// merge makes one row of every square of side·side patches, which come row by row.
func merge(o B.Ops, h B.Array, grid [3]int, side int) B.Array {
	row, col := squares(grid, side)
	order := make([]int32, len(row))
	for i := range order {
		order[i] = row[i]*int32(grid[2]) + col[i]
	}
	return o.MergeRows(o.Gather(h, order), side*side)
}

// means is merge whose rows are the means.
func means(o B.Ops, h B.Array, grid [3]int, side int) B.Array {
	if side == 1 {
		return h
	}
	n, d := side*side, h.Cols()
	all := merge(o, h, grid, side)
	sum := o.Cols(all, 0, d)
	for i := 1; i < n; i++ {
		sum = o.Add(sum, o.Cols(all, i*d, (i+1)*d))
	}
	return o.Scale(sum, 1/float32(n))
}

// outOf refuses a number of vision_config.
func (c *config) outOf(key string, n, least, most int) {
	if n < least || n > most {
		c.fail(fmt.Errorf("%s.%s %d is missing or out of range", visionKey, key, n))
	}
}

// visionAct is the activation that vision_config names.
func (c *config) visionAct(name string) B.ActKind { return c.actNamed(visionKey+".hidden_act", name) }

// actNamed is the activation that a key names.
func (c *config) actNamed(key, name string) B.ActKind {
	act, ok := acts[name]
	if !ok {
		c.fail(fmt.Errorf("%s %s is not supported", key, regular.Quote(name)))
	}
	return act
}
