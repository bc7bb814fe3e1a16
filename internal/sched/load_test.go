package sched

import (
	"fmt"
	"slices"

	"hearth/internal/kv"
)

// fakeDisk is what the simulation keeps of pages that leave memory: per path to the end of a page and group, what its
// positions held. It answers late, and sometimes less than it has, or never.
type fakeDisk struct {
	m     *sim
	pages map[string][][]uint64
	loads []*fakeLoad
}

type fakeLoad struct {
	q    *Seq
	next int // page
}

func pathKey(key []kv.Elem) string { return fmt.Sprint(key) }

// keep takes what it sees of a branch.
func (d *fakeDisk) keep(b kv.Branch) bool {
	for i := range b.Uses {
		at := pathKey(b.Key[:(i+1)*d.m.geo.PageTokens])
		if d.pages[at] == nil {
			d.pages[at] = make([][]uint64, len(b.Pages))
		}
		for g := range b.Pages {
			if page := b.Pages[g][i]; page != 0 {
				d.pages[at][g] = slices.Clone(d.m.pages[g][page])
			}
		}
	}
	return d.m.r.IntN(2) == 0
}

// stored gives page i of a path, nil if it is not there.
func (d *fakeDisk) stored(key []kv.Elem, i int) [][]uint64 {
	if end := (i + 1) * d.m.geo.PageTokens; end <= len(key) {
		return d.pages[pathKey(key[:end])]
	}
	return nil
}

func (d *fakeDisk) ask(q *Seq, cached int) bool {
	d.m.Asked++
	if d.stored(q.Key, cached/d.m.geo.PageTokens) == nil || d.m.r.IntN(5) == 0 {
		return false
	}
	d.loads = append(d.loads, &fakeLoad{q, cached / d.m.geo.PageTokens})
	return true
}

// move brings some pages of some loads into the tree.
func (d *fakeDisk) move() error {
	var err error
	d.loads = slices.DeleteFunc(d.loads, func(l *fakeLoad) bool {
		if d.m.live[l.q.ID] == nil { // it was cancelled
			return true
		}
		for d.m.r.IntN(3) > 0 {
			page := d.stored(l.q.Key, l.next)
			ok := page != nil
			if ok {
				ok, err = d.m.s.Prefix().InsertPage(l.q.Key, l.next, 1, func(g int) bool { return page[g] != nil }, func(g int, id kv.PageID) error {
					d.m.pages[g][id] = slices.Clone(page[g])
					return nil
				})
			}
			if !ok || d.m.r.IntN(30) == 0 {
				d.m.s.Loaded(l.q, d.m.r.IntN(4) == 0)
				return true
			}
			d.m.Loaded++
			l.next++
		}
		return false
	})
	return err
}
