package transcript

import (
	"container/list"
	"crypto/sha256"
	"strings"
	"time"
)

// Digest stands for a conversation up to one of its turns, as its client tells it.
type Digest = [sha256.Size]byte

// reasonings remembers what the model thought in turns that clients send back without it. Who finds one has told the whole
// conversation up to that turn, under the same salt.
type reasonings struct {
	of   map[reasoningKey]*list.Element // of a *reasoning
	used list.List                      // the one used last first
	size int                            // bytes
}

type reasoningKey struct {
	salt Salt
	said Digest
}

type reasoning struct {
	reasoningKey
	text    string
	last    time.Duration // of its use, since tree.began
	session uint64        // that used it last; 0: none
}

const (
	// maxReasoning bounds the bytes of reasoning remembered; one that alone takes more than a quarter of it is not.
	maxReasoning = 16 << 20
	// reasoningBytes is what one takes besides its text.
	reasoningBytes = 300
)

// remember puts a reasoning in the place of what was known under its key.
func (m *reasonings) remember(r *reasoning) {
	m.drop(m.of[r.reasoningKey])
	if r.text == "" || r.bytes() > maxReasoning/4 {
		return
	}
	if m.of == nil {
		m.of = map[reasoningKey]*list.Element{}
	}
	r.text = strings.Clone(r.text)
	m.of[r.reasoningKey] = m.used.PushFront(r)
	for m.size += r.bytes(); m.size > maxReasoning; {
		m.drop(m.used.Back())
	}
}

func (m *reasonings) drop(e *list.Element) {
	if e == nil {
		return
	}
	r := m.used.Remove(e).(*reasoning)
	delete(m.of, r.reasoningKey)
	m.size -= r.bytes()
}

// dropAll drops those that gone says.
func (m *reasonings) dropAll(gone func(*reasoning) bool) {
	for e := m.used.Front(); e != nil; {
		next := e.Next()
		if gone(e.Value.(*reasoning)) {
			m.drop(e)
		}
		e = next
	}
}

// expire forgets what t's rule says.
func (m *reasonings) expire(t *tree) {
	now := time.Since(t.began)
	for e := m.used.Back(); e != nil && t.kept.Expired(int64(e.Value.(*reasoning).last), int64(now)); e = m.used.Back() {
		m.drop(e)
	}
}

func (r *reasoning) bytes() int { return reasoningBytes + len(r.text) }

// RememberReasoning notes what the model thought in the turn that a conversation ends with. It takes the place of what was
// noted before; "" leaves nothing.
func (h *History) RememberReasoning(s Salt, session uint64, said Digest, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.exact {
		h.reasonings.remember(&reasoning{reasoningKey{s, said}, text, time.Since(h.began), session})
	}
}

// Reasoning is what the model thought in the turn that a conversation ends with; "" if that is not known.
func (h *History) Reasoning(s Salt, session uint64, said Digest) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reasonings.expire(&h.tree)
	e := h.reasonings.of[reasoningKey{s, said}]
	if e == nil {
		return ""
	}
	r := e.Value.(*reasoning)
	r.last, r.session = time.Since(h.began), session
	h.reasonings.used.MoveToFront(e)
	return r.text
}
