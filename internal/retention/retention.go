// Package retention is the rule by which what is kept for later requests is forgotten although there is room for it. What
// keeps texts with their ids (transcript) and what keeps keys and values (kv) go by the same rule.
package retention

// Rule says what has been kept too long and whose things go when there are too many sessions. The zero Rule keeps
// everything. One goroutine at a time calls it.
type Rule struct {
	TTL      int64 // how long something is kept that nobody uses, in the unit of the caller's clock; 0: for ever
	Sessions int   // the most sessions that are told apart; 0: none are

	visits int64 // of all sessions
	known  map[uint64]session
}

// session is what is known of one.
type session struct {
	visits int
	last   int64 // Rule.visits at the last of them
}

// Expired reports whether what was last used at one time is to be forgotten at a later one.
func (r *Rule) Expired(used, now int64) bool { return r.TTL > 0 && now-used >= r.TTL }

// Visit notes a request of a session and counts the session's requests. If that is one session too many, gone is the one that was
// least recently used: the caller forgets what it left. An id of 0 is no session, and a gone of 0 says that none has to go.
func (r *Rule) Visit(id uint64) (visits int, gone uint64) {
	if id == 0 || r.Sessions <= 0 {
		return 0, 0
	}
	if r.known == nil {
		r.known = map[uint64]session{}
	}
	r.visits++
	s := session{r.known[id].visits + 1, r.visits}
	r.known[id] = s
	if len(r.known) <= r.Sessions {
		return s.visits, 0
	}
	last := r.visits
	for other, s := range r.known {
		if s.last < last {
			gone, last = other, s.last
		}
	}
	delete(r.known, gone)
	return s.visits, gone
}

// Known counts the sessions that are told apart.
func (r *Rule) Known() int { return len(r.known) }

// Clear forgets all sessions.
func (r *Rule) Clear() { r.known = nil }
