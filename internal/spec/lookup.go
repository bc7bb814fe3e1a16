package spec

// Lookup drafts what a sequence says next from its own text, and from what others under its salt have said.
type Lookup struct {
	own   Index
	place Place // in own, where the text goes on as it does now
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
			l.place = Place{}
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
