package model

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/quant"
)

// Synthetic is a model without files: every tensor comes from a formula over its name, so that a benchmark needs no
// download and a golden no weights. tools/golden/synthetic.py computes the same bits.
//
// A draw is r(name, i) = mix(fnv1a64(name) ^ seed, i), 64 bits of a splitmix64 sequence; x(name, i) in (-1, 1) is its
// upper 24 bits. With a = √(3/columns) a float matrix is a·x, and so are the taps of a convolution; a norm weight is
// 1+x/4 (x/4 where it is used as 1+w), a decay's logarithm (A_log) 2x-2, a bias x/10; stacks are their matrices on
// top of each other. An affine matrix has draws as codes, scales ±2a/(2^bits-1)·(3/4…5/4) and biases that centre each
// group, one part in eight off. The other modes have draws as codes (mxfp8 without the lowest bit, so that none is
// NaN) and scales whose exponent is that of a/3 or, for mxfp8, a/112, with the lowest bits of a draw added: one for
// e8m0, the three of the fraction for e4m3.
type Synthetic struct {
	Config  []byte // config.json; its quantization keys say what is quantised
	Seed    uint64
	Adapter *Adapter    // to load with it; nil: none
	Type    quant.DType // of floats, scales and biases: F32, F16 or BF16
	Blank   bool        // for a loader that only counts: tensors have their shapes, and zeros in memory that all of them share
	// Stored says which modules there are of those that a checkpoint may or may not have; nil: none.
	Stored func(path string) bool
}

// Load builds the model on be. The result has no tokens that end a reply.
func (s Synthetic) Load(be B.Backend, opts B.Options) (*Loaded, error) {
	typ, err := typeOf(s.Config)
	if err != nil {
		return nil, err
	}
	return load(typ, s.Config, be, opts, s.source, s.Adapter, nil)
}

// typeOf is what config.json calls the model; "": it does not say.
func typeOf(cfg []byte) (string, error) {
	var head struct {
		Type string `json:"model_type"`
	}
	err := json.Unmarshal(cfg, &head)
	return head.Type, inConfig(tidyJSON(err))
}

func (s Synthetic) source(m stateful) (Source, error) {
	q, err := parseQuantization(s.Config, nil)
	if err != nil {
		return nil, inConfig(err)
	}
	return s.formula(q, renaming(m))
}

