// Package nn holds the layers architectures share, written on backend.Ops. A layer is a struct whose exported
// fields are checkpoint tensors (tag w) plus constants set by the constructor; it owns no arrays.
package nn

import B "hearth/internal/backend"

// Linear is one matrix or several that share an input, fused along the output dimension.
type Linear struct {
	In   int
	Outs []int // per part, local to this rank; 0: this layer has no such part
	// Fused: the checkpoint stores all parts as one tensor, named by the tag's fused=.
	Fused bool
	Perm  [][]int32 // per stored tensor: its rows in the order the layer wants them; short or nil: as they are
	// Transposed: the checkpoint has the one part as [In, Out].
	Transposed bool
	// Square: the input are so many rows side by side, and the checkpoint has the columns for one number of all of them together.
	Square int
	Bias   bool        // every part must have a bias; otherwise a part has one if the checkpoint does
	Least  B.Precision // of activations, whatever the model's: see backend.WeightSpec
	Tied   Tie         // for a tag with tied=: what the config says
	Extra  *Row        // bias of a head whose matrix is the embedding table; nil: none
	W      B.Weight
}

// Tie says whether a vocabulary head is the embedding table.
type Tie uint8

const (
	TieFile   Tie = iota // if the checkpoint has no head of its own
	TieAlways            // a head in the checkpoint is ignored
	TieNever             // a head must be there
)

// Lin declares a Linear; the loader checks shapes against it and derives quantisation from it.
func Lin(in int, outs ...int) Linear { return Linear{In: in, Outs: outs} }

// Forward is x·Wᵀ plus the bias, summed over ranks where every rank holds a part of the input: [rows, sum of Outs].
func (l *Linear) Forward(o B.Ops, x B.Array) B.Array {
	y := o.Linear(x, l.W)
	if l.W.Partial() {
		y = o.AllSum(y)
	}
	return l.Extra.Plus(o, y)
}

// Part returns the columns of part i of a fused result, no array if there is no such part.
func (l *Linear) Part(o B.Ops, y B.Array, i int) B.Array {
	if l.Outs[i] == 0 {
		return B.Array{}
	}
	from := 0
	for _, n := range l.Outs[:i] {
		from += n
	}
	if from == 0 && l.Outs[i] == y.Cols() {
		return y
	}
	return o.Cols(y, from, from+l.Outs[i])
}

// Patches is a matrix over the numbers of a patch, which checkpoints store as the kernel of a convolution.
type Patches struct {
	Out    int
	Window []int // channels, then frames if it has any, rows and columns of a patch, which is also the order of its numbers
	Bias   bool
	W      B.Weight
}

// Forward is [patches, product of Window] to [patches, Out].
func (p *Patches) Forward(o B.Ops, x B.Array) B.Array { return o.Linear(x, p.W) }

// Embedding is a table with one row of Dim per token.
type Embedding struct {
	Vocab, Dim int
	Scale      float32 // multiplies the rows; 0: none
	Rounded    bool    // Scale is rounded to the type of the stored table
	Planes     int     // it is stored as so many tables one behind the other, under its bare name; 0: as one
	W          B.Weight
}

// Tokens embeds the batch's tokens and then lets media features replace their rows.
func (e *Embedding) Tokens(o B.Ops, b *B.Batch) B.Array {
	h := o.Embed(e.W, B.Index{IDs: b.Tokens, Late: b.Late})
	if e.Scale != 0 {
		h = o.Scale(h, e.Scale)
	}
	for _, m := range b.Media {
		h = o.Put(h, m.Features, m.From, m.Rows, false)
	}
	return h
}

// Deep reports that features are added after that layer.
func Deep(b *B.Batch, layer int) bool {
	for i := range b.Media {
		if layer < len(b.Media[i].Deep) {
			return true
		}
	}
	return false
}

// AddDeep adds them to h, which has all rows.
func AddDeep(o B.Ops, b *B.Batch, h B.Array, layer int) B.Array {
	for i := range b.Media {
		if m := &b.Media[i]; layer < len(m.Deep) {
			h = o.Put(h, m.Deep[layer], m.From, m.Rows, true)
		}
	}
	return h
}

// RMSNorm has N weights; Spec.Width normalises each head apart.
type RMSNorm struct {
	N     int
	Plus1 bool    // stored as w, used as 1+w
	Unit  bool    // there are no weights: all are 1
	Flat  bool    // checkpoints have the weights in more than one dimension
	Less  float32 // stored as w, used as w+Less
	W     B.Weight
	Spec  B.Norm
}

// RMS declares a norm over whole rows.
func RMS(n int, eps float32) RMSNorm { return RMSNorm{N: n, Spec: B.Norm{Eps: eps}} }

// HeadRMS declares a norm over every head of n columns.
func HeadRMS(n int, eps float32) *RMSNorm { return &RMSNorm{N: n, Spec: B.Norm{Eps: eps, Width: n}} }

// Forward leaves x alone where the layer has no such norm.
func (n *RMSNorm) Forward(o B.Ops, x B.Array) B.Array {
	if n == nil {
		return x
	}
	return o.RMSNorm(x, n.W, &n.Spec)
}

// Vec is a vector of N parameters that no norm has.
type Vec struct {
	N    int
	Flat bool // checkpoints have it in more than one dimension
	W    B.Weight
}

// Row is a vector of N parameters that rows are multiplied by, or that is added to them.
type Row struct {
	N int
	W B.Weight // a table of one row
}

// Times multiplies every row of x with the vector.
func (w *Row) Times(o B.Ops, x B.Array) B.Array {
	return o.Gate(x, o.Embed(w.W, B.Index{IDs: make([]int32, x.Rows())}), &times)
}

// Plus adds the vector to every row of x; there may be none.
func (w *Row) Plus(o B.Ops, x B.Array) B.Array {
	if w == nil {
		return x
	}
	return o.Add(x, o.Embed(w.W, B.Index{IDs: make([]int32, 1)}))
}

// Scalar is one number of a checkpoint, known to the host once loaded.
type Scalar struct{ V float32 }

// Outputs narrows x to the rows the engine wants.
func Outputs(o B.Ops, b *B.Batch, x B.Array) B.Array {
	if len(b.Out) == x.Rows() {
		return x
	}
	return o.Gather(x, b.Out)
}
