package spec

// Lookup drafts what a sequence says next from its own text, and from what others under its salt have said.
type Lookup struct {
	own   Index
	place Place // in own, where the text goes on as it does now
	lost  int   // in own, where it went on otherwise than it did now, 0: nowhere lately;
	since int   // and so many tokens ago
	tail  [longestMatch]int32
}

// NewLookup reads a prompt, which stands behind the prediction of an answer, if there is one. Its cost grows with both; all later
// calls cost little.
func NewLookup(prediction, prompt []int32, more int) *Lookup {
	l := &Lookup{}
	l.own.Reserve(len(prediction) + len(prompt) + more)
	l.own.Append(prediction...)
	l.own.Append(prompt...)
	if len(prediction) > 0 {
		l.place = Place{0, predicted}
	}
	return l
}

// predicted is what the beginning of a prediction counts as: as if so many tokens before it were alike.
const predicted = 8

const (
	trusted = 5  // tokens alike before a place whose text is looked for again
	strayed = 12 // tokens after which it is not
	around  = 24 // tokens on each side of it that are looked at
)

// resume is where a text that was copied may go on behind what was changed: where it is like the end, with fewer tokens than
// elsewhere, the nearest of equals; at first behind the one token that was changed.
func (l *Lookup) resume() (best Place) {
	if l.lost == 0 {
		return Place{}
	}
	expected := l.lost + l.since
	if l.since == 1 && expected < l.own.n-1 {
		best = Place{expected, 0}
	}
	for d := range around {
		for _, at := range [...]int{expected + d, expected - d} {
			m := 0
			for m < min(longestMatch, at) && at < l.own.n && l.own.at(at-1-m) == l.own.at(l.own.n-1-m) {
				m++
			}
			if m > best.Match {
				best = Place{at, m}
			}
		}
	}
	return best
}

// Bytes is what it takes.
func (l *Lookup) Bytes() int64 { return l.own.Bytes() }

// Len is how many tokens it has.
func (l *Lookup) Len() int { return l.own.n }

// Append adds tokens of the answer.
func (l *Lookup) Append(ids ...int32) {
	for _, id := range ids {
		switch {
		case l.place.Match == 0:
		case l.place.At < l.own.n && l.own.at(l.place.At) == id:
			l.place = Place{l.place.At + 1, min(l.place.Match+1, longestMatch)}
		default:
			if l.place.Match >= trusted {
				l.lost, l.since = l.place.At, 0
			}
			l.place = Place{}
		}
		if l.since++; l.since > strayed {
			l.lost = 0
		}
		l.own.Append(id)
	}
}

// Draft appends up to most tokens that may come next, and says how many tokens before them were alike. history may be nil.
func (l *Lookup) Draft(dst []int32, most int, history *History) ([]int32, int) {
	if l.place.Match < longestMatch {
		if p := l.own.Match(); p.Match > l.place.Match || p.Match == l.place.Match && p.At > l.place.At {
			l.place = p
		}
	}
	if p := l.resume(); p.At > 0 && p.Match >= l.place.Match {
		l.place = Place{p.At, max(p.Match, 1)}
	}
	if l.place.Match < longestMatch && history != nil {
		n := min(l.own.n, longestMatch)
		for i := range n {
			l.tail[i] = l.own.at(l.own.n - n + i)
		}
		if ids, match := history.draft(dst, l.tail[:n], l.place.Match, most); match > 0 {
			return ids, match
		}
	}
	if l.place.Match == 0 {
		return dst, 0
	}
	from := len(dst)
	dst = l.own.Draft(dst, l.place.At, most)
	for len(dst) > from && len(dst) < from+most { // the text ends there, and goes on in a circle
		dst = append(dst, dst[len(dst)-(l.own.n-l.place.At)])
	}
	return dst, l.place.Match
}
