package transcript

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"
)

// historyMagic also counts the forms of the file. All numbers in it are varints:
//
//	the magic, the time in Unix milliseconds, the number of pieces, and per piece, the one used last first:
//	  milliseconds since its use
//	  1 + the number of the piece it continues, or 0 and a salt for a root, which has nothing more
//	  its text; its ids; how many of those were generated
//	  0; 1 and head for a piece that was said; 2 as 1, and the text of the answer, spoken and reasoning (0 or 1)
//	the number of reasonings, and per reasoning, the one used last first:
//	  milliseconds since its use
//	  its salt, the digest of its conversation, its text
//	the number of calls, and per call, the oldest first:
//	  its salt, the client's id, the model's
//
// Texts and ids stand behind their length.
const (
	historyMagic  = "hearthH3"
	historySecond = "hearthH2" // the same without calls
	historyFirst  = "hearthH1" // without reasonings either
)

// Save spells all that is remembered but the sessions.
func (h *History) Save() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Since(h.began)
	b := binary.AppendUvarint([]byte(historyMagic), uint64(time.Now().UnixMilli()))
	n := 0
	for p := h.used.older; p != &h.used; p = p.older {
		n++
	}
	b = binary.AppendUvarint(b, uint64(n))
	number := make(map[*piece]uint64, n)
	for p := h.used.older; p != &h.used; p = p.older {
		number[p] = uint64(len(number))
		b = binary.AppendUvarint(b, uint64((now - p.last).Milliseconds()))
		if p.parent == nil {
			b = append(append(b, 0), p.salt[:]...)
			continue
		}
		b = appendText(binary.AppendUvarint(b, 1+number[p.parent]), p.text)
		b = binary.AppendUvarint(b, uint64(len(p.ids)))
		for _, id := range p.ids {
			b = binary.AppendUvarint(b, uint64(id))
		}
		b = binary.AppendUvarint(b, uint64(p.generated))
		switch a := p.answer; {
		case !p.said:
			b = append(b, 0)
		case a == nil:
			b = binary.AppendUvarint(append(b, 1), uint64(p.head))
		default:
			b = appendText(binary.AppendUvarint(append(b, 2), uint64(p.head)), a.text)
			b = binary.AppendUvarint(b, uint64(a.spoken))
			if a.reasoning {
				b = append(b, 1)
			} else {
				b = append(b, 0)
			}
		}
	}
	b = binary.AppendUvarint(b, uint64(h.reasonings.used.Len()))
	for e := h.reasonings.used.Front(); e != nil; e = e.Next() {
		r := e.Value.(*reasoning)
		b = binary.AppendUvarint(b, uint64((now - r.last).Milliseconds()))
		b = appendText(append(append(b, r.salt[:]...), r.said[:]...), r.text)
	}
	return h.calls.save(b)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errHistory = errors.New("read history: it is not one, or of another version or tokenizer")

// Load takes in what Save spelled, if nothing is remembered yet: all of it, or nothing and an error.
func (h *History) Load(b []byte) error {
	magic := string(b[:min(len(b), len(historyMagic))])
	if magic != historyMagic && magic != historySecond && magic != historyFirst {
		return errHistory
	}
	r := historyReader{b: b[len(historyMagic):]}
	h.mu.Lock()
	defer h.mu.Unlock()
	since := max(time.Now().UnixMilli()-int64(r.number(1<<62)), 0)
	all := make([]*piece, 0, r.number(len(b)/3))
	roots := map[Salt]*piece{}
	for range cap(all) {
		p := &piece{last: time.Since(h.began) - time.Duration(since+int64(r.number(1<<40)))*time.Millisecond}
		if up := r.number(len(all)); up > 0 {
			r.piece(p, all[up-1], h.tok.Size())
		} else if copy(p.salt[:], r.take(len(Salt{}))); roots[p.salt] != nil {
			r.bad = true
		} else {
			roots[p.salt] = p
		}
		if r.bad {
			return errHistory
		}
		all = append(all, p)
	}
	var thought []*reasoning
	if magic != historyFirst {
		thought = make([]*reasoning, 0, r.number(len(r.b)/leastReasoning))
	}
	for range cap(thought) {
		x := &reasoning{last: time.Since(h.began) - time.Duration(since+int64(r.number(1<<40)))*time.Millisecond}
		copy(x.salt[:], r.take(len(x.salt)))
		copy(x.said[:], r.take(len(x.said)))
		x.text = r.text()
		thought = append(thought, x)
	}
	var calls callIDs
	if magic == historyMagic {
		calls.load(&r)
	}
	if r.bad || len(r.b) > 0 {
		return errHistory
	}
	if len(h.roots) > 0 || h.reasonings.size > 0 || len(h.calls.said) > 0 {
		return nil
	}
	h.calls = calls
	for _, x := range slices.Backward(thought) {
		h.reasonings.remember(x)
	}
	h.roots = roots
	for i := len(all) - 1; i >= 0; i-- {
		p := all[i]
		h.push(p)
		if h.size += p.bytes(); p.said {
			h.list(p)
		}
	}
	for h.size > h.limit {
		h.drop(h.used.newer)
	}
	h.expire()
	h.reasonings.expire(&h.tree)
	return nil
}

// leastReasoning is how many bytes of a file a reasoning takes at least.
const leastReasoning = 2 + len(Salt{}) + len(Digest{})

// historyReader takes a file apart. bad says that it was none.
type historyReader struct {
	b   []byte
	bad bool
}

// number reads one that is most at most.
func (r *historyReader) number(most int) int {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > uint64(most) {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return int(v)
}

func (r *historyReader) take(n int) []byte {
	if n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *historyReader) text() string { return string(r.take(r.number(len(r.b)))) }

// piece reads a piece below up, of ids of a vocabulary.
func (r *historyReader) piece(p, up *piece, vocab int) {
	p.text = r.text()
	p.ids = make([]int32, r.number(len(r.b)))
	for i := range p.ids {
		p.ids[i] = int32(r.number(vocab - 1))
	}
	p.generated = r.number(len(p.ids))
	if kind := r.number(2); kind > 0 {
		p.said, p.head = true, r.number(len(p.ids))
		if kind == 2 {
			a := &reply{text: r.text()}
			a.spoken, a.reasoning = r.number(len(a.text)), r.number(1) == 1
			p.answer = a
		}
	}
	if up.next[p.text] != nil || p.text == "" {
		r.bad = true
		return
	}
	p.putBelow(up)
}
