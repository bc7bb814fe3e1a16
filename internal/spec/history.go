package spec

import "sync"

// History is what sequences under one salt have generated: the last ones of them. It may be used from any goroutine.
type History struct {
	tokens    int // of each half
	mu        sync.RWMutex
	now, past Index // past is full; when now is, too, it takes its place
}

const (
	leastHistory = 1 << 10 // tokens of each half
	mostHistory  = 1 << 15
)

// HistoryBytes is what a History takes at most.
var HistoryBytes = historyBytes(mostHistory)

func historyBytes(tokens int) int64 { return 2 * Bytes(tokens+longestMatch) }

// NewHistory makes one of at most so many bytes, nil if they are too few.
func NewHistory(bytes int64) *History {
	for n := mostHistory; n >= leastHistory; n /= 2 {
		if historyBytes(n) <= bytes {
			return &History{tokens: n}
		}
	}
	return nil
}

// Add adds an answer, with some tokens before it.
func (h *History) Add(ids []int32) {
	ids = ids[max(0, len(ids)-h.tokens):]
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now.n+len(ids) > h.tokens {
		h.past, h.now = h.now, Index{}
	}
	h.now.Append(ids...)
}

// Most is what it takes at most.
func (h *History) Most() int64 { return historyBytes(h.tokens) }

// Bytes is what it takes.
func (h *History) Bytes() int64 {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.now.Bytes() + h.past.Bytes()
}

// draft appends what followed where the text was like tail for more than match tokens. It does not wait for who adds.
func (h *History) draft(dst, tail []int32, match, most int) ([]int32, int) {
	if !h.mu.TryRLock() {
		return dst, 0
	}
	defer h.mu.RUnlock()
	for _, x := range [...]*Index{&h.now, &h.past} {
		if p := x.Find(tail); p.Match > match {
			return x.Draft(dst, p.At, most), p.Match
		}
	}
	return dst, 0
}
