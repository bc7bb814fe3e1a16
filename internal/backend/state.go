package backend

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"hearth/internal/kv"
)

// StateID indexes Model.States. Two layers with one id share it (KV-shared layers).
type StateID int16

const NoState StateID = -1

type StateKind uint8

const (
	StateKV        StateKind = iota // paged: keys and values per token
	StateLatent                     // paged: MLA latent and rotary key per token
	StateRecurrent                  // fixed: Delta, SSM
	StateConv                       // fixed: last K-1 inputs of a causal convolution
)

// StateSpec declares one layer's memory. It says shape, never bytes: the store knows dtype and layout.
type StateSpec struct {
	Name  string // stable across versions: part of export headers
	Kind  StateKind
	Heads int // KV heads (1 for latent), recurrent heads
	KDim  int // KV: key width. latent: latent width. recurrent: key width. conv: channels
	VDim  int // KV: value width. latent: rotary width. recurrent: value width. conv: K-1
	// Window > 0: only the last Window positions are read again. The state is still paged: it can be cut
	// anywhere in the part that is still present.
	Window int
	// Gates is how many numbers per head and token update a recurrent state beside its key and value; 0: two.
	Gates int
}

// Paged state grows per token and can be cut at any token; the rest is fixed-size and can only be restored
// at a snapshot.
func (s StateSpec) Paged() bool { return s.Kind <= StateLatent }

// KVPolicy is the engine's choice for paged state; fixed state is always f32 (recurrent) or activation dtype (conv).
type KVPolicy struct {
	DType    DType // None: backend's default (bf16 on cpu and mlx)
	Bits     int   // 0: not quantised; 8 or 4: affine per token and head, in groups of at most Group along the head
	Group    int   // 0: 64
	MaxDraft int   // tentative tokens a span may have behind its first: sizes the replay log
}

// KVNames are the policies there are names for; auto is the backend's default.
var KVNames = []string{"auto", "f32", "bf16", "f16", "q8", "q4"}

// ParseKV is the policy of a name.
func ParseKV(name string) (KVPolicy, error) {
	switch name {
	case "auto", "":
		return KVPolicy{}, nil
	case "f32":
		return KVPolicy{DType: F32}, nil
	case "bf16":
		return KVPolicy{DType: BF16}, nil
	case "f16":
		return KVPolicy{DType: F16}, nil
	case "q8":
		return KVPolicy{Bits: 8}, nil
	case "q4":
		return KVPolicy{Bits: 4}, nil
	}
	return KVPolicy{}, fmt.Errorf("unknown type %q for keys and values, want one of %s", name, strings.Join(KVNames, ", "))
}

// String is the name of a policy.
func (p KVPolicy) String() string {
	switch {
	case p.Bits != 0:
		return fmt.Sprintf("q%d", p.Bits)
	case p.DType == None:
		return "auto"
	}
	return strings.ToLower(p.DType.String())
}

// GroupOf is how many numbers of a head of that width share a scale and a bias: the largest divisor of the width up to
// Group, multiples of 32 first because vector units like them.
func (p KVPolicy) GroupOf(width int) int {
	most, best := p.Group, 1
	if most == 0 {
		most = 64
	}
	for g := 1; g <= min(width, most); g++ {
		if width%g == 0 && (g%32 == 0 || best%32 != 0) {
			best = g
		}
	}
	return best
}

// Check refuses a policy that no backend has.
func (p KVPolicy) Check() error {
	switch {
	case p.Bits != 0 && p.Bits != 4 && p.Bits != 8:
		return fmt.Errorf("keys and values have 4 or 8 bits when quantised, not %d", p.Bits)
	case p.Bits != 0 && p.DType != None:
		return fmt.Errorf("keys and values are quantised to %d bits or kept in %s, not both", p.Bits, p.DType)
	case p.Group < 0 || p.DType > F64:
		return fmt.Errorf("keys and values cannot be kept in %s, groups of %d", p.DType, p.Group)
	}
	return nil
}

// Store is the state of all sequences of one loaded model. Calls come from the engine goroutine, between steps.
// Methods that may run out of device memory return an error; the engine then evicts and retries, or refuses.
type Store interface {
	Geometry() kv.Geometry
	Policy() KVPolicy // in force: the backend's defaults filled in
	Resize(kv.Capacity) error

	// Open makes slot continue after m: pages are shared (cpu) or copied in (contiguous mlx), m.Tail pages are
	// copied, the snapshot is restored. A zero Match starts empty. dst[g] is the fresh page for Tail[g].
	Open(slot kv.SlotID, m kv.Match, dst []kv.PageID) error
	// Commit settles the slot's last tentative span, keeping its first n rows. Paged state: the rest is overwritten later.
	// Fixed state: n == Len flips to the shadow copy; less replays n logged inputs from the old state. Shadow and log are the
	// slot's from the span's step until then, and are what kv.Geometry.DraftBytes prices; Open drops them, too.
	Commit(slot kv.SlotID, n int)
	// Snapshot copies a slot's fixed state as of its last settled token.
	Snapshot(slot kv.SlotID, id kv.SnapID) error
	Close(slot kv.SlotID)
	// Drop tells a store that keeps pages or snapshots as separate buffers to let go.
	Drop(ref kv.Ref)

	// Export and Import move one page or snapshot to and from the SSD tier: raw bytes in the store's own layout.
	// The caller writes a header with Fingerprint; a different fingerprint is a miss, not an error.
	Export(w io.Writer, ref kv.Ref) error
	Import(r io.Reader, ref kv.Ref) error
	Fingerprint() string // backend, layout version, dtypes, page size, every StateSpec
}

// PageTokens is how many positions one page holds, on every backend.
const PageTokens = 64

// PageGroups sorts paged states into kv's page groups: one per distinct window, in ascending order, so that the states
// that keep every position (Window 0) are group 0 where there are any. windows is per group; group is per state, -1 for
// fixed ones.
func PageGroups(specs []StateSpec) (windows, group []int) {
	for _, s := range specs {
		if s.Paged() && !slices.Contains(windows, s.Window) {
			windows = append(windows, s.Window)
		}
	}
	slices.Sort(windows)
	for _, s := range specs {
		g := -1
		if s.Paged() {
			g = slices.Index(windows, s.Window)
		}
		group = append(group, g)
	}
	return windows, group
}
