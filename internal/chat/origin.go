package chat

import "hash/fnv"

// Origin says where a request comes from. It decides who waits for whom, what is kept and what is logged, never what the
// answer is.
type Origin struct {
	ID         string   // of the request, as logs and status pages name it
	Session    string   // conversation or agent, as its client names it; "" not known
	Caller     [16]byte // digest of the key it came with; zero where there is no other
	Salt       [16]byte // what is stored under one does not help requests under another; zero: one for all
	Background bool     // nobody waits for it: others go first
	Marked     bool     // the client marked its prompt as worth keeping
}

// Party is a number for the caller and its session: 0 if nothing is known of either. It is a hash: two parties with the
// same number share what each would have of the engine's time, no more.
func (o *Origin) Party() uint64 {
	if o.Session == "" && o.Caller == [16]byte{} {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write(o.Caller[:]) // a hash takes everything
	_, _ = h.Write([]byte(o.Session))
	return h.Sum64() | 1
}
