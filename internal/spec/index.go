// Package spec proposes tokens that may come next (drafts): looked up in what was said before, or known from a grammar. It knows
// token ids alone. A wrong draft costs a row of a step and changes no answer: package engine accepts a draft only while it equals
// what is drawn. After prompt lookup decoding (https://github.com/apoorvumang/prompt-lookup-decoding), with the index of
// LZ77 compressors: the places of each gram are chained, the latest first.
package spec

// LeastMatch is how many tokens have to be alike for a draft.
const LeastMatch = 3

const (
	gram         = LeastMatch // tokens that a match has at least
	longestMatch = 32         // tokens of a match that are told apart; longer ones count as so long
	mostPlaces   = 64         // places of a gram that are looked at, the latest ones
	part         = 1024       // tokens of a piece of an index
	leastHeads   = 256
	mostPerHead  = 4 // tokens per head, before there are more heads
)

// Index finds the places of a text of tokens that were like its end. It is for one goroutine at a time, but looking (Find, Draft)
// may be done by several while nobody appends.
type Index struct {
	parts []*piece
	heads []int32 // by a gram's hash: the last place behind one; 0: none
	n     int
}

// piece is a part of the text. prev[i] is the place before the one behind tokens[i] whose gram has the same hash; 0: none.
type piece struct {
	tokens, prev [part]int32
}

// Place is where a text went on from what it ends with now, and how many tokens were alike before it: none is the zero Place.
type Place struct{ At, Match int }

// Len is how many tokens the text has.
func (x *Index) Len() int { return x.n }

// Bytes is what the index takes.
func (x *Index) Bytes() int64 { return int64(len(x.parts))*8*part + 4*int64(len(x.heads)) }

// Bytes is what an index of so many tokens takes at most.
func Bytes(tokens int) int64 { return int64(tokens/part+1)*8*part + 4*int64(heads(tokens)) }

// heads is how many heads are made for so many tokens: a power of two.
func heads(tokens int) int {
	n := leastHeads
	for n*2 < tokens {
		n *= 2
	}
	return n
}

func (x *Index) at(i int) int32 { return x.parts[i/part].tokens[i%part] }

// hash is that of the gram before place i.
func (x *Index) hash(i int) int { return x.slot(x.at(i-3), x.at(i-2), x.at(i-1)) }

func (x *Index) slot(a, b, c int32) int {
	h := (uint64(uint32(a))*0x9E3779B97F4A7C15+uint64(uint32(b)))*0x9E3779B97F4A7C15 + uint64(uint32(c))
	return int(h*0x9E3779B97F4A7C15>>32) & (len(x.heads) - 1)
}

// Reserve makes heads for so many tokens at once.
func (x *Index) Reserve(tokens int) {
	if n := heads(tokens); n > len(x.heads) {
		x.rehash(n)
	}
}

// Append adds tokens to the text.
func (x *Index) Append(ids ...int32) {
	if len(x.heads) == 0 || x.n+len(ids) > mostPerHead*len(x.heads) {
		x.rehash(heads(x.n + len(ids)))
	}
	for _, id := range ids {
		if x.n%part == 0 {
			x.parts = append(x.parts, new(piece))
		}
		x.parts[x.n/part].tokens[x.n%part] = id
		x.n++
		x.chain(x.n)
	}
}

// chain makes place i the last one of its gram.
func (x *Index) chain(i int) {
	if i < gram {
		return
	}
	h := &x.heads[x.hash(i)]
	x.parts[(i-1)/part].prev[(i-1)%part], *h = *h, int32(i)
}

func (x *Index) rehash(n int) {
	x.heads = make([]int32, n)
	for i := gram; i <= x.n; i++ {
		x.chain(i)
	}
}

// Match finds the place whose text before it is most like the end of the text itself, the latest of equals.
func (x *Index) Match() Place {
	if x.n < gram {
		return Place{}
	}
	return x.longest(x.prev(x.n), func(back int) int32 { return x.at(x.n - back) }, x.n)
}

// Find is Match for the end of another text.
func (x *Index) Find(tail []int32) Place {
	if n := len(tail); n >= gram && x.n >= gram {
		last := int(x.heads[x.slot(tail[n-3], tail[n-2], tail[n-1])])
		if last == x.n {
			last = x.prev(last) // nothing follows there
		}
		return x.longest(last, func(back int) int32 { return tail[n-back] }, n)
	}
	return Place{}
}

// prev is the place before place i with a gram of the same hash.
func (x *Index) prev(i int) int { return int(x.parts[(i-1)/part].prev[(i-1)%part]) }

// longest walks back from a place. tail(1) is the last token of the end, of which there are n.
func (x *Index) longest(at int, tail func(back int) int32, n int) (best Place) {
	for range mostPlaces {
		if at == 0 {
			break
		}
		m := 0
		for m < min(longestMatch, at, n) && x.at(at-1-m) == tail(m+1) {
			m++
		}
		if m >= gram && m > best.Match {
			if best = (Place{at, m}); m == longestMatch {
				break
			}
		}
		at = x.prev(at)
	}
	return best
}

// Draft appends up to most tokens that stood at a place.
func (x *Index) Draft(dst []int32, at, most int) []int32 {
	for i := at; i < min(at+most, x.n); i++ {
		dst = append(dst, x.at(i))
	}
	return dst
}
