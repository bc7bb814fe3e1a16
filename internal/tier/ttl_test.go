package tier

import (
	"testing"
	"testing/synctest"
	"time"
)

// What nobody used for the time it may stay goes, while the folder is open and when it is opened again; what was used stays.
func TestTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		hour := func(o *Options) { o.TTL = time.Hour }
		d := open(t, dir, hour)
		hot, seen, cold := elems("read from here now and then"), elems("in memory, and used there"), elems("never used again")
		fork := append(elems("read from here now"), elems(" and never on this way")...)
		d.put(path(hot, 0, nil))
		d.put(path(fork, 0, nil))
		d.put(path(seen, mostUses, nil))
		d.put(path(cold, 0, nil))
		time.Sleep(40 * time.Minute)
		d.fetch(hot, 0)
		d.Touch(seen, path(seen, mostUses, nil).Uses)
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		for key, want := range map[string]int{"read from here now and then": 6, "in memory, and used there": 6, "never used again": 0} {
			if m := d.Match(elems(key)); m.Pages() != want {
				t.Errorf("%q: %d pages are left, want %d", key, m.Pages(), want)
			}
		}
		if m := d.Match(fork); m.Pages() != 5 {
			t.Errorf("%d pages of a path of which the beginning was used, want that", m.Pages())
		}
		d.check()
		d.close()

		time.Sleep(20 * time.Minute)
		d = open(t, dir, hour)
		if m := d.Match(hot); m.Pages() != 6 {
			t.Errorf("50 minutes after its use %d pages are left", m.Pages())
		}
		d.close()
		time.Sleep(2 * time.Hour)
		d = open(t, dir, hour)
		if s := d.Stats(); s.Entries != 0 || len(d.files()) != 0 || s.Errors != 0 {
			t.Errorf("after two hours: %+v, %d files", s, len(d.files()))
		}
		d.close()
		if lines := d.Take(); lines != nil {
			t.Error(lines)
		}
	})
}
