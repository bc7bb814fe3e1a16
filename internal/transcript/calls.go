package transcript

import (
	"encoding/binary"
	"strings"
)

// callIDs remembers what the model itself called the calls that a client knows by other ids. Only ids made here are
// remembered, so nobody can name another's.
type callIDs struct {
	said  map[callKey]string
	order []callKey // as remembered; from next on the oldest, once it is full
	next  int
}

type callKey struct {
	salt Salt
	id   string // the client's
}

// maxCallIDs bounds the ids remembered, each about 200 bytes.
const maxCallIDs = 1 << 14

func (m *callIDs) remember(s Salt, client, model string) {
	if m.said == nil {
		m.said = map[callKey]string{}
	}
	k := callKey{s, client}
	if len(m.order) < maxCallIDs {
		m.order = append(m.order, k)
	} else {
		delete(m.said, m.order[m.next])
		m.order[m.next] = k
		m.next = (m.next + 1) % maxCallIDs
	}
	m.said[k] = strings.Clone(model)
}

func (m *callIDs) forgetSalt(s Salt) {
	for k := range m.said { // its place in order is taken by another in time
		if k.salt == s {
			delete(m.said, k)
		}
	}
}

// save appends the ids to a file, see historyMagic.
func (m *callIDs) save(b []byte) []byte {
	n := len(b)
	count := 0
	for i := range m.order {
		k := m.order[(m.next+i)%len(m.order)]
		if model, ok := m.said[k]; ok {
			count++
			b = appendText(appendText(append(b, k.salt[:]...), k.id), model)
		}
	}
	return append(binary.AppendUvarint(b[:n:n], uint64(count)), b[n:]...)
}

func (m *callIDs) load(r *historyReader) {
	for range r.number(maxCallIDs) {
		var s Salt
		copy(s[:], r.take(len(s)))
		m.remember(s, r.text(), r.text())
	}
}
