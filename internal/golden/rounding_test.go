package golden_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/model"
)

var (
	lossFolder = flag.String("loss", "", "folder of a dense model to find in which products fast loses most")
	lossTokens = flag.String("loss-tokens", "", "file of texts for -loss: {\"tokens\": [...]} a line")
	lossLength = flag.Int("loss-length", 256, "tokens of each text for -loss")
	lossLayers = flag.Bool("loss-layers", false, "-loss tells it of every layer as well")
)

// productKinds are those of a dense model's products, by a part of their weights' names.
var productKinds = []struct{ name, part string }{
	{"qkv", "q_proj"}, {"o", "o_proj"}, {"gate and up", "gate_proj"}, {"down", "down_proj"}, {"head", "embed_tokens"},
}

// TestLoss prints what fast costs a model where only some products see rounded activations, and which groups are at fault.
func TestLoss(t *testing.T) {
	if *lossFolder == "" {
		t.Skip("-loss names no folder")
	}
	texts := lossTexts(t)
	c, err := model.OpenCheckpoint(os.DirFS(*lossFolder), *lossFolder)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	be := &rounding{Backend: cpu.New(), weights: map[backend.Weight]product{}}
	defer be.Close()
	m, err := c.Load(be, backend.Options{Precision: backend.Float32, Threads: cpu.Threads()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	be.rounds = func(product) bool { return false }
	want := textLogits(t, be, m, texts)
	cost := func(rounds func(product) bool) float64 {
		be.rounds = rounds
		q := &quality{}
		q.add(want, textLogits(t, be, m, texts), m.Vocab)
		return q.mean()
	}
	layers := 0
	for _, w := range be.weights {
		layers = max(layers, w.layer+1)
	}
	be.outliers = map[string]*tally{}
	fmt.Printf("all: %.2g\n", cost(func(product) bool { return true }))
	be.tell()
	for _, k := range productKinds {
		fmt.Printf("%s: only these %.2g, all but these %.2g\n", k.name, cost(func(w product) bool { return w.kind == k.name }),
			cost(func(w product) bool { return w.kind != k.name }))
	}
	if !*lossLayers {
		return
	}
	for l := range layers {
		fmt.Printf("layer %d:", l)
		for _, k := range productKinds[:4] {
			fmt.Printf(" %s %.2g", k.name, cost(func(w product) bool { return w.layer == l && w.kind == k.name }))
		}
		fmt.Println()
	}
}

func lossTexts(t *testing.T) (texts []passage) {
	f, err := os.Open(*lossTokens)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var line struct {
			Tokens []int32 `json:"tokens"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, passage{tokens: line.Tokens[:min(*lossLength, len(line.Tokens))]})
	}
	if lines.Err() != nil || len(texts) == 0 {
		t.Fatalf("no texts in %s: %v", *lossTokens, lines.Err())
	}
	return texts
}

// rounding is a backend of float32 products that rounds what goes into some of them as fast does.
type rounding struct {
	backend.Backend
	weights  map[backend.Weight]product
	rounds   func(product) bool
	outliers map[string]*tally // by kind; nil: not counted
}

// product is that of a weight: of which kind, layer (-1: none) and group.
type product struct {
	kind         string
	layer, group int
}

// tally counts groups of rows whose largest number is over twice the median of those of the row, and where it is.
type tally struct {
	groups, large int
	error, of     float64 // squares of the steps of these and of all
	at            map[[2]int]int
}

func (b *rounding) NewLoader(o backend.Options) backend.Loader {
	return roundingLoader{b.Backend.NewLoader(o), b}
}

type roundingLoader struct {
	backend.Loader
	b *rounding
}

var layerOf = regexp.MustCompile(`layers\.(\d+)\.`)

func (l roundingLoader) Load(s backend.WeightSpec) (backend.Weight, error) {
	w, err := l.Loader.Load(s)
	if err != nil {
		return nil, err
	}
	r := product{layer: -1}
	for _, k := range productKinds {
		if strings.Contains(s.Name, k.part) {
			r.kind = k.name
		}
	}
	if n := layerOf.FindStringSubmatch(s.Name); n != nil {
		if r.layer, err = strconv.Atoi(n[1]); err != nil {
			return nil, err
		}
	}
	for _, p := range s.Parts {
		r.group = max(r.group, p.Scheme.Group)
	}
	l.b.weights[w] = r
	return w, nil
}

func (b *rounding) Begin(s backend.Store, batch *backend.Batch) backend.Scope {
	return roundingScope{b.Backend.Begin(s, batch), b}
}

type roundingScope struct {
	backend.Scope
	b *rounding
}

func (s roundingScope) Linear(x backend.Array, w backend.Weight) backend.Array {
	return s.Scope.Linear(s.round(x, w), w)
}

func (s roundingScope) LinearGLU(x backend.Array, w backend.Weight, g *backend.GLU) backend.Array {
	return s.Scope.LinearGLU(s.round(x, w), w, g)
}

func (s roundingScope) round(x backend.Array, w backend.Weight) backend.Array {
	r := s.b.weights[w]
	if r.group == 0 || !s.b.rounds(r) {
		return x
	}
	f, err := s.Floats(x)
	if err != nil {
		return x // the scope has it, too
	}
	f = slices.Clone(f)
	for row := range slices.Chunk(f, x.Cols()) {
		s.b.count(r, row)
		for group := range slices.Chunk(row, r.group) {
			if step, _ := largest(group); step > 0 {
				step /= 127
				for i, v := range group {
					group[i] = step * float32(math.RoundToEven(float64(v/step)))
				}
			}
		}
	}
	return s.Upload(f, x.Rows(), x.Cols())
}

// largest is the largest magnitude and where it is.
func largest(x []float32) (top float32, at int) {
	for i, v := range x {
		if v = float32(math.Abs(float64(v))); v > top {
			top, at = v, i
		}
	}
	return top, at
}

func (b *rounding) count(r product, row []float32) {
	if b.outliers == nil {
		return
	}
	o := b.outliers[r.kind]
	if o == nil {
		o = &tally{at: map[[2]int]int{}}
		b.outliers[r.kind] = o
	}
	var tops []float32
	for group := range slices.Chunk(row, r.group) {
		top, _ := largest(group)
		tops = append(tops, top)
	}
	sorted := slices.Sorted(slices.Values(tops))
	usual := sorted[len(sorted)/2]
	for g, top := range tops {
		o.groups++
		o.of += float64(top) * float64(top)
		if top > 2*usual {
			_, at := largest(row[g*r.group:][:r.group])
			o.large++
			o.error += float64(top) * float64(top)
			o.at[[2]int{r.layer, g*r.group + at}]++
		}
	}
}

// tell prints what has been counted, and how many of the large numbers are in the four channels of their layer that have most.
func (b *rounding) tell() {
	for _, k := range productKinds {
		o := b.outliers[k.name]
		if o == nil {
			continue
		}
		byLayer := map[int][]int{}
		for at, n := range o.at {
			byLayer[at[0]] = append(byLayer[at[0]], n)
		}
		in := 0
		for _, n := range byLayer {
			slices.Sort(n)
			for _, n := range n[max(len(n)-4, 0):] {
				in += n
			}
		}
		fmt.Printf("%s: %.2g %% of groups have a largest number twice the median of their row's or more, and %.2g %% of the error; %.2g %% of these numbers are in four channels of their layer\n",
			k.name, 100*float64(o.large)/float64(o.groups), 100*o.error/o.of, 100*float64(in)/float64(max(o.large, 1)))
	}
	b.outliers = nil
}
