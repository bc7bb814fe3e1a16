package access

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// clock is a time that tests move on.
type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.ns.Load()) }
func (c *clock) advance(d time.Duration) { c.ns.Add(int64(d)) }

// Exactly as many requests pass as may, whoever races: 32 clients of one bucket, then as many buckets, for limits that do not
// divide a minute too.
func TestRateIsExact(t *testing.T) {
	for _, most := range []int{1, 7, 60, 601} {
		c := &clock{}
		r := NewRate(c.now)
		race := func(client func(i int) string) int64 {
			var passed atomic.Int64
			var wg sync.WaitGroup
			for i := range 32 {
				wg.Go(func() {
					for range most + 3 {
						if r.Take(client(i), most).OK {
							passed.Add(1)
						}
					}
				})
			}
			wg.Wait()
			return passed.Load()
		}
		one := func(int) string { return "one" }
		if got := race(one); got != int64(most) {
			t.Errorf("limit %d: %d passed", most, got)
		}
		if got := race(func(i int) string { return fmt.Sprint(i) }); got != int64(32*most) {
			t.Errorf("limit %d, 32 clients: %d passed", most, got)
		}
		// A nanosecond before a request is given back none passes, and then one.
		next := r.Take("one", most).Next
		c.advance(next - 1)
		if s := r.Take("one", most); s.OK || s.Next != 1 {
			t.Errorf("limit %d: early: %+v", most, s)
		}
		c.advance(1)
		if got := race(one); got != 1 {
			t.Errorf("limit %d: after %v %d passed", most, next, got)
		}
		c.advance(time.Minute)
		if got := race(one); got != int64(most) {
			t.Errorf("limit %d: after a minute %d passed", most, got)
		}
	}
}

// Over any number of minutes, however they are cut up, as many pass as may: a minute's at the start, and those given back.
func TestRateOverTime(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, most := range []int{2, 7, 11, 1000} {
		c := &clock{}
		r := NewRate(c.now)
		passed := 0
		for r.Take("x", most).OK {
			passed++
		}
		var gone time.Duration
		for gone < 10*time.Minute {
			d := time.Duration(rnd.Int64N(int64(time.Minute / time.Duration(most))))
			c.advance(d)
			gone += d
			for r.Take("x", most).OK {
				passed++
			}
		}
		if want := most + int(int64(gone)*int64(most)/int64(time.Minute)); passed != want {
			t.Errorf("limit %d: %d passed in %v, want %d", most, passed, gone, want)
		}
	}
}

func TestStanding(t *testing.T) {
	c := &clock{}
	r := NewRate(c.now)
	for i, want := range []Standing{{true, 3, 2, 0, 20 * time.Second}, {true, 3, 1, 0, 40 * time.Second}, {true, 3, 0, 20 * time.Second, time.Minute},
		{false, 3, 0, 20 * time.Second, time.Minute}} {
		if got := r.Take("x", 3); got != want {
			t.Errorf("%d: %+v, want %+v", i, got, want)
		}
	}
	c.advance(20 * time.Second)
	if got, want := r.Take("x", 3), (Standing{true, 3, 0, 20 * time.Second, time.Minute}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	// A limit that changes counts at once, and a clock that goes back gives nothing.
	if got := r.Take("x", 6); !got.OK || got.Left != 2 {
		t.Errorf("a higher limit: %+v", got)
	}
	if got := r.Take("x", 1); got.OK {
		t.Errorf("a lower limit: %+v", got)
	}
	c.advance(-time.Hour)
	if got := r.Take("x", 1); got.OK {
		t.Errorf("a clock that went back: %+v", got)
	}
	c.advance(time.Minute)
	if got := r.Take("x", 1); !got.OK {
		t.Errorf("a minute after that: %+v", got)
	}
}

// Clients that nobody has heard of for a minute are let go, and what is beyond the bound shares a bucket.
func TestBucketsAreBounded(t *testing.T) {
	c := &clock{}
	r := NewRate(c.now)
	for i := range mostBuckets + 10 {
		if s := r.Take(fmt.Sprint(i), 10); !s.OK {
			t.Fatalf("client %d: %+v", i, s)
		}
	}
	if len(r.of) != mostBuckets+1 {
		t.Errorf("%d buckets", len(r.of))
	}
	if s := r.Take("one more", 10); s.OK {
		t.Errorf("those beyond have their own buckets: %+v", s)
	}
	c.advance(time.Minute)
	r.sweep = 0
	if s := r.Take("later", 10); !s.OK || len(r.of) != 1 {
		t.Errorf("%+v, %d buckets", s, len(r.of))
	}
}

func TestAddressID(t *testing.T) {
	same := [][2]string{{"2001:db8::1", "2001:db8::ffff:2"}, {"::ffff:192.0.2.1", "192.0.2.1"}, {"fe80::1%eth0", "fe80::2%eth1"}}
	for _, p := range same {
		if AddressID(netip.MustParseAddr(p[0])) != AddressID(netip.MustParseAddr(p[1])) {
			t.Errorf("%s and %s are two", p[0], p[1])
		}
	}
	if AddressID(netip.MustParseAddr("192.0.2.1")) == AddressID(netip.MustParseAddr("192.0.2.2")) {
		t.Error("two addresses are one")
	}
	if AddressID(netip.Addr{}) == "" {
		t.Error("none")
	}
}

func TestSlots(t *testing.T) {
	var s Slots
	var leaves []func()
	for range 2 {
		leave, full := s.Enter("a", 3, 2)
		if full != HasRoom {
			t.Fatal(full)
		}
		leaves = append(leaves, leave)
	}
	if _, full := s.Enter("a", 3, 2); full != FullClient {
		t.Errorf("a third of a client: %d", full)
	}
	b, full := s.Enter("b", 3, 2)
	if full != HasRoom {
		t.Fatal(full)
	}
	if _, full := s.Enter("c", 3, 2); full != FullServer {
		t.Errorf("a fourth of all: %d", full)
	}
	leaves[0]()
	leaves[0]() // once
	if _, full := s.Enter("a", 3, 2); full != HasRoom {
		t.Errorf("after one has left: %d", full)
	}
	b()
	if len(s.of) != 1 || s.all != 2 {
		t.Errorf("%v, %d", s.of, s.all)
	}
	var wg sync.WaitGroup
	var passed atomic.Int64
	for range 32 {
		wg.Go(func() {
			if _, full := s.Enter("d", 0, 5); full == HasRoom {
				passed.Add(1)
			}
		})
	}
	if wg.Wait(); passed.Load() != 5 {
		t.Errorf("%d at a time", passed.Load())
	}
}
