package backend

// Ops is the whole vocabulary of architecture files.
//
// Rows. Every array has one row per batch row, or one row per b.Out entry ("narrowed", made by Gather(x, b.Out)).
// Ops that depend on positions or sequences (RoPE, Attention, Pool) accept either; the row count says which, and
// when the counts are equal the rows are the same. Zero rows are legal everywhere.
// Determinism. On a backend with Caps.Invariant every output row is a function of that row's inputs, its sequence's
// state and the weights; sums run in an order fixed by widths and absolute positions, never by rows, spans, threads
// or chunking. Numbers inside an op are f32 or better; results are rounded once to the activation dtype.
// Shapes are programmer errors: a mismatch panics. Device errors stick in Scope.Err.
// Operands are read-only; backends may reuse a buffer whose handle they can prove dead, never otherwise.
// Specs are pointers to constants owned by the layer: a backend may key caches on the pointer.
type Ops interface {
	// Embed: y[r] = Σ_j scale[r,j] · W[ids[r,j]]. [rows, W.In].
	Embed(w Weight, ix Index) Array
	// Linear: y = x·Wᵀ + b (+ adapter). Fused parts sit side by side in the columns. [rows, W.Out].
	Linear(x Array, w Weight) Array
	// LinearGLU: Gate(s, x·Wgᵀ, x·Wuᵀ) for a UseGLU weight. [rows, W.Out/2].
	LinearGLU(x Array, w Weight, s *GLU) Array

	// RMSNorm over each s.Width columns (0: all); w has s.Width or all columns' entries, or is nil.
	RMSNorm(x Array, w Weight, s *Norm) Array
	// LayerNorm subtracts the mean first, and adds a bias at the end. w and bias are as in RMSNorm.
	LayerNorm(x Array, w, bias Weight, s *Norm) Array

	// RoPE rotates columns [s.Offset, s.Offset+2·pairs) of every s.Head-wide head by the row's position.
	RoPE(x Array, s *Rope) Array
	// Attention writes k, v (if given) to s.State at each row's index, then lets every row of q see its own sequence.
	// q [rows|outs, Heads·KDim], k [rows, KVHeads·KDim], v [rows, KVHeads·VDim] -> [rows|outs, Heads·VDim].
	// Zero k and v: read only (KV-shared layers). NoState: the span's own rows are all there is.
	Attention(q, k, v Array, s *Attn) Array
	// MLA writes latent and rotary key to s.State, then lets every row of q see its own sequence: see the type.
	// q [rows|outs, Heads·(Nope+Rot)] rotated, latent [rows, Lora] normalised, rot [rows, Rot] rotated
	// -> [rows|outs, Heads·VDim].
	MLA(q, latent, rot Array, s *MLA) Array

	// Conv convolves every column with its taps and with the last rows of its sequence, which it keeps. [rows, x.Cols].
	// x has all rows; w is a UseConv weight, bias a vector or nil.
	Conv(x Array, w, bias Weight, s *Conv) Array
	// GatedDelta: see Delta. q and k [rows, KHeads·KDim], v [rows, VHeads·VDim], a [rows, s.Decays()], beta [rows, VHeads], all
	// rows -> [rows, VHeads·VDim].
	GatedDelta(q, k, v, a, beta Array, s *Delta) Array
	// SSM: see the type. x [rows, Heads·VDim], b and c [rows, Groups·KDim], dt [rows, s.Steps()] or none, all rows
	// -> [rows, Heads·VDim].
	SSM(x, b, c, dt Array, s *SSM) Array

	// Route picks s.K experts per row from router scores [rows, experts].
	Route(scores Array, s *Router) Routing
	// MoE: Σ over the row's experts, in ascending id, of weight · Down(Gate(Up(x))). [rows, Down.Out].
	MoE(x Array, r Routing, s *Experts) Array

	Add(a, b Array) Array             // b may have 1 row (broadcast)
	Scale(x Array, f float32) Array   // y = f·x
	Act(x Array, s *Activation) Array // elementwise
	Gate(g, x Array, s *GLU) Array    // act(g) ⊙ x; g may have fewer columns, each for x.Cols/g.Cols of x
	Cols(x Array, from, to int) Array // a view; free on cpu
	Concat(a, b Array) Array          // side by side
	// Mix weights streams of columns, see the type: [rows, x.Cols/In·Out]. coefs has In·Out numbers per row.
	Mix(x, coefs Array, s *Mix) Array
	ScaleLike(x, like Array) Array      // every row of x scaled to the root mean square of that row of like
	MergeRows(x Array, n int) Array     // n consecutive rows become one: [rows/n, cols·n]
	Gather(x Array, rows []int32) Array // y[i] = x[rows[i]]
	// Put returns x with rows[i] replaced by (or, with add, increased by) row from+i of src.
	Put(x, src Array, from int, rows []int32, add bool) Array
	// Pool: one row per span.
	Pool(x Array, k PoolKind) Array
	// AllSum adds partial results of all ranks; identity when World is 1.
	AllSum(x Array) Array

	// Keep makes a live until the step ends. Sweep ends the life of everything else the step has made except h (and
	// what h is a view of). Called once per layer: it bounds an eager backend's arena to one layer and lets a lazy
	// one drop its graph handles before evaluation. A forgotten Sweep costs memory; a wrong one panics at the next use.
	Keep(a Array) Array
	Sweep(h Array)
}