// formula is the source of a model whose config says so of quantisation.
func (s Synthetic) formula(q quantization, rename func(string) string) (Source, error) {
	said, err := q.modules(rename, func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	return &formula{Synthetic: s, quant: q, said: said}, nil
}

// formula is Synthetic as a Source.
type formula struct {
	Synthetic
	quant   quantization
	said    map[string]quant.Scheme // by module
	zeros   []byte                  // if Blank
	experts int                     // if Blank: in the matrices checked so far
}

// Has implements Source: a head exists only where the config says so, and then nobody asks.
func (f *formula) Has(path string) bool { return f.Stored != nil && f.Stored(path) }

// Shape implements Source.
func (f *formula) Shape(string) []int { return nil }

// Done implements Source.
func (f *formula) Done(B.Part) {}

// Ignore implements Source.
func (f *formula) Ignore(string) {}

// Apart implements Source.
func (f *formula) Apart(string, string) bool { return false }

// Unused implements Source.
func (f *formula) Unused() []Fault { return nil }

// Check implements Source.
func (f *formula) Check(w Want) []Fault {
	if err := f.scheme(w).Check(w.In); err != nil {
		return []Fault{{Kind: Misshapen, Tensor: w.Path + ".weight", Text: err.Error()}}
	}
	if f.Blank {
		return f.checkBlank(w)
	}
	return nil
}

// Bounds on a model whose sizes only a config tells: numbers in a tensor, as many as the largest model has in a stack
// of experts, because so much memory is asked for; and experts of all matrices, four times those of the largest,
// which are counted one by one.
const (
	mostNumbers = 1 << 33
	mostExperts = 1 << 19
)

func (f *formula) checkBlank(w Want) []Fault {
	const hint = "no model is as large: fetch config.json again"
	f.experts += w.Count
	switch rows := float64(max(w.Count, 1)) * float64(w.Rows) * float64(max(w.Ranks, 1)); {
	case rows*float64(max(w.In, 1)) > mostNumbers:
		return []Fault{{Kind: Misshapen, Tensor: w.tensor(), Text: fmt.Sprintf("%.3g numbers are more than %d", rows*float64(w.In), int64(mostNumbers)), Hint: hint}}
	case w.Count > 0 && f.experts > mostExperts:
		return []Fault{{Kind: Misshapen, Tensor: w.tensor(), Text: fmt.Sprintf("with it there are more than %d experts", mostExperts), Hint: hint}}
	}
	return nil
}

// scheme: what the config says about the path, else its default where the columns divide into groups.
func (f *formula) scheme(w Want) quant.Scheme {
	if w.Vector || w.Conv || w.Window != nil || w.Planes > 0 {
		return quant.Scheme{}
	}
	if s, ok := f.said[w.Path]; ok {
		return s
	}
	if s := f.quant.Scheme; !s.None() && s.Group > 0 && w.In%s.Group == 0 {
		return s
	}
	return quant.Scheme{}
}

// Part implements Source.
func (f *formula) Part(w Want) B.Part {
	var p B.Part
	rows := max(w.Count, 1) * w.Rows * max(w.Ranks, 1)
	amp := math.Sqrt(3 / float64(w.In))
	name := w.tensor()
	switch p.Scheme = f.scheme(w); {
	case w.Plus1:
		p.Weight = f.floats(name, w.shape(), 0, 0.25)
	case w.Vector && strings.HasSuffix(name, ".bias"):
		p.Weight = f.floats(name, w.shape(), 0, 0.1)
	case w.Vector && strings.HasSuffix(name, ".A_log"):
		p.Weight = f.floats(name, w.shape(), -2, 2)
	case w.Conv:
		p.Weight = f.floats(name, w.shape()[:2], 0, amp)
	case w.Vector:
		p.Weight = f.floats(name, w.shape(), 1, 0.25)
	case p.Scheme.None():
		p.Weight = f.floats(name, w.shape(), 0, amp)
	case p.Scheme.Mode == quant.Affine:
		f.affine(&p, w.Path, rows, w.In, amp)
	default:
		f.small(&p, w.Path, rows, w.In, amp)
	}
	if w.Bias {
		shape, _ := w.biasShape(nil)
		p.Bias = f.floats(w.Path+".bias", shape, 0, 0.1)
	}
	if w.Count > 0 && !p.Scheme.None() {
		for _, t := range []*B.Tensor{p.Weight, p.Scales, p.Biases} {
			if t != nil {
				t.Shape = []int{w.Count, rows / w.Count, t.Shape[1]}
			}
		}
	}
	return p
}

// bytes is memory for a tensor.
func (f *formula) bytes(n int) []byte {
	if !f.Blank {
		return make([]byte, n)
	}
	if len(f.zeros) < n {
		f.zeros = make([]byte, n)
	}
	return f.zeros[:n:n]
}

// floats makes base + amp·x.
func (f *formula) floats(name string, shape []int, base, amp float64) *B.Tensor {
	n := product(shape)
	t := &B.Tensor{Name: name, DType: string(f.Type), Shape: shape, Bytes: f.bytes(n * f.Type.Size())}
	if f.Blank {
		return t
	}
	key, size := f.key(name), f.Type.Size()
	var buf [256]float32
	for at := 0; at < n; at += len(buf) {
		part := buf[:min(len(buf), n-at)]
		for i := range part {
			part[i] = float32(base + float64(amp*unit(draw(key, at+i))))
		}
		quant.PutFloats(t.Bytes[at*size:], f.Type, part)
	}
	return t
}

// codes are random words.
func (f *formula) codes(path string, rows, words int) *B.Tensor {
	codes := f.bytes((rows*words + 1) / 2 * 8)
	if key := f.key(path + ".weight"); !f.Blank {
		for i := range len(codes) / 8 {
			binary.LittleEndian.PutUint64(codes[8*i:], draw(key, i))
		}
	}
	return &B.Tensor{Name: path + ".weight", DType: string(quant.U32), Shape: []int{rows, words}, Bytes: codes[:rows*words*4]}
}

// small fills codes and scales of the modes whose codes are small floats.
func (f *formula) small(p *B.Part, path string, rows, in int, amp float64) {
	s := p.Scheme
	p.Weight = f.codes(path, rows, in*s.Bits/32)
	scales := f.bytes(rows * in / s.Group)
	p.Scales = &B.Tensor{Name: path + ".scales", DType: string(quant.U8), Shape: []int{rows, in / s.Group}, Bytes: scales}
	if f.Blank {
		return
	}
	top := 3.0
	if s.Mode == quant.MXFP8 {
		top = 112
		for i := range p.Weight.Bytes {
			p.Weight.Bytes[i] &^= 1
		}
	}
	base, low := math.Ilogb(amp/top)+127, uint64(1)
	if s.Mode == quant.NVFP4 {
		base, low = max(base-120, 1)*8, 7 // exponent with bias 7, three bits of fraction
	}
	key := f.key(path + ".scales")
	for i := range scales {
		scales[i] = byte(base + int(draw(key, i)&low))
	}
}

// affine fills codes, scales and biases.
func (f *formula) affine(p *B.Part, path string, rows, in int, amp float64) {
	s := p.Scheme
	groups := in / s.Group
	p.Weight = f.codes(path, rows, in*s.Bits/32)
	shape, n := []int{rows, groups}, rows*groups*f.Type.Size()
	p.Scales = &B.Tensor{Name: path + ".scales", DType: string(f.Type), Shape: shape, Bytes: f.bytes(n)}
	p.Biases = &B.Tensor{Name: path + ".biases", DType: string(f.Type), Shape: shape, Bytes: f.bytes(n)}
	if f.Blank {
		return
	}
	top := float64(int(1)<<s.Bits - 1)
	scales, biases := make([]float32, rows*groups), make([]float32, rows*groups)
	ks, kb := f.key(path+".scales"), f.key(path+".biases")
	for i := range scales {
		r := draw(ks, i)
		v := 2 * amp / top * (1 + float64(0.25*unit(r)))
		if r&1 != 0 {
			v = -v
		}
		scales[i] = float32(v)
	}
	quant.PutFloats(p.Scales.Bytes, f.Type, scales)
	quant.Floats(scales, f.Type, p.Scales.Bytes)
	for i := range biases {
		biases[i] = float32(-float64(scales[i]) * (top / 2) * (1 + float64(0.125*unit(draw(kb, i)))))
	}
	quant.PutFloats(p.Biases.Bytes, f.Type, biases)
}

func (f *formula) key(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64() ^ f.Seed
}

// draw is number i of the splitmix64 sequence that starts at key.
func draw(key uint64, i int) uint64 {
	z := key + uint64(i+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// unit maps the upper 24 bits of a draw to (-1, 1), never 0.
func unit(r uint64) float64 { return (float64(r>>40)+0.5)*0x1p-23 - 1 }
