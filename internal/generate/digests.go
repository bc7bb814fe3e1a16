package generate

import (
	"bytes"
	"container/list"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"hearth/internal/retention"
	"hearth/internal/transcript"
)

// digests remember what files of pictures were prepared to: an image whose digest is known is decoded only if the tower has to
// run. It is forgotten as histories are, and no salt learns from another what was sent.
type digests struct {
	mu   sync.Mutex
	kept retention.Rule // in milliseconds of Unix time
	of   map[seenFile]*list.Element
	used list.List // of fileDigest, the one used last first
}

// seenFile is a file, and how it was looked at: a picture's key and recipe.
type seenFile struct {
	salt transcript.Salt
	file [32]byte
}

// fileDigest is that of the prepared picture.
type fileDigest struct {
	seenFile
	digest [32]byte
	last   int64 // of its use
}

// mostDigests bounds how many are remembered, of about 250 bytes each.
const mostDigests = 1 << 14

func newDigests(ttl time.Duration) *digests {
	return &digests{kept: retention.Rule{TTL: ttl.Milliseconds()}, of: map[seenFile]*list.Element{}}
}

// find looks a file up.
func (d *digests) find(f seenFile) (digest [32]byte, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.expire()
	e := d.of[f]
	if e == nil {
		return digest, false
	}
	d.used.MoveToFront(e)
	known := e.Value.(*fileDigest)
	known.last = now
	return known.digest, true
}

// add remembers what a file has become.
func (d *digests) add(f seenFile, digest [32]byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drop(d.of[f])
	d.put(&fileDigest{f, digest, d.expire()})
}

// put adds one that is not there, as the one used last.
func (d *digests) put(known *fileDigest) {
	d.of[known.seenFile] = d.used.PushFront(known)
	if d.used.Len() > mostDigests {
		d.drop(d.used.Back())
	}
}

func (d *digests) drop(e *list.Element) {
	if e != nil {
		delete(d.of, d.used.Remove(e).(*fileDigest).seenFile)
	}
}

// remove forgets a file.
func (d *digests) remove(f seenFile) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drop(d.of[f])
}

// expire forgets what was not used for long, and gives the time.
func (d *digests) expire() int64 {
	now := time.Now().UnixMilli()
	for e := d.used.Back(); e != nil && d.kept.Expired(e.Value.(*fileDigest).last, now); e = d.used.Back() {
		d.drop(e)
	}
	return now
}

// forget drops what is meant.
func (d *digests) forget(meant func(salt transcript.Salt) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for f, e := range d.of {
		if meant(f.salt) {
			d.drop(e)
		}
	}
}

// digestsMagic begins the file, and counts its forms. What follows are all, the one used longest ago first: the time of its use,
// 64 bits, little-endian, its salt, what names the file, and the digest.
const (
	digestsMagic = "hearthP1"
	digestBytes  = 8 + len(transcript.Salt{}) + 2*32
)

// save spells all that is remembered.
func (d *digests) save() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expire()
	b := []byte(digestsMagic)
	for e := d.used.Back(); e != nil; e = e.Prev() {
		known := e.Value.(*fileDigest)
		b = binary.LittleEndian.AppendUint64(b, uint64(known.last))
		b = append(append(append(b, known.salt[:]...), known.file[:]...), known.digest[:]...)
	}
	return b
}

// load takes in what save has spelled, unless something is remembered already.
func (d *digests) load(b []byte) error {
	b, ok := bytes.CutPrefix(b, []byte(digestsMagic))
	if !ok || len(b)%digestBytes != 0 {
		return errors.New("read digests of pictures: it is not a file of them, or of another version")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.of) > 0 {
		return nil
	}
	for ; len(b) > 0; b = b[digestBytes:] {
		known := &fileDigest{last: min(int64(binary.LittleEndian.Uint64(b)), time.Now().UnixMilli())}
		rest := b[8:]
		rest = rest[copy(known.salt[:], rest):]
		copy(known.digest[:], rest[copy(known.file[:], rest):])
		d.drop(d.of[known.seenFile])
		d.put(known)
	}
	d.expire()
	return nil
}
