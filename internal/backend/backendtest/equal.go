package backendtest

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	B "hearth/internal/backend"
	"hearth/internal/kv"
	"hearth/internal/quant"
)

// tiny is a decoder of two layers written straight on the ops: the second has a window.
type tiny struct {
	be                  B.Backend
	st                  B.Store
	embed, norm         B.Weight
	qkv, o, gateUp, dwn [2]B.Weight
	attn                [2]B.Attn
	head                int
	rope                B.Rope
	table               []*kv.Table // by sequence
	next                kv.PageID
}

const (
	tinyDim, tinyFFN, tinyVocab = 64, 128, 64
	tinyPages                   = 40
)

func newTiny(t testing.TB, be B.Backend, o B.Options, f format, p B.KVPolicy) *tiny {
	t.Helper()
	r := random(12)
	m := &tiny{be: be, head: 16}
	if p.Bits != 0 || p.DType != B.None {
		m.head = 32 // what vector units take at a time
	}
	if p.Bits == 8 || p.DType == B.I16 {
		m.head = 64 // of bytes
	}
	if p.DType == B.I16 {
		p = B.KVPolicy{} // which is for the backend to choose
	}
	head := m.head
	lin := func(use B.Use, in int, outs ...int) B.Weight {
		var parts []B.Part
		for _, n := range outs {
			parts = append(parts, part(r, f, n, in, use == B.UseLinear))
		}
		return load(t, be, o, matrix(use, in, outs, parts...))
	}
	m.embed, m.norm = lin(B.UseTable, tinyDim, tinyVocab), load(t, be, o, vector(normals(r, tinyDim)))
	var specs []B.StateSpec
	for i := range m.qkv {
		window := 50 * i
		m.qkv[i], m.o[i] = lin(B.UseLinear, tinyDim, 4*head, 2*head, 2*head), lin(B.UseLinear, 4*head, tinyDim)
		m.gateUp[i], m.dwn[i] = lin(B.UseGLU, tinyDim, tinyFFN, tinyFFN), lin(B.UseLinear, tinyFFN, tinyDim)
		m.attn[i] = B.Attn{State: B.StateID(i), Heads: 4, KVHeads: 2, KDim: head, VDim: head, Scale: 0.18, Window: window}
		specs = append(specs, B.StateSpec{Name: fmt.Sprintf("%d.kv", i), Heads: 2, KDim: head, VDim: head, Window: window})
	}
	m.rope = B.Rope{Head: head}
	for i := range head / 2 {
		m.rope.InvFreq = append(m.rope.InvFreq, float32(math.Pow(10000, -2*float64(i)/float64(head))))
	}
	st, err := be.NewStore(specs, p)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Resize(kv.Capacity{Pages: []int{tinyPages, tinyPages}, Slots: 8}); err != nil {
		t.Fatal(err)
	}
	m.st = st
	return m
}

var (
	silu    = B.GLU{Act: B.SiLU}
	tinyEps = B.Norm{Eps: 1e-6}
)

func (m *tiny) forward(o B.Ops, b *B.Batch) B.Array {
	h := o.Embed(m.embed, B.Index{IDs: b.Tokens})
	for i := range m.qkv {
		y := o.Linear(o.RMSNorm(h, m.norm, &tinyEps), m.qkv[i])
		q := o.RoPE(o.Cols(y, 0, 4*m.head), &m.rope)
		k := o.RoPE(o.Cols(y, 4*m.head, 6*m.head), &m.rope)
		y = o.Attention(q, k, o.Cols(y, 6*m.head, 8*m.head), &m.attn[i])
		h = o.Add(h, o.Linear(y, m.o[i]))
		if i == 1 && len(b.Out) < b.Rows() {
			h = o.Gather(h, b.Out)
		}
		h = o.Add(h, o.Linear(o.LinearGLU(o.RMSNorm(h, m.norm, &tinyEps), m.gateUp[i], &silu), m.dwn[i]))
		o.Sweep(h)
	}
	return o.Linear(o.RMSNorm(h, m.norm, &tinyEps), m.embed)
}

// seq starts a sequence and gives its number.
func (m *tiny) seq() int {
	m.table = append(m.table, &kv.Table{Pages: make([][]kv.PageID, 2)})
	return len(m.table) - 1
}

// piece is the tokens a step runs for one sequence.
type piece struct {
	seq    int
	tokens []int32
}

// want says which rows of every piece must come out.
type want uint8

const (
	wantAll want = iota
	wantLast
	wantNone
)

