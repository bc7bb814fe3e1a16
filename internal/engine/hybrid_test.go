package engine

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/backend/cpu"
	"hearth/internal/kv"
	"hearth/internal/tier/tiertest"
)

// hybrid is a model whose layers are of both kinds: what attends keeps pages, what does not has recurrent state.
const hybrid = `{"model_type":"qwen3_5","hidden_size":64,"num_hidden_layers":4,"intermediate_size":96,"num_attention_heads":2,
"num_key_value_heads":1,"head_dim":32,"rms_norm_eps":1e-6,"vocab_size":97,"full_attention_interval":2,"linear_num_value_heads":4,
"linear_num_key_heads":2,"linear_key_head_dim":16,"linear_value_head_dim":16,"linear_conv_kernel_dim":4,"max_position_embeddings":4096,
"tie_word_embeddings":true,"quantization":{"group_size":32,"bits":4}}`

// TestHybridTurns: the second turn of a conversation goes on from the snapshot that the first one left, a prompt that
// parts inside it from the one at its mark, and both answer as if nothing had been there.
func TestHybridTurns(t *testing.T) {
	model := func() *hooked { return &hooked{Backend: cpu.New(), config: hybrid} }
	fresh := start(t, model(), func(c *Config) { c.NoCache = true })
	e := start(t, model(), nil)
	ask := func(tokens []int32, cached int, hit kv.Kind, marks ...int) []int32 {
		t.Helper()
		p := Prompt{Tokens: tokens, MaxTokens: 20, Logprobs: 2, Marks: marks}
		want := read(t, submit(t, fresh, p))
		s := submit(t, e, p)
		got := read(t, s)
		if u := s.Usage(); u.Cached != cached || u.Hit != hit {
			t.Errorf("a prompt of %d: %d tokens cached (%v), want %d (%v)", len(tokens), u.Cached, u.Hit, cached, hit)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		all := slices.Clone(tokens)
		for _, tok := range got {
			all = append(all, tok.ID)
		}
		return all
	}
	first := prompt(150, 1)
	turn := ask(first, 0, kv.Miss, 100, 150)                                            // kept after 64, 128 and 169 tokens
	ask(append(slices.Clone(turn), prompt(30, 2)...), len(turn)-1, kv.Within)           // the next turn
	ask(append(slices.Clone(first[:140]), prompt(30, 3)...), 128, kv.LCP)               // another question
	ask(append(slices.Clone(first[:100]), prompt(30, 4)...), 64, kv.LCP)                // from the mark before it
	ask(append(slices.Clone(first[:100]), prompt(30, 4)...), 64, kv.Supersequence)      // and again
	ask(append(slices.Clone(turn[:len(turn)-1]), prompt(5, 5)...), len(turn)-1, kv.LCP) // the same answer, and then another word
}

// TestHybridPreempted: who gives its memory to an older sequence continues later with the same answer.
func TestHybridPreempted(t *testing.T) {
	long := func(i uint64) Prompt { return Prompt{Tokens: prompt(10, i), MaxTokens: 390, Logprobs: -1} }
	fresh := start(t, &hooked{Backend: cpu.New(), config: hybrid}, func(c *Config) { c.NoCache, c.MaxSequences = true, 1 })
	geo := fresh.alloc.Geometry()
	e := start(t, &hooked{Backend: cpu.New(), config: hybrid}, func(c *Config) {
		c.Budget = 11*geo.Groups[0].PageBytes + 2*geo.FixedBytes + 2*geo.SnapBytes
	})
	preempts(t, e, fresh, long)
}

// TestHybridRestart: an engine that starts where another one ended goes on from the last snapshot at the end of a page,
// and answers as if it had not been there.
func TestHybridRestart(t *testing.T) {
	dir := t.TempDir()
	var n tiertest.Notes
	model := func() *hooked { return &hooked{Backend: cpu.New(), config: hybrid} }
	p := Prompt{Tokens: prompt(200, 1), MaxTokens: 30, Logprobs: 1, Marks: []int{70, 200}}
	e := start(t, model(), onDisk(dir, &n, nil))
	turn := slices.Clone(p.Tokens)
	for _, tok := range read(t, submit(t, e, p)) {
		turn = append(turn, tok.ID)
	}
	closeNow(t, e)
	e = start(t, model(), onDisk(dir, &n, nil))
	fresh := start(t, model(), func(c *Config) { c.NoCache = true })
	for name, tc := range map[string]struct {
		tokens []int32
		cached int
	}{
		"the next turn":            {append(turn, prompt(20, 2)...), 192},
		"another after the first":  {append(slices.Clone(turn[:100]), prompt(20, 3)...), 64},
		"nothing that is there":    {prompt(90, 4), 0},
		"less than a page of that": {append(slices.Clone(turn[:60]), prompt(30, 5)...), 0},
	} {
		p.Tokens, p.Marks = tc.tokens, nil
		s := submit(t, e, p)
		if d := cmp.Diff(read(t, submit(t, fresh, p)), read(t, s)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if u := s.Usage(); u.Cached != tc.cached || u.Disk > tc.cached { // what another one has restored is in memory
			t.Errorf("%s: %d cached, %d from disk, want %d", name, u.Cached, u.Disk, tc.cached)
		}
	}
	if s := e.Stats().Cache.Disk; s.Hits == 0 || s.Errors != 0 {
		t.Errorf("%+v", s)
	}
	if lines := n.Take(); lines != nil {
		t.Error(lines)
	}
}
