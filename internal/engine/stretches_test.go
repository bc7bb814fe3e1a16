package engine

import (
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hearth/internal/kv"
	"hearth/internal/tier"
)

// desk is a prefix tree and a tier, of pages of four tokens, with nothing in their pages.
type desk struct {
	geo   kv.Geometry
	alloc *kv.Alloc
	tree  *kv.Prefix
	tier  *tier.Tier
	ready chan struct{}
}

func newDesk(t testing.TB, page int) *desk {
	s := &desk{geo: kv.Geometry{PageTokens: page, Groups: []kv.Group{{PageBytes: 10}}}, ready: make(chan struct{}, 1)}
	var err error
	if s.alloc, err = kv.NewAlloc(s.geo, kv.Limits{Bytes: 1 << 30, Slots: 1, Tokens: 1 << 20, Span: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	s.tree = kv.NewPrefix(s.alloc)
	s.tier, err = tier.Open(tier.Options{Dir: t.TempDir(), Name: "m", Fingerprint: "f", Geometry: s.geo, Quota: 1 << 30, Digest: func(n uint32) ([32]byte, bool) { return [32]byte{byte(n)}, n < 3 },
		Ready: func() {
			select {
			case s.ready <- struct{}{}:
			default:
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.tier.Close() })
	return s
}

// remember leaves a key in memory.
func (s *desk) remember(t testing.TB, key []kv.Elem) {
	m := s.tree.Match(key)
	var table kv.Table
	s.alloc.Share(&table, &m)
	if !s.alloc.Grow(&table, len(key)) {
		t.Fatal("no memory")
	}
	table.Len = len(key)
	s.tree.Insert(key, &table, len(key))
	s.alloc.Release(&table)
}

// file leaves the whole pages of a key on disk.
func (s *desk) file(key []kv.Elem) {
	n := len(key) / s.geo.PageTokens
	p := &tier.Path{Key: key, Uses: make([]int, n), Pages: [][]kv.PageID{slices.Repeat([]kv.PageID{1}, n)}, Last: true,
		Copy: func(w io.Writer, _ kv.Ref) error { _, err := w.Write(make([]byte, 10)); return err }}
	for res := tier.More; res == tier.More || res == tier.Full; {
		if res = s.tier.Put(p); res == tier.Full {
			<-s.ready
		}
	}
}

// settle waits until all of it is written, and gives the runs.
func (s *desk) settle(t testing.TB) []tier.Run {
	deadline := time.After(time.Minute)
	for {
		if st := s.tier.Stats(); st.Writes == int64(st.Entries) {
			return s.tier.Runs()
		}
		select {
		case <-s.ready:
		case <-deadline:
			t.Fatal("nothing is written")
		}
	}
}

// remembers reports whether the first page that a stretch is from is in memory after all.
func (s *desk) remembers(path []kv.Elem, x *stretch) bool {
	return len(s.tree.Branch(path).Key) > x.from
}

// What is in memory and what is on disk make one tree that has all of both, once: it is the tree in memory with what parts from
// it on disk, and adds up to what each of them says of itself.
func TestJoin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	salts := []kv.Salt{{}, {1, 2, 3}, {9, 9, 9}}
	for round := range 60 {
		s := newDesk(t, 4)
		var keys [][]kv.Elem
		for range 3 + r.IntN(12+round%2*30) {
			salt := &salts[r.IntN(len(salts))]
			var key []kv.Elem
			if len(keys) > 0 && r.IntN(3) > 0 { // it goes on from another one
				key = slices.Clone(keys[r.IntN(len(keys))])
				key = key[:r.IntN(len(key)+1)]
			}
			for n := 1 + r.IntN(90); len(key) < n; {
				if len(key) > 4 && r.IntN(8) == 0 {
					for row := range 1 + r.IntN(6) {
						key = append(key, kv.Media(uint32(1+r.IntN(3)), row)) // of the third one there is no digest
					}
					continue
				}
				key = append(key, salt.Elem(len(key), kv.Elem(1+r.IntN(2+round%2*20))))
			}
			keys = append(keys, key)
			where := r.IntN(3)
			if where > 0 {
				s.remember(t, key)
			}
			if where < 2 {
				s.file(key)
			}
		}
		runs := s.settle(t)
		list, _ := s.tree.Nodes(1 << 20)
		all, left := join(list, 0, runs)
		if left != 0 {
			t.Errorf("%d: %d are left out", round, left)
		}
		bytes, filed := int64(0), int64(0)
		ids := map[int64]bool{}
		paths := map[*stretch][]kv.Elem{} // with 0 for what comes from the first row of an image on in what is on disk alone
		for i, x := range all {
			bytes, filed = bytes+x.bytes, filed+x.filed
			from := 0
			if x.up != nil {
				from = x.up.to
			}
			if x.from != from || x.to <= from || x.at != i || x.up != nil && x.up.at >= i || ids[x.id] || x.onDisk > x.to || x.alone() && (x.onDisk != x.to || x.bytes != 0) || x.bytes < 0 || x.filed < 0 {
				t.Errorf("%d: stretch %d: %+v", round, i, x)
			}
			ids[x.id] = true
			key := x.first(1 << 20)
			path := append(slices.Clone(paths[x.up]), key...)
			path = append(path, make([]kv.Elem, x.to-x.from-len(key))...)
			paths[x] = path
			if !x.alone() {
				// What it has on disk is what the tier finds.
				deepest := s.tier.Match(append(slices.Clone(path), 7, 7, 7, 7))
				if n := deepest.Pages() * 4; n > x.from && x.onDisk < min(n, x.to) || len(x.below) == 0 && max(x.onDisk, x.from) != max(n, x.from) {
					t.Errorf("%d: up to %d of [%d, %d) is on disk, the tier has %d", round, x.onDisk, x.from, x.to, n)
				}
			} else if s.remembers(path, x) {
				t.Errorf("%d: [%d, %d) is in memory", round, x.from, x.to)
			}
		}
		if st := s.tier.Stats(); bytes != s.tree.Bytes() || filed != st.Bytes {
			t.Errorf("%d: %d bytes of %d, and %d of %d on disk", round, bytes, s.tree.Bytes(), filed, st.Bytes)
		}
		for most := range len(list) { // of what is not looked at in memory nothing is said
			some, left := s.tree.Nodes(most)
			all, more := join(some, left, runs)
			paths := map[*stretch][]kv.Elem{}
			for _, x := range all {
				if paths[x] = append(slices.Clone(paths[x.up]), x.first(1<<20)...); x.alone() && len(paths[x]) == x.to && s.remembers(paths[x], x) {
					t.Errorf("%d: of %d nodes and %d more, [%d, %d) is in memory", round, most, more, x.from, x.to)
				}
			}
		}
		for _, key := range keys {
			m, b := s.tier.Match(append(slices.Clone(key), 7, 7, 7, 7)), s.tree.Branch(key)
			n := max(m.Pages()*4, len(b.Key))
			same := func(a, b kv.Elem) bool { return a == b || a == 0 }
			if !slices.ContainsFunc(all, func(x *stretch) bool { return x.to >= n && slices.EqualFunc(paths[x][:n], key[:n], same) }) {
				t.Errorf("%d: %d tokens of %v are missing", round, n, key)
			}
		}
	}
}

// BenchmarkJoin lays as many files as there may be, of 262,144 pages, beside a tree of 100,000 pages in 4,096 nodes: those of
// other prompts, and those of the same ones.
func BenchmarkJoin(b *testing.B) {
	const page, prompts = 64, 1 << 11
	s := newDesk(b, page)
	key := func(of, n int) []kv.Elem {
		k := make([]kv.Elem, n)
		for i := range k {
			k[i] = kv.Elem(of + i)
		}
		return k
	}
	for i := range prompts {
		k := key(i*1000, 48*page)
		s.remember(b, k)
		k[24*page] = 1 // it parts in the middle
		s.remember(b, k)
		s.file(key(i*1000, 64*page))
		s.file(append([]kv.Elem{2}, key(i*1000, 64*page)...))
	}
	runs := s.settle(b)
	var looked, listed, joined, asked time.Duration
	for b.Loop() {
		began := time.Now()
		list, left := s.tree.Nodes(mostNodes)
		looked += time.Since(began)
		began = time.Now()
		runs = s.tier.Runs()
		listed += time.Since(began)
		began = time.Now()
		n := &nodes{}
		n.list, n.left = join(list, left, runs)
		joined += time.Since(began)
		began = time.Now()
		n.tree(TreeQuery{All: true, First: true, Most: 200})
		asked += time.Since(began)
	}
	for what, took := range map[string]time.Duration{"nodes": looked, "runs": listed, "join": joined, "query": asked} {
		b.ReportMetric(took.Seconds()*1000/float64(b.N), what+"-ms")
	}
	b.ReportMetric(float64(len(runs)), "runs")
}
