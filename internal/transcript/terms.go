package transcript

import "time"

// Terms bound what a History keeps beyond its share of memory, as kv.Terms do for the prefix tree. Zero fields do not.
type Terms struct {
	TTL      time.Duration // what was not used for so long is forgotten
	Sessions int           // of more, what the one not heard of longest was the last to use is forgotten
}

// expire forgets what has not been used for long. It is called when somebody asks: nothing expired is ever found. Called
// with mu held, like all here.
func (h *History) expire() {
	if h.terms.TTL <= 0 {
		return
	}
	now := time.Since(h.began)
	for p := h.used.newer; p != &h.used && now-p.last >= h.terms.TTL; p = h.used.newer {
		h.drop(p)
	}
}

// visit notes a request of a session, and forgets another if those are too many.
func (h *History) visit(session uint64) {
	if session == 0 || h.terms.Sessions <= 0 {
		return
	}
	if h.sessions == nil {
		h.sessions = map[uint64]int64{}
	}
	h.requests++
	h.sessions[session] = h.requests
	if len(h.sessions) <= h.terms.Sessions {
		return
	}
	oldest, last := session, h.requests
	for id, at := range h.sessions {
		if at < last {
			oldest, last = id, at
		}
	}
	delete(h.sessions, oldest)
	h.forgetSession(oldest)
}

// forgetSession drops the ends of conversations that a session was the last to use. Whoever uses a piece uses those above
// it, so they come later in the ring.
func (h *History) forgetSession(session uint64) {
	for p := h.used.newer; p != &h.used; {
		after := p.newer
		if p.session == session && len(p.next) == 0 {
			h.drop(p)
		}
		p = after
	}
}
