package catalog

import (
	"cmp"
	"slices"
	"time"
)

// The policy of loads on demand: which model is loaded next, and which go for it. It is pure: it sees what there is to know of
// the models and the time, and says what is to be done.
//
// One model is loaded at a time, and of those that are asked for the one whose first request has waited longest. Where there is
// room it is loaded at once. Where there is none, models that nobody uses go, the least recently used first. That is a switch. A
// switch costs everybody time, so that there is at most one in a residence, unless there are few requests in all: one person who
// goes from model to model takes nothing from anybody. Where models that are in use have to go, those go that have been here
// longest, and a residence at least: they take no new requests, which wait for their model's next turn, and go when those that
// run have ended.

const (
	// residence is the least time between two switches, and the least time that a model in use is left before it has to go.
	residence = 30 * time.Second
	// few is how many requests there may be in all, so that those that wait get a model at once for which others go that nobody
	// uses.
	few = 4
)

// phase is what has become of a model that is loaded on demand.
type phase uint8

const (
	absent phase = iota
	loads
	resides
	leaves
)

// standing is how a model stands.
type standing struct {
	need    int64 // bytes that it takes, or would
	free    int64 // bytes that are free for it
	spare   int64 // of those, that only its prompt cache holds
	phase   phase
	users   int       // requests that run on it
	waiting int       // requests that wait for it
	first   time.Time // since when the first of those does
	loaded  time.Time
	used    time.Time // when a request ended last
	until   time.Time // when it goes if nobody uses it; zero: when its memory is needed
	drains  bool      // it takes no new requests
}

// idle reports whether nobody would miss it.
func (s *standing) idle() bool {
	return s.phase == resides && s.users == 0 && (s.waiting == 0 || s.drains)
}

// claim orders models that nobody uses: one that has been told to go is first to, one that stays until its memory is needed
// last.
func (s *standing) claim() (n int) {
	if !s.drains {
		n += 2
	}
	if s.until.IsZero() {
		n++
	}
	return n
}

// decision is what is to be done. Models are numbers of standings; those that are not in drains take requests again.
type decision struct {
	load   int   // -1: none
	never  []int // that fit beside nothing
	unload []int
	drains []int
	parts  bool      // unload makes room for another model: it is a switch
	wake   time.Time // when to ask again, if nothing changes before; zero: then only
}

// decide says what is to be done now, with so many bytes that only prompt caches of models that stay hold, and the last switch at
// that time.
func decide(all []standing, spare int64, last, now time.Time) decision {
	d := decision{load: -1}
	busy := false
	room := spare
	for i := range all {
		s := &all[i]
		busy = busy || s.phase == loads || s.phase == leaves
		if s.phase == resides {
			room += s.need
		}
		switch {
		case s.until.IsZero() || !s.idle() || s.waiting > 0:
		case s.until.After(now):
			d.wakeAt(s.until)
		default:
			d.unload, busy = append(d.unload, i), true
		}
	}
	next := -1
	for i := range all {
		s := &all[i]
		switch {
		case s.phase != absent || s.waiting == 0:
		case s.need > s.free+room && !busy: // what leaves would be room, too
			d.never = append(d.never, i)
		case next < 0 || s.first.Before(all[next].first):
			next = i
		}
	}
	if busy {
		d.drains = draining(all) // as it was
		return d
	}
	switch {
	case next < 0:
	case all[next].need <= all[next].free:
		d.load = next
	default:
		d.makeRoom(all, next, all[next].need-all[next].free, spare, last, now)
	}
	return d
}

func (d *decision) wakeAt(t time.Time) {
	if d.wake.IsZero() || t.Before(d.wake) {
		d.wake = t
	}
}

func draining(all []standing) (list []int) {
	for i := range all {
		if all[i].drains {
			list = append(list, i)
		}
	}
	return list
}

// makeRoom decides what goes for next, which lacks so many bytes.
func (d *decision) makeRoom(all []standing, next int, lacks, spare int64, last, now time.Time) {
	var idle, busy []int
	requests := 0
	for i := range all {
		s := &all[i]
		requests += s.users + s.waiting
		switch {
		case s.idle():
			idle = append(idle, i)
		case s.phase == resides:
			busy = append(busy, i)
			spare += s.spare
		}
	}
	slices.SortStableFunc(idle, func(a, b int) int {
		x, y := &all[a], &all[b]
		return cmp.Or(cmp.Compare(x.claim(), y.claim()), x.used.Compare(y.used))
	})
	due := last.Add(residence)
	chosen, lacks := choose(all, idle, lacks)
	if lacks <= spare && len(chosen) == 0 { // caches shrink for it
		d.load = next
		return
	}
	if lacks <= spare {
		if due.After(now) && requests > few {
			d.wakeAt(due)
			return
		}
		d.unload, d.parts = append(d.unload, chosen...), true
		return
	}
	slices.SortStableFunc(busy, func(a, b int) int { return all[a].loaded.Compare(all[b].loaded) })
	chosen, _ = choose(all, busy, lacks)
	for _, i := range chosen {
		if t := all[i].loaded.Add(residence); t.After(due) {
			due = t
		}
	}
	if due.After(now) {
		d.wakeAt(due)
		return
	}
	d.drains = chosen
}

// choose takes models of a list, in its order, until they have so many bytes, and leaves those out that the others make needless.
// It gives what is lacking still.
func choose(all []standing, list []int, lacks int64) (chosen []int, still int64) {
	for _, i := range list {
		if lacks > 0 {
			chosen, lacks = append(chosen, i), lacks-all[i].need
		}
	}
	chosen = slices.DeleteFunc(chosen, func(i int) bool {
		needless := lacks+all[i].need <= 0
		if needless {
			lacks += all[i].need
		}
		return needless
	})
	return chosen, lacks
}
