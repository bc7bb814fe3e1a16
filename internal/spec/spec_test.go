package spec

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// naive finds the longest end of tail that stands in text with something behind it.
func naive(text, tail []int32) (match int) {
	for at := gram; at <= len(text); at++ {
		if at == len(text) { // nothing follows; of the text itself it is the end
			continue
		}
		m := 0
		for m < min(longestMatch, at, len(tail)) && text[at-1-m] == tail[len(tail)-1-m] {
			m++
		}
		if m >= gram {
			match = max(match, m)
		}
	}
	return match
}

// check compares an index that grows with a search through everything.
func check(t *testing.T, ids []int32) {
	t.Helper()
	l, x := NewLookup(nil, nil, 0), Index{}
	for n, id := range ids {
		l.Append(id)
		x.Append(id)
		text := ids[:n+1]
		want := naive(text, text)
		if p := x.Match(); p.Match != want || p.Match > 0 && !slices.Equal(text[p.At-p.Match:p.At], text[len(text)-p.Match:]) {
			t.Fatalf("after %v: %v, want a match of %d", text, p, want)
		}
		draft, match := l.Draft(nil, 5, nil)
		if match < want { // more where a copy was taken up again
			t.Fatalf("after %v: a match of %d, want %d", text, match, want)
		}
		// A token that was changed counts as alike.
		if match > 0 && !slices.Contains(places(text, match), draft[0]) && (match == want || !slices.Contains(places(text, match-1), draft[0])) {
			t.Fatalf("after %v: drafts %v, which never followed", text, draft)
		}
	}
	if len(ids) > 8 {
		tail := ids[len(ids)/2 : len(ids)/2+5]
		if p, want := x.Find(tail), naive(ids, tail); p.Match != want {
			t.Fatalf("%v in %v: %v, want a match of %d", tail, ids, p, want)
		}
	}
}

// places are the tokens that followed where so many tokens were like the end.
func places(text []int32, match int) (ids []int32) {
	for at := match; at < len(text); at++ {
		if slices.Equal(text[at-match:at], text[len(text)-match:]) {
			ids = append(ids, text[at])
		}
	}
	return ids
}

// TestNaive: what is found is as long as what a search through the whole text finds.
func TestNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		ids := make([]int32, 0, 60)
		for len(ids) < cap(ids) {
			if n := len(ids); n > 6 && r.IntN(3) == 0 { // a copy
				from := r.IntN(n - 3)
				ids = append(ids, ids[from:min(from+1+r.IntN(20), n)]...)
				ids = ids[:min(len(ids), cap(ids))]
			} else {
				ids = append(ids, r.Int32N(4))
			}
		}
		check(t, ids[:min(len(ids), 60)])
	}
}

func FuzzNaive(f *testing.F) {
	f.Add([]byte("abcabcabcabd abcabd"))
	f.Fuzz(func(t *testing.T, b []byte) {
		ids := make([]int32, min(len(b), mostPlaces-1)) // no gram has more places
		for i := range ids {
			ids[i] = int32(b[i])
		}
		check(t, ids)
	})
}

// TestDraft: a circle goes on, a prediction is followed from its beginning, and an edit is left behind at once.
func TestDraft(t *testing.T) {
	l := NewLookup(nil, []int32{9, 1, 2, 3, 1, 2, 3}, 0)
	if ids, match := l.Draft(nil, 7, nil); match != 3 || !slices.Equal(ids, []int32{1, 2, 3, 1, 2, 3, 1}) {
		t.Error(ids, match)
	}
	l = NewLookup([]int32{10, 11, 12, 13, 14, 15, 16, 17}, []int32{1, 2}, 0)
	if ids, match := l.Draft(nil, 3, nil); match != predicted || !slices.Equal(ids, []int32{10, 11, 12}) {
		t.Error(ids, match)
	}
	for _, tt := range []struct {
		say, want []int32
		match     int
	}{
		{[]int32{10, 11, 99}, []int32{13, 14, 15}, 1}, // one was changed, in all likelihood
		{[]int32{98}, []int32{14, 15, 16}, 0},         // more of them
		{[]int32{13}, []int32{14, 15, 16}, 1},         // and so it goes on
		{[]int32{14, 15}, []int32{16, 17, 1}, 3},      // what is alike elsewhere is not longer
		{[]int32{50, 15, 51, 16, 52}, nil, 0},         // something else
		{slices.Repeat([]int32{60, 61}, 8), []int32{60, 61, 60}, 14},
	} {
		l.Append(tt.say...)
		if ids, match := l.Draft(nil, 3, nil); match != tt.match || match > 0 && !slices.Equal(ids, tt.want) {
			t.Errorf("after %v: %v %v", tt.say, ids, match)
		}
	}
}

// TestHistory: what others said is found where one's own text has less, and the oldest is forgotten.
func TestHistory(t *testing.T) {
	h := NewHistory(300_000)
	h.Add([]int32{1, 2, 3, 4, 5, 6})
	l := NewLookup(nil, []int32{7, 1, 2, 3, 4}, 0)
	if ids, match := l.Draft(nil, 3, h); match != 4 || !slices.Equal(ids, []int32{5, 6}) {
		t.Error(ids, match)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		ids := make([]int32, h.tokens/10)
		for i := range ids {
			ids[i] = 100 + r.Int32N(1<<17)
		}
		h.Add(ids)
		if h.Bytes() > h.Most() || h.Most() > 300_000 {
			t.Fatalf("%d bytes of %d", h.Bytes(), h.Most())
		}
	}
	if ids, match := l.Draft(nil, 3, h); match != 0 {
		t.Error(ids, match)
	}
	if NewHistory(30_000) != nil {
		t.Error("a history of 30000 bytes")
	}
}

// TestBytes: an index takes at most 16 bytes a token, but for its last piece, however it has grown.
func TestBytes(t *testing.T) {
	var x Index
	for n := range 70_000 {
		x.Append(int32(n % 5000))
		if got := x.Bytes(); got > 16*int64(n)+8*part+4*leastHeads || got > Bytes(n+1) {
			t.Fatalf("%d tokens: %d bytes, %d reckoned", n+1, got, Bytes(n+1))
		}
	}
}

// texts are two of 100,000 tokens: words, and the same token again and again.
func texts(n int) map[string][]int32 {
	r := rand.New(rand.NewPCG(3, 4))
	words, same := make([]int32, n), make([]int32, n)
	for i := range words {
		words[i] = int32(r.ExpFloat64() * 30)
	}
	return map[string][]int32{"words": words, "same": same}
}

// TestCost: a step's lookup at 100,000 tokens takes less than 20 microseconds, in the median.
func TestCost(t *testing.T) {
	for name, ids := range texts(100_000) {
		l, h := NewLookup(nil, ids, 1000), NewHistory(HistoryBytes)
		h.Add(ids[:30_000])
		var took []time.Duration
		dst := make([]int32, 0, 16)
		for i := range 1001 {
			began := time.Now()
			l.Append(ids[i*7%1000])
			l.Draft(dst, 16, h)
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		if took[500] > 20*time.Microsecond {
			t.Errorf("%s: %v", name, took[500])
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	for name, ids := range texts(100_000) {
		b.Run(name, func(b *testing.B) {
			l, h := NewLookup(nil, ids, 1000), NewHistory(HistoryBytes)
			h.Add(ids[:30_000])
			dst := make([]int32, 0, 16)
			for i := range b.N {
				l.Append(ids[i*7%1000])
				l.Draft(dst, 16, h)
			}
			b.ReportMetric(float64(l.Bytes())/float64(l.Len()), "bytes/token")
		})
	}
}
