package generate

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

func ofFile(salt, file int) seenFile {
	return seenFile{[16]byte{byte(salt)}, [32]byte{byte(file), byte(file >> 8)}}
}

// TestDigests: a file is known under its salt alone, until nobody has used it for long, it is one too many, or it is forgotten.
func TestDigests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDigests(time.Hour)
		known := func(salt, file int, want bool) {
			t.Helper()
			digest, ok := d.find(ofFile(salt, file))
			if ok != want || ok && digest != [32]byte{byte(file), 5} {
				t.Errorf("file %d under salt %d: known %t, want %t, digest %x", file, salt, ok, want, digest[:3])
			}
		}
		add := func(salt, file int) { d.add(ofFile(salt, file), [32]byte{byte(file), 5}) }
		add(1, 1)
		add(2, 2)
		known(1, 1, true)
		known(2, 1, false)
		known(1, 2, false)
		time.Sleep(40 * time.Minute)
		known(1, 1, true)
		time.Sleep(40 * time.Minute)
		known(2, 2, false)
		known(1, 1, true)
		add(2, 3)
		d.forget(func(salt [16]byte) bool { return salt == [16]byte{2} })
		known(2, 3, false)
		known(1, 1, true)
		d.remove(ofFile(1, 1))
		known(1, 1, false)
		for i := range mostDigests + 1 {
			add(1, i)
			add(1, i) // again is no more
		}
		known(1, 0, false)
		known(1, 1, true)
		if d.used.Len() != mostDigests || len(d.of) != mostDigests {
			t.Errorf("%d and %d are remembered", d.used.Len(), len(d.of))
		}
	})
}

// TestDigestsKept: what is remembered comes back in another process, in the order of use and with its time.
func TestDigestsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDigests(time.Hour)
		for i := range 3 {
			d.add(ofFile(i, i), [32]byte{byte(i)})
			time.Sleep(20 * time.Minute)
		}
		again := newDigests(time.Hour) // the first one's hour is over
		if err := again.load(d.save()); err != nil || again.used.Len() != 2 {
			t.Fatalf("%d come back, %v", again.used.Len(), err)
		}
		if digest, ok := again.find(ofFile(1, 1)); !ok || digest != [32]byte{1} {
			t.Errorf("known %t, %x", ok, digest)
		}
		time.Sleep(45 * time.Minute)
		if _, ok := again.find(ofFile(2, 2)); ok {
			t.Error("it is kept for longer than an hour")
		}
		if err := again.load(d.save()); err != nil || again.used.Len() != 1 {
			t.Errorf("what is remembered gives way: %d, %v", again.used.Len(), err)
		}
	})
}

// FuzzDigestsFile: any file is taken whole or refused, and what was taken is spelled again.
func FuzzDigestsFile(f *testing.F) {
	d := newDigests(0)
	f.Add(d.save())
	d.add(ofFile(1, 2), [32]byte{3})
	d.add(ofFile(2, 2), [32]byte{4})
	f.Add(d.save())
	f.Add(append(d.save(), d.save()[len(digestsMagic):]...)) // the same again
	f.Add(d.save()[:50])
	f.Fuzz(func(t *testing.T, b []byte) {
		d, again := newDigests(0), newDigests(0)
		if d.load(b) != nil {
			if len(d.of) > 0 {
				t.Error("a part was taken")
			}
			return
		}
		if d.used.Len() != len(d.of) || len(d.of) > min(len(b)/digestBytes, mostDigests) {
			t.Errorf("%d and %d of %d bytes", d.used.Len(), len(d.of), len(b))
		}
		if err := again.load(d.save()); err != nil || !bytes.Equal(again.save(), d.save()) {
			t.Errorf("another comes back: %v", err)
		}
	})
}