// Index is a row gather. Late applies to negative ids.
type Index struct {
	IDs    []int32 // rows·PerRow
	PerRow int     // 0 means 1
	Offset int32   // added to every id
	Scale  []float32
	Late   Array
}

type Norm struct {
	Eps   float32
	Width int
}

// Rope is any rotary variant reduced to a table: the host computes InvFreq in float64 from the config.
type Rope struct {
	Head, Offset int
	Split        int       // non-traditional: partner of pair i is column i+Split (0: half the rotated width)
	Traditional  bool      // pairs (2i, 2i+1)
	InvFreq      []float32 // angle = pos·InvFreq[i]; 0 leaves the pair alone
	Axis         []uint8   // which b.Pos axis drives pair i; nil: axis 0
	Amp          float32   // yarn / longrope amplitude on rotated columns; 0 means 1
	QBeta        float32   // llama4-style: x *= 1 + QBeta·ln(1+⌊(pos+QFrom)/QOrig⌋)
	QOrig        int
	QFrom        int // added to pos there
}

type Attn struct {
	State          StateID
	Heads, KVHeads int
	KDim, VDim     int
	Scale          float32
	Window         int     // 0: none. key j visible to query i iff i-j < Window
	Chunks         bool    // keys before the last multiple of Window up to the query are not visible either: llama4's chunks
	Both           bool    // bidirectional (encoders, vision); a window then reaches as far ahead as back
	OneWay         bool    // Span.Both does not count: the layers of gemma4 that see everything
	Cap            float32 // tanh soft cap on scores
	Sinks          Weight  // per head, in the denominator only
	Alt            bool    // use b.Alt instead of b.Spans (stateless only)
}

type ActKind uint8

const (
	ActNone ActKind = iota
	SiLU
	GeluTanh
	GeluErf
	QuickGelu
	ReLU2
	SigmoidAct
	SoftplusAct // ln(1+exp(x))
	TanhCap     // A·tanh(x/A)
	XIELU       // C·x, and besides A·x² for x > 0, B·(exp(min(x, E))-1-x) otherwise; not as a gate
	// AboveMean is max(0, x - mean - A·deviation) with those of the row; not as a gate.
	AboveMean
	Clamp // min(max(x, A), B); not as a gate
)

type Activation struct {
	Kind       ActKind
	A, B, C, E float32
}

// GLU is act(gate) ⊙ up with the gpt-oss variations: gate ≤ Limit, or with After act(gate) ≤ Limit, up ∈ [-Limit, Limit], up+1.
type GLU struct {
	Act     ActKind
	Limit   float32
	After   bool
	UpPlus1 bool
}

type PoolKind uint8

const (
	PoolMean PoolKind = iota
	PoolFirst
	PoolLast
)
