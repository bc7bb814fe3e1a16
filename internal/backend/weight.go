package backend

import "hearth/internal/quant"

// Weight is a loaded tensor (or several fused along the output dimension) in whatever form the backend likes:
// packed 4-bit panels, bf16, an mlx triple. Quantisation, LoRA, sharding and bias are behind it.
type Weight interface {
	Out() int      // output features (rows of a table), the sum over fused parts
	In() int       // input features (cols); 1 for vectors
	Count() int    // experts or heads for stacked weights, else 1
	Partial() bool // row-parallel shard: the product must go through AllSum
}

// Use tells the backend how a weight will be read, so that it can choose the layout once, at load.
type Use uint8

const (
	UseLinear Use = iota // x·Wᵀ+b
	UseGLU               // two parts, gate then up: may be interleaved
	UseTable             // row gather, and possibly also Linear (tied head)
	UseVector            // norm weights, biases, sinks, decay parameters: kept in f32

	UseExperts   // Count matrices [out, in], picked by Route
	UseExpertGLU // the same of two parts, gate then up
	UseHeads     // Count matrices [out, in], one per head

	UseConv // [columns, taps] of a convolution, the tap of the oldest row first: kept in f32
)

// Tensor is a view into a mapped file. Bytes stay valid until the loader is closed.
type Tensor struct {
	Name  string
	DType string // file spelling: BF16, F32, U32, U8
	Shape []int
	Bytes []byte
	// Release says that the memory of a part of Bytes can be used for something else; reading it again is correct.
	// nil: Bytes lie in no mapped file.
	Release func(part []byte)
}

// Part is one checkpoint tensor with its quantisation companions. Scheme is decided from shapes and config by the
// checkpoint reader in package model; the zero Scheme is a plain float tensor.
type Part struct {
	Weight, Scales, Biases, Global, Bias *Tensor
	Scheme                               quant.Scheme
	Perm                                 []int32 // output rows in the order the layer wants them; nil: as stored
	Adapter                              *Adapter
}

// Axis of tensor-parallel sharding.
type Axis uint8

const (
	Whole  Axis = iota
	ColPar      // split outputs of every part: no communication
	RowPar      // split inputs: result is partial, bias kept on rank 0 only
)

// WeightSpec asks for one Weight.
type WeightSpec struct {
	Name  string
	Use   Use
	Out   []int // per part, local to this rank; a 0 part is absent
	In    int   // local to this rank
	Count int   // experts: Expert gives the spec of each; else 1
	Picks int   // of experts: how many a row uses, which sizes what a step needs
	Parts []Part
	Shard Axis
	Plus1 bool      // stored as w, used as 1+w
	Least Precision // of activations for this weight, whatever the model's: a router would pick other experts
}

// Loader turns file tensors into weights, one at a time, so that peak memory is model + one tensor.
type Loader interface {
	Load(WeightSpec) (Weight, error)
	Close() error
}

// Visitor is a backend that shows the weights a model asks for, one after another, and can do nothing else. What see
// gives back becomes the weight; nil will do where nothing is computed.
func Visitor(see func(WeightSpec) (Weight, error)) Backend { return visitor{see: see} }

type visitor struct {
	Backend
	see func(WeightSpec) (Weight, error)
}

func (v visitor) Caps() Caps                        { return Caps{World: 1} }
func (v visitor) NewLoader(Options) Loader          { return v }
func (v visitor) Load(s WeightSpec) (Weight, error) { return v.see(s) }
func (v visitor) Close() error                      { return nil }
