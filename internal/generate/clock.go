package generate

import (
	"container/list"
	"crypto/sha256"
	"sync"
	"time"
)

// clocks keeps the time at which conversations began. Templates print dates; the date of a conversation must not change
// while it goes on, or at midnight every prompt would start anew.
type clocks struct {
	mu    sync.Mutex
	began map[[sha256.Size]byte]*list.Element // of beginning
	used  list.List                           // the last one used in front
}

// maxClocks is how many conversations are remembered; the one not heard of for longest is forgotten.
const maxClocks = 4096

type beginning struct {
	key [sha256.Size]byte
	at  time.Time
}

// of is the clock of a conversation, which stands still at the time of its first request. Conversations are told apart by
// their system text and first turn; one without an answer begins now.
func (c *clocks) of(turns []turn, now func() time.Time) func() time.Time {
	if now == nil {
		now = time.Now
	}
	h := sha256.New()
	answered, spoken := false, false
	for i := range turns {
		t := &turns[i]
		answered = answered || t.role == roleAssistant
		if !spoken {
			h.Write([]byte(t.role + "\x00" + t.text + "\x00"))
			spoken = t.role != roleSystem
		}
	}
	b := beginning{at: now()}
	h.Sum(b.key[:0])
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.began[b.key]; ok {
		if known := e.Value.(*beginning); answered {
			b.at = known.at
		} else {
			known.at = b.at
		}
		c.used.MoveToFront(e)
	} else {
		if c.began == nil {
			c.began = map[[sha256.Size]byte]*list.Element{}
		}
		c.began[b.key] = c.used.PushFront(&beginning{b.key, b.at})
		if c.used.Len() > maxClocks {
			delete(c.began, c.used.Remove(c.used.Back()).(*beginning).key)
		}
	}
	return func() time.Time { return b.at }
}
