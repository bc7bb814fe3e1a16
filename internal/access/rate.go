package access

import (
	"maps"
	"net/netip"
	"sync"
	"time"
)

// Rate counts requests a minute, in a bucket for each client: of so many tokens, which fill up in a minute, as a request takes
// one. So a client that was silent may send a minute's requests at once, and then one whenever one of them is given back.
type Rate struct {
	now func() time.Time

	mu    sync.Mutex
	of    map[string]*bucket
	sweep int // how many there may be before those that are full again are let go
}

// bucket counts in parts of a request: a nanosecond gives back as many as there may be requests a minute, and a request takes a
// minute's nanoseconds. Nothing is rounded, so exactly as many requests pass as may.
type bucket struct {
	most int64 // requests a minute
	used int64 // parts that are not given back
	seen time.Time
}

const (
	// mostRate is the most requests a minute that a limit can be, and the most of any number of a key: the parts of a bucket fit
	// into 63 bits, twice.
	mostRate = 1 << 26
	// mostBuckets bounds the clients that are told apart. Those beyond share a bucket.
	mostBuckets = 1 << 16
	// firstSweep is how many buckets there are before one is let go.
	firstSweep = 1024
)

// NewRate counts by a clock; nil: time.Now.
func NewRate(now func() time.Time) *Rate {
	if now == nil {
		now = time.Now
	}
	return &Rate{now: now, of: map[string]*bucket{}, sweep: firstSweep}
}

// Standing is how a client stands after a request.
type Standing struct {
	OK    bool // the request may be answered
	Limit int  // requests a minute
	Left  int  // requests that may come at once
	Next  time.Duration
	Reset time.Duration // until the bucket is full
}

// Take counts a request of a client, if it may have one more. most is how many a minute it may send.
func (r *Rate) Take(client string, most int) Standing {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	b := r.of[client]
	if b == nil {
		b = r.add(client, now)
	}
	b.refill(now, int64(min(most, mostRate)))
	s := Standing{OK: b.used+int64(time.Minute) <= b.most*int64(time.Minute), Limit: int(b.most)}
	if s.OK {
		b.used += int64(time.Minute)
	}
	free := b.most*int64(time.Minute) - b.used
	s.Left, s.Reset = int(free/int64(time.Minute)), up(b.used, b.most)
	if s.Left == 0 {
		s.Next = up(int64(time.Minute)-free, b.most)
	}
	return s
}

// up is a/b rounded up, as time.
func up(a, b int64) time.Duration { return time.Duration((a + b - 1) / b) }

// refill gives back what has been given back since the bucket was looked at, and sets how many requests it has.
func (b *bucket) refill(now time.Time, most int64) {
	passed := min(max(now.Sub(b.seen), 0), time.Minute)
	b.used = max(b.used-int64(passed)*b.most, 0)
	b.seen = now
	if most != b.most { // the key's limit has changed: what is used stays used
		b.most, b.used = most, min(b.used, most*int64(time.Minute))
	}
}

// full reports a bucket that is as if nobody had asked.
func (b *bucket) full(now time.Time) bool {
	return b.used <= int64(min(now.Sub(b.seen), time.Minute))*b.most
}

// add makes a bucket, after those that are full again have gone.
func (r *Rate) add(client string, now time.Time) *bucket {
	if len(r.of) >= r.sweep {
		maps.DeleteFunc(r.of, func(_ string, b *bucket) bool { return b.full(now) })
		r.sweep = max(firstSweep, 2*len(r.of))
	}
	if len(r.of) >= mostBuckets {
		client = "" // of all for whom there is no place
		if b := r.of[client]; b != nil {
			return b
		}
	}
	b := &bucket{seen: now}
	r.of[client] = b
	return b
}

// AddressID is the name of a client who is known by an address alone. A machine has a whole /64 of IPv6, and is one client.
func AddressID(a netip.Addr) string {
	a = a.Unmap()
	if a.Is6() {
		p, _ := a.WithZone("").Prefix(64) // no more bits than it has
		a = p.Addr()
	}
	return "address " + a.String()
}

// Slots count the requests that are answered at a time, of each client and of all.
type Slots struct {
	mu  sync.Mutex
	all int
	of  map[string]int
}

// Enter takes a place, if there is one: of most for all, and of own for the client; 0 is any. leave gives it back, once. It is
// nil where there is none.
func (s *Slots) Enter(client string, most, own int) (leave func(), full Full) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case own > 0 && s.of[client] >= own:
		return nil, FullClient
	case most > 0 && s.all >= most:
		return nil, FullServer
	}
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.all++
	s.of[client]++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.of[client]--; s.of[client] == 0 {
			delete(s.of, client)
		}
	}), HasRoom
}

// Full says where there is no room for a request.
type Full uint8

const (
	HasRoom    Full = iota
	FullClient      // it has as many as it may
	FullServer      // all together have
)
