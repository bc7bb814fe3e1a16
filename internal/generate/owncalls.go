package generate

import (
	"crypto/rand"
	"encoding/hex"
	"maps"
	"sync"

	"hearth/internal/dialect"
)

// ownCalls are the calls that a choice makes.
type ownCalls struct {
	*reply
	started, complete int
	open              bool // one has its name and no end, or was begun by a forced opening

	// Of the call read last:
	name string
	id   string // as the client is told; "": whatever the API gives it
	args []byte

	known map[string]bool // ids of the calls of the conversation and of this choice; nil: not looked at
}

// start begins a call.
func (k *ownCalls) start(p dialect.Piece) {
	k.name, k.args, k.open = p.Text, nil, true
	k.started++
	k.id = k.callID(p.ID)
}

// callID is the client's id of a call that the model has given an id of its own, if any. The model's own is best: it comes
// back in the next turn even if nothing is remembered. Where that cannot be, or may still come behind the arguments, it is
// remembered under another.
func (k *ownCalls) callID(own string) string {
	form := &k.m.forms[0]
	if !form.has(callsWithID) {
		return ""
	}
	if form.ids.ForClients(own, k.name) && !k.taken(own) {
		k.known[own] = true
		return own
	}
	k.id = newCallID()
	k.rememberID(own)
	return k.id
}

// taken tells whether a call of the conversation or this choice has an id.
func (k *ownCalls) taken(id string) bool {
	if k.known == nil {
		k.known = map[string]bool{}
		for _, c := range callsOf(k.r.Messages) {
			k.known[c.ID] = true
		}
	}
	return k.known[id]
}

// rememberID notes what the model calls the call being read.
func (k *ownCalls) rememberID(own string) {
	if k.id != "" && own != "" {
		k.m.history.RememberCall(k.p.salt, k.id, own)
	}
}

// newCallID makes an id for a client.
func newCallID() string {
	var b [12]byte
	rand.Read(b[:]) // never fails
	return "call_" + hex.EncodeToString(b[:])
}

// repairs counts what parsers put right in calls, by kind.
type repairs struct {
	mu     sync.Mutex
	counts map[string]int64
}

func (r *repairs) count(kind dialect.Repair) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[string]int64{}
	}
	r.counts[string(kind)]++
}

// all are the counts so far.
func (r *repairs) all() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.counts)
}