// step runs pieces together and gives the logits of the rows that are wanted.
func (m *tiny) step(t testing.TB, out want, pieces ...piece) []float32 {
	t.Helper()
	b := &B.Batch{}
	for _, p := range pieces {
		tab := m.table[p.seq]
		sp := B.Span{Slot: kv.SlotID(p.seq), Row: len(b.Tokens), Len: len(p.tokens), Start: tab.Len, Table: tab}
		b.Tokens = append(b.Tokens, p.tokens...)
		for g := range tab.Pages {
			for len(tab.Pages[g])*B.PageTokens < tab.Len+sp.Len {
				m.next++
				tab.Pages[g] = append(tab.Pages[g], m.next)
			}
		}
		for i := range sp.Len {
			b.Pos[0] = append(b.Pos[0], int32(tab.Len+i))
			if out == wantAll || out == wantLast && i == sp.Len-1 {
				b.Out = append(b.Out, int32(sp.Row+i))
			}
		}
		b.Spans = append(b.Spans, sp)
	}
	sc := m.be.Begin(m.st, b)
	defer sc.End()
	y := floats(t, sc, m.forward(sc, b))
	for i := range b.Spans {
		b.Spans[i].Table.Len += b.Spans[i].Len
	}
	return y
}

func tokens(seed uint64, n int) []int32 {
	r, t := random(seed), make([]int32, n)
	for i := range t {
		t[i] = r.Int32N(tinyVocab)
	}
	return t
}

// equalities are the promises of Caps.Invariant.
func (c Config) equalities(t *testing.T) {
	if !c.compares(c.open(t)) {
		t.Skip("the backend does not promise equal numbers")
	}
	all := []format{affine(4, 64, quant.BF16), {dtype: quant.BF16}, affine(8, 32, quant.F16), {dtype: quant.F32}}
	if testing.Short() {
		all = all[:2]
	}
	for _, f := range all {
		for _, p := range precisions {
			if p.opts.Precision < B.Float32 && (!c.Int8 || f.scheme.None()) {
				continue // the same as float32
			}
			t.Run(f.String()+"/"+p.name, func(t *testing.T) { c.equal(t, f, p.opts, B.KVPolicy{}) })
		}
	}
}

// kvTypes: they hold for every way to keep keys and values, because what the current chunk sees of itself is read back
// as it is stored.
func (c Config) kvTypes(t *testing.T) {
	if !c.compares(c.open(t)) {
		t.Skip("the backend does not promise equal numbers")
	}
	policies := []B.KVPolicy{{DType: B.BF16}, {DType: B.F16}, {Bits: 8}, {Bits: 4}}
	if c.I16 {
		policies = append(policies, B.KVPolicy{DType: B.I16})
	}
	for _, p := range policies {
		t.Run(p.String(), func(t *testing.T) {
			f := affine(4, 64, quant.BF16)
			c.equal(t, f, B.Options{}, p)
			m := newTiny(t, c.open(t), B.Options{Threads: 2}, f, p)
			if got := m.st.Policy().String(); got != p.String() {
				t.Fatalf("keys and values are kept in %s, want %v", got, p)
			}
			c.pages(t, m)
		})
	}
}

func (c Config) equal(t *testing.T, f format, o B.Options, p B.KVPolicy) {
	prompt := tokens(1, 150)
	make := func(threads int) *tiny {
		o.Threads = threads
		return newTiny(t, c.open(t), o, f, p)
	}
	m := make(1)
	whole := m.step(t, wantAll, piece{m.seq(), prompt})

	for _, threads := range c.Threads {
		m = make(threads)
		c.same(t, fmt.Sprintf("%d threads", threads), m.step(t, wantAll, piece{m.seq(), prompt}), whole)
		s, from := m.seq(), 0
		for _, n := range []int{1, 63, 7, 2, 50, 1, 12, 14} {
			if p := (piece{s, prompt[from : from+n]}); n == 50 {
				m.step(t, wantNone, p)
			} else {
				c.same(t, fmt.Sprintf("chunk of %d at %d", n, from), m.step(t, wantAll, p), whole[from*tinyVocab:][:n*tinyVocab])
			}
			from += n
		}

		// A batch: a decode row, a chunk and another prompt, against each alone.
		a, b, other := m.seq(), m.seq(), tokens(2, 40)
		m.step(t, wantLast, piece{a, prompt[:149]})
		m.step(t, wantLast, piece{b, prompt[:30]})
		got := m.step(t, wantLast, piece{a, prompt[149:]}, piece{b, prompt[30:70]}, piece{m.seq(), other})
		alone := make(1)
		c.same(t, "decode row in a batch", got[:tinyVocab], whole[149*tinyVocab:])
		c.same(t, "chunk in a batch", got[tinyVocab:][:tinyVocab], whole[69*tinyVocab:][:tinyVocab])
		c.same(t, "prompt in a batch", got[2*tinyVocab:], alone.step(t, wantLast, piece{alone.seq(), other}))
	}
}

// store checks what happens to pages between steps.
func (c Config) store(t *testing.T) {
	m := newTiny(t, c.open(t), B.Options{Threads: 2}, affine(4, 64, quant.BF16), B.KVPolicy{})
	if !c.compares(m.be) {
		t.Skip("the backend does not promise equal numbers")
	}
	c.pages(t, m)
}

