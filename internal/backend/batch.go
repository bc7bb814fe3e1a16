package backend

import "hearth/internal/kv"

// Batch is one step's input: the rows of all spans, back to back, no padding.
// Built once by the engine, immutable between Begin and End; slices are reused from step to step.
type Batch struct {
	Tokens []int32    // per row; a value v < 0 means row ^v of Late (a token sampled on the device, not yet read)
	Late   Array      // I32 [n,1] pinned from the previous step; zero unless Caps.LateTokens
	Pos    [3][]int32 // rotary positions per row; axes 1 and 2 are nil where every row has the same position on all of them
	Spans  []Span
	Types  []int32  // segment of each row, 0 or 1, for encoders that read two texts at once; nil: all 0
	Out    []int32  // rows whose hidden state is wanted, ascending, unique
	Media  []Insert // features that replace token embeddings in this step
	Alt    []Span   // the same rows divided in another way, for Attn.Alt: windows of a vision tower
}

// Rows is the number of token rows.
func (b *Batch) Rows() int { return len(b.Pos[0]) }

// Axis gives the rotary positions of an axis: those of axis 0 where it has none of its own.
func (b *Batch) Axis(a uint8) []int32 {
	if b.Pos[a] == nil {
		return b.Pos[0]
	}
	return b.Pos[a]
}

// Flat reports that every row has the same position on all axes: a rotation by several is one by the first.
func (b *Batch) Flat() bool { return b.Pos[1] == nil && b.Pos[2] == nil }

// Span is one sequence's consecutive tokens in this step. Decode is Len 1, prefill is Len n, verification of k
// drafts is Len k+1: the contract makes no other difference between them.
// Spans of one sequence are adjacent and in position order (a prefill cut at a snapshot point is two spans).
type Span struct {
	Slot  kv.SlotID
	Row   int       // first row in the batch
	Len   int       // rows
	Start int       // index of the first token in its sequence; drives masks and storage, not rotation
	Table *kv.Table // page table, already covering Start+Len; nil for stateless batches

	// Tentative: state after this span is provisional until Store.Commit(slot, keep).
	Tentative bool
	// Snapshot: at the end of this span copy the fixed state into this id. 0: none.
	Snapshot kv.SnapID
	// Both: index ranges whose tokens see each other in both directions (image tokens of some models).
	// A range never straddles two spans.
	Both []Range
}

// Range is a half-open index range inside a sequence.
type Range struct{ From, To int }

// Insert places rows [From, From+len(Rows)) of a pinned feature array at batch rows Rows. Those of Deep, arrays of the same rows,
// are added there later: the first after the first layer, and so on.
type Insert struct {
	Features Array
	Deep     []Array
	From     int
	Rows     []int32
}
