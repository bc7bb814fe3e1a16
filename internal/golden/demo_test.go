package golden_test

import (
	"path/filepath"
	"slices"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/backend/ref"
	"hearth/internal/demo"
	"hearth/internal/golden"
	"hearth/internal/model"
)

// conversation is one case of tools/golden/demo.py.
type conversation struct {
	Prompt  []int32       `json:"prompt"`
	Tokens  []int32       `json:"tokens"`  // greedy, float32 activations
	Margins golden.Floats `json:"margins"` // logit of the best token less that of the second best
}

// A step whose two best tokens are closer than its margin may go either way, one in twenty at most. fastMargin is for
// activations rounded to 8 bits; what that costs in quality is measured elsewhere, here it must not be a blunder. After the
// end of a reply the model goes on with what it was never taught, and fastMargin is half as much again.
const exactMargin, fastMargin = 1e-2, 0.5

// TestDemoGreedy: the embedded model says what mlx-lm makes of the same file, over 200 tokens of every prompt. Each step
// is fed the reference's tokens so far, so that one close call does not end the comparison; as long as all steps
// agree this is free-running greedy text.
func TestDemoGreedy(t *testing.T) {
	golden.Update(t, filepath.FromSlash("../../tools/golden/demo.py"), "../demo/model", "testdata/demo.json")
	var g struct {
		Cases []conversation `json:"cases"`
	}
	golden.Load(t, "testdata/demo.json", &g)
	for name, tt := range map[string]struct {
		precision backend.Precision
		margin    float64
		decode    bool // token by token, not all at once
	}{"cpu": {backend.Float32, exactMargin, true}, "cpu-exact": {backend.Exact, exactMargin, false}, "cpu-fast": {backend.Fast, fastMargin, false}} {
		t.Run(name, func(t *testing.T) {
			be := cpu.New()
			defer be.Close()
			m := openDemo(t, be, tt.precision)
			for i, c := range g.Cases {
				c.compare(t, be, m, tt.margin, tt.decode && (i < 2 || !testing.Short()))
			}
		})
	}
	t.Run("ref", func(t *testing.T) {
		if testing.Short() {
			t.Skip("float64 without kernels takes seconds")
		}
		be := ref.New()
		g.Cases[0].compare(t, be, openDemo(t, be, backend.Float32), exactMargin, false)
	})
}

func openDemo(t *testing.T, be backend.Backend, p backend.Precision) *model.Loaded {
	t.Helper()
	c, err := model.OpenCheckpoint(demo.FS(), demo.Name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.Load(be, backend.Options{Precision: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// compare runs the case one token at a time, or all tokens in one step. Steps won by more than margin must agree.
func (c *conversation) compare(t *testing.T, be backend.Backend, m *model.Loaded, margin float64, decode bool) {
	t.Helper()
	s := golden.NewSequence(t, be, m, len(c.Prompt)+len(c.Tokens))
	var logits []float32
	if decode {
		logits = s.Step(c.Prompt, int32(len(c.Prompt)-1))
		for _, tok := range c.Tokens[:len(c.Tokens)-1] {
			logits = append(logits, s.Step([]int32{tok}, 0)...)
		}
	} else {
		var rows []int32
		for i := range c.Tokens {
			rows = append(rows, int32(len(c.Prompt)-1+i))
		}
		logits = s.Step(append(c.Prompt[:len(c.Prompt):len(c.Prompt)], c.Tokens[:len(c.Tokens)-1]...), rows...)
	}
	same, tight, limit := 0, 0, margin
	for i, want := range c.Tokens {
		if i > 0 && slices.Contains(m.Generation.EOS, c.Tokens[i-1]) && margin == fastMargin {
			limit = 1.5 * fastMargin
		}
		row := logits[i*m.Vocab : (i+1)*m.Vocab]
		best := 0
		for j, x := range row {
			if x > row[best] {
				best = j
			}
		}
		switch {
		case best == int(want):
			same++
		case float64(c.Margins[i]) > limit:
			t.Errorf("step %d: token %d, mlx-lm has %d by a margin of %.3g", i, best, want, c.Margins[i])
		default:
			tight++
		}
	}
	if same < len(c.Tokens)*19/20 {
		t.Errorf("%d of %d tokens equal", same, len(c.Tokens))
	}
	t.Logf("prompt of %d tokens: %d of %d tokens equal, %d differ by a margin under %g", len(c.Prompt), same, len(c.Tokens), tight, margin)
}