func (c Config) pages(t *testing.T, m *tiny) {
	g := m.st.Geometry()
	if g.PageTokens != B.PageTokens || len(g.Groups) != 2 || g.Groups[0].Window != 0 || g.Groups[1].Window != 50 || !g.Sliceable() {
		t.Fatalf("geometry %+v", g)
	}
	if m.st.Fingerprint() == "" {
		t.Error("empty fingerprint")
	}
	for i, grp := range g.Groups {
		if want := tokenBytes(m.st.Policy(), m.head) * B.PageTokens; m.be.Name() != "ref" && grp.PageBytes != want {
			t.Errorf("a page of group %d is priced at %d bytes, want %d", i, grp.PageBytes, want)
		}
	}
	prompt, rest := tokens(3, 100), tokens(4, 30)
	a, fresh := m.seq(), m.seq()
	m.step(t, wantLast, piece{a, prompt})
	want := m.step(t, wantAll, piece{fresh, append(append([]int32(nil), prompt...), rest...)})[100*tinyVocab:]

	// A restored prefix shares the first page and copies the second; the copy is cut at 90 of its tokens.
	restored := m.seq()
	tail, dst := []kv.PageID{m.table[a].Pages[0][1], m.table[a].Pages[1][1]}, []kv.PageID{m.page(), m.page()}
	if err := m.st.Open(kv.SlotID(restored), kv.Match{Tokens: 90, Table: *m.table[a], Tail: tail}, dst); err != nil {
		t.Fatal(err)
	}
	for g := range dst {
		m.table[restored].Pages[g] = []kv.PageID{m.table[a].Pages[g][0], dst[g]}
	}
	m.table[restored].Len = 90
	c.same(t, "restored prefix", m.step(t, wantAll, piece{restored, append(append([]int32(nil), prompt[90:]...), rest...)})[10*tinyVocab:], want)

	c.same(t, "shared from", m.step(t, wantAll, piece{a, rest}), want)

	// Rejected drafts are overwritten.
	drafted := m.seq()
	m.step(t, wantLast, piece{drafted, prompt})
	m.step(t, wantLast, piece{drafted, tokens(6, 9)})
	m.st.Commit(kv.SlotID(drafted), 0)
	m.table[drafted].Len = 100
	c.same(t, "after rejected drafts", m.step(t, wantAll, piece{drafted, rest}), want)

	c.export(t, m, restored, want[len(want)-tinyVocab:], rest)

	// Pages behind a window may be gone; the pages of a state without one may not.
	want = m.step(t, wantLast, piece{a, rest[:1]})
	first := m.table[a].Pages
	m.table[a].Len--
	first[1][0] = 0
	c.same(t, "page behind the window released", m.step(t, wantLast, piece{a, rest[:1]}), want)
	first[0][0] = 0
	if g.SlotToken > 0 {
		return // pages are not what it reads from
	}
	panics(t, "released page in sight", func() { m.step(t, wantLast, piece{a, rest[:1]}) })
}

// tokenBytes is what two heads' key and value take.
func tokenBytes(p B.KVPolicy, head int) int64 {
	if p.Bits != 0 {
		return int64(4 * (head*p.Bits/8 + 4*head/p.GroupOf(head)))
	}
	if p.DType == B.I16 {
		return int64(4 * (2*head + 2))
	}
	return int64(4 * head * map[B.DType]int{B.BF16: 2, B.F16: 2, B.F32: 4}[p.DType])
}

func (m *tiny) page() kv.PageID { m.next++; return m.next }

// export moves a sequence's pages out and into another page.
func (c Config) export(t *testing.T, m *tiny, from int, want []float32, rest []int32) {
	s := m.seq()
	for g, pages := range m.table[from].Pages {
		for _, page := range pages {
			var buf bytes.Buffer
			if err := m.st.Export(&buf, kv.Ref{Group: g, Page: page}); err != nil {
				t.Fatal(err)
			}
			if want := m.st.Geometry().Groups[g].PageBytes; int64(buf.Len()) != want {
				t.Errorf("exported %d bytes, the geometry says %d", buf.Len(), want)
			}
			to := m.page()
			if err := m.st.Import(bytes.NewReader(buf.Bytes()), kv.Ref{Group: g, Page: to}); err != nil {
				t.Fatal(err)
			}
			if err := m.st.Import(bytes.NewReader(buf.Bytes()[1:]), kv.Ref{Group: g, Page: m.page()}); err == nil {
				t.Error("a short page was imported")
			}
			m.table[s].Pages[g] = append(m.table[s].Pages[g], to)
		}
	}
	m.table[s].Len = 129
	c.same(t, "imported pages", m.step(t, wantLast, piece{s, rest[29:]}), want)
}

// DecodeStep prepares a small 4-bit decoder with a hundred tokens cached and gives a function that runs one decode step
// of it, always the same one, without allocating anything itself.
func DecodeStep(t testing.TB, be B.Backend, o B.Options) func() {
	m := newTiny(t, be, o, affine(4, 64, quant.BF16), B.KVPolicy{})
	s := m.seq()
	m.step(t, wantLast, piece{s, tokens(1, 100)})
	b := &B.Batch{Tokens: []int32{1}, Out: []int32{0}, Spans: []B.Span{{Len: 1, Start: 100, Table: m.table[s]}}}
	b.Pos[0] = []int32{100}
	return func() {
		sc := be.Begin(m.st, b)
		if _, err := sc.Floats(m.forward(sc, b)); err != nil {
			t.Error(err)
		}
		sc.End()
	}
}
