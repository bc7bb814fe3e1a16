package engine

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/golden"
	"hearth/internal/kv"
	"hearth/internal/model"
)

const draftsAhead = 4

// drafting is a backend and a model below an engine that guess: where the engine runs the next token of a sequence, they run
// drafts of those after it in the same span. As many rows as were right are kept, and answer the steps that ask for them.
type drafting struct {
	*hooked
	model.Generator
	said  [][]int32 // what sequences say; drafts are taken from it
	r     *rand.Rand
	ahead map[kv.SlotID]*ahead
	store backend.Store
	kept  [draftsAhead + 2]int // spans by how many of their rows were kept
}

// ahead is the logits of rows that were kept and not asked for yet, from index start on.
type ahead struct {
	start int
	rows  [][]float32
}

// draftedScope is a step: want is what the engine asked for, run what ran instead.
type draftedScope struct {
	backend.Scope
	want, run *backend.Batch
	from      []int // by span of want: its span of run, or -1 if its row is known
}

// draft guesses what comes after a span of one token, as far as its pages reach; some guesses are wrong.
func (d *drafting) draft(sp *backend.Span, id int32) (drafts []int32) {
	most := d.r.IntN(draftsAhead + 1)
	for _, pages := range sp.Table.Pages {
		most = min(most, len(pages)*backend.PageTokens-sp.Start-1)
	}
	for _, said := range d.said {
		if sp.Start < len(said) && said[sp.Start] == id {
			drafts = append(drafts, said[sp.Start+1:min(sp.Start+1+most, len(said))]...)
			break
		}
	}
	if n := len(drafts); n > 0 && d.r.IntN(2) == 0 {
		drafts[d.r.IntN(n)] ^= 1
	}
	return drafts
}

func (d *drafting) Begin(s backend.Store, b *backend.Batch) backend.Scope {
	d.store = s.(*hookedStore).Store
	sc := &draftedScope{want: b, run: &backend.Batch{}}
	for i := range b.Spans {
		sp := b.Spans[i]
		tokens := slices.Clone(b.Tokens[sp.Row:][:sp.Len])
		decodes := sp.Len == 1 && slices.Contains(b.Out, int32(sp.Row))
		if a := d.ahead[sp.Slot]; decodes && a != nil && a.start == sp.Start && len(a.rows) > 0 {
			sc.from = append(sc.from, -1)
			continue
		}
		if decodes {
			tokens = append(tokens, d.draft(&sp, tokens[0])...)
		}
		sp.Row, sp.Len, sp.Tentative = len(sc.run.Tokens), len(tokens), len(tokens) > sp.Len
		for j, id := range tokens {
			sc.run.Out = append(sc.run.Out, int32(sp.Row+j))
			sc.run.Tokens, sc.run.Pos[0] = append(sc.run.Tokens, id), append(sc.run.Pos[0], int32(sp.Start+j))
		}
		sc.from, sc.run.Spans = append(sc.from, len(sc.run.Spans)), append(sc.run.Spans, sp)
	}
	store := d.store
	if len(sc.run.Spans) == 0 {
		store = nil // nothing runs, but there are numbers to hand over
	}
	sc.Scope = d.hooked.Backend.Begin(store, sc.run)
	return sc
}

func (d *drafting) Forward(o backend.Ops, b *backend.Batch) backend.Array {
	sc := o.(*draftedScope)
	var rows [][]float32
	if len(sc.run.Spans) > 0 {
		y := d.Generator.Logits(sc.Scope, d.Generator.Forward(sc.Scope, sc.run))
		f, err := sc.Floats(y)
		if err != nil {
			panic(err)
		}
		rows = slices.Collect(slices.Chunk(slices.Clone(f), y.Cols()))
	}
	for i := range sc.run.Spans {
		if sp := &sc.run.Spans[i]; sp.Tentative {
			d.verify(sp, sc.run.Tokens[sp.Row:][:sp.Len], rows[sp.Row:][:sp.Len])
		}
	}
	var out []float32
	for i := range b.Spans {
		sp := &b.Spans[i]
		if sc.from[i] < 0 {
			a := d.ahead[sp.Slot]
			out = append(out, a.rows[0]...)
			a.start, a.rows = a.start+1, a.rows[1:]
			continue
		}
		for r := range sp.Len {
			if slices.Contains(b.Out, int32(sp.Row+r)) {
				out = append(out, rows[sc.run.Spans[sc.from[i]].Row+r]...)
			}
		}
	}
	vocab, _ := d.Sizes()
	return sc.Upload(out, len(out)/vocab, vocab)
}

func (d *drafting) Logits(_ backend.Ops, h backend.Array) backend.Array { return h }

// verify keeps the rows of a span up to the first draft that is not the likeliest token.
func (d *drafting) verify(sp *backend.Span, tokens []int32, rows [][]float32) {
	n := 1
	for n < len(tokens) && int(tokens[n]) == slices.Index(rows[n-1], slices.Max(rows[n-1])) {
		n++
	}
	d.kept[n]++
	d.store.Commit(sp.Slot, n)
	d.ahead[sp.Slot] = &ahead{sp.Start + 1, rows[1:n]}
}

// TestDrafts: sequences whose next tokens are guessed several at a time, rightly and wrongly, say what they say without that,
// beside each other and beside prompts that are read in chunks, whatever their layers remember.
func TestDrafts(t *testing.T) {
	for _, name := range []string{"llama", "deepseek_v3", "gemma3_text", "gpt_oss", "qwen3_next", "kimi_linear", "bailing_moe_linear", "jamba", "mamba", "mamba2", "falcon_h1", "lfm2"} {
		t.Run(name, func(t *testing.T) {
			var g struct {
				Config json.RawMessage `json:"config"`
			}
			golden.Load(t, "../model/testdata/"+name+"/4bit.json", &g)
			var prompts []Prompt
			for i := range uint64(3) {
				p := Prompt{Tokens: prompt(30+40*int(i), i), MaxTokens: 90, Logprobs: 2}
				for i := range p.Tokens {
					p.Tokens[i] %= 96
				}
				prompts = append(prompts, p)
			}
			plain := start(t, &hooked{Backend: cpu.New(), config: string(g.Config)}, func(c *Config) { c.NoCache = true })
			d := &drafting{r: rand.New(rand.NewPCG(8, 8)), ahead: map[kv.SlotID]*ahead{}}
			var want [][]Token
			for _, p := range prompts {
				want = append(want, read(t, submit(t, plain, p)))
				said := slices.Clone(p.Tokens)
				for _, tok := range want[len(want)-1] {
					said = append(said, tok.ID)
				}
				d.said = append(d.said, said)
			}
			d.hooked = &hooked{Backend: cpu.New(), config: string(g.Config), kv: backend.KVPolicy{MaxDraft: draftsAhead}}
			d.open = func(slot kv.SlotID) error { delete(d.ahead, slot); return nil }
			e := start(t, d.hooked, func(c *Config) {
				c.NoCache, c.PrefillChunk, c.Backend, c.Vocab = true, 11, d, 96
				d.Generator, c.Model = c.Model, d
			})
			var streams []*Stream
			for _, p := range prompts {
				streams = append(streams, submit(t, e, p))
			}
			for i, s := range streams {
				if diff := cmp.Diff(want[i], read(t, s)); diff != "" {
					t.Error(diff)
				}
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			for n, spans := range d.kept[1:] {
				if spans == 0 {
					t.Errorf("no span had %d rows kept: %v", n+1, d.kept)
				}
			}
			t.Log("spans by rows kept:", d.kept)
		})
	}
}
