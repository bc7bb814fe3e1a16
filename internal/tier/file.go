package tier

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hearth/internal/kv"
	"hearth/internal/regular"
)

// A run's file, little endian:
//
//	0    magic
//	8    version, bytes of the header
//	16   uses, Unix time of the last use in seconds, clock then (8 bytes): changed in place, not under the checksum
//	32   fingerprint (32), id (16), id of the run it continues or 0 (16)
//	96   index of the first page, pages, tokens of a page, groups
//	112  bytes of a page, 8 per group
//	     per page: mask of the groups that are there, length of the tokens' spelling, checksums per group, spelling
//	     CRC-32C of everything from 32 on
//
// Then the pages: of each, the groups that are there.
const (
	magic   = "hearthKV"
	version = 1
	fixed   = 112 // header bytes before the groups
	counted = 32  // where the checksum starts
	suffix  = ".run"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type runID [16]byte

func (id runID) String() string { return hex.EncodeToString(id[:]) }

func (t *Tier) path(id runID) string { return filepath.Join(t.dir, id.String()+suffix) }

// file is what the writer needs of a file.
type file interface {
	io.Writer
	Close() error
}

func createFile(name string) (file, error) {
	return os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// errForeign means a file of another model, form or version of this program.
var errForeign = errors.New("it belongs to another model or version")

// headerBytes is the size of the header of pages whose spellings have so many bytes together.
func headerBytes(groups, pages, spelled int) int {
	return fixed + 8*groups + pages*(8+4*groups) + spelled + 4
}

// header writes a run's header.
func (t *Tier) header(r *run) []byte {
	geo := &t.opts.Geometry
	spelled := 0
	for i := range r.pages {
		spelled += len(r.pages[i].key)
	}
	n := headerBytes(len(geo.Groups), len(r.pages), spelled)
	le := binary.LittleEndian
	b := append(make([]byte, 0, n), magic...)
	b = le.AppendUint32(le.AppendUint32(b, version), uint32(n))
	b = append(b, r.counters()...)
	b = append(append(b, t.print[:]...), r.id[:]...)
	var up runID
	if r.parent != nil {
		up = r.parent.run.id
	}
	b = append(b, up[:]...)
	for _, v := range []int{r.pages[0].index, len(r.pages), geo.PageTokens, len(geo.Groups)} {
		b = le.AppendUint32(b, uint32(v))
	}
	for _, g := range geo.Groups {
		b = le.AppendUint64(b, uint64(g.PageBytes))
	}
	for i := range r.pages {
		p := &r.pages[i]
		b = le.AppendUint32(le.AppendUint32(b, p.mask), uint32(len(p.key)))
		for g := range geo.Groups {
			b = le.AppendUint32(b, p.sums[g])
		}
		b = append(b, p.key...)
	}
	return le.AppendUint32(b, crc32.Checksum(b[counted:], castagnoli))
}

// counters are the part of the header that changes.
func (r *run) counters() []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(r.uses))
	b = binary.LittleEndian.AppendUint32(b, uint32(r.when))
	return binary.LittleEndian.AppendUint64(b, uint64(r.used))
}

// form is what a header must match.
type form struct {
	geo   kv.Geometry
	print [32]byte
}

// readHeader reads the header of a file of size bytes. up is the run it continues. It fails on whatever this process
// would not have written, and never allocates more than the largest header.
func readHeader(r io.Reader, size int64, f *form) (out *run, up runID, err error) {
	le := binary.LittleEndian
	head := make([]byte, fixed)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, up, errors.New("it is too short")
	}
	groups, pages := len(f.geo.Groups), int(le.Uint32(head[100:]))
	switch {
	case string(head[:8]) != magic, le.Uint32(head[8:]) != version, [32]byte(head[32:64]) != f.print,
		int(le.Uint32(head[104:])) != f.geo.PageTokens, int(le.Uint32(head[108:])) != groups:
		return nil, up, errForeign
	case pages < 1 || pages > runPages:
		return nil, up, fmt.Errorf("it claims %d pages", pages)
	}
	n := int(le.Uint32(head[12:]))
	longest := headerBytes(groups, pages, pages*longestKey(f.geo.PageTokens))
	if n < headerBytes(groups, pages, 0) || n > longest || int64(n) > size {
		return nil, up, fmt.Errorf("it claims a header of %d bytes", n)
	}
	b := append(head, make([]byte, n-fixed)...)
	if _, err := io.ReadFull(r, b[fixed:]); err != nil {
		return nil, up, errors.New("it is too short")
	}
	if crc32.Checksum(b[counted:n-4], castagnoli) != le.Uint32(b[n-4:]) {
		return nil, up, errors.New("the checksum of its header is wrong")
	}
	out = &run{id: runID(b[64:80]), offset: int64(n), size: int64(n), written: true, pages: make([]page, pages)}
	out.uses, out.when = int(min(le.Uint32(b[16:]), mostUses)), int64(le.Uint32(b[20:]))
	if used := le.Uint64(b[24:]); used < 1<<40 {
		out.used = int64(used)
	}
	up = runID(b[80:96])
	b = b[:n-4]
	at := fixed
	for _, g := range f.geo.Groups {
		if int64(le.Uint64(b[at:])) != g.PageBytes {
			return nil, up, errForeign
		}
		at += 8
	}
	first := int(le.Uint32(b[96:]))
	for i := range out.pages {
		if at+8+4*groups > len(b) {
			return nil, up, errors.New("its header does not add up")
		}
		p := &out.pages[i]
		p.run, p.index, p.mask = out, first+i, le.Uint32(b[at:])
		spelled := int(le.Uint32(b[at+4:]))
		at += 8
		for g := range groups {
			p.sums = append(p.sums, le.Uint32(b[at:]))
			at += 4
			if p.mask&(1<<g) != 0 {
				out.size += f.geo.Groups[g].PageBytes
			}
		}
		if spelled > len(b)-at {
			return nil, up, errors.New("its header does not add up")
		}
		p.key = string(b[at : at+spelled])
		at += spelled
	}
	switch {
	case at != len(b):
		return nil, up, errors.New("its header does not add up")
	case out.size != size:
		return nil, up, fmt.Errorf("it has %d bytes, its header says %d", size, out.size)
	}
	return out, up, nil
}

// namedOdd is how many files that cannot be read are named when a tier opens.
const namedOdd = 10

// scan fills the index from the files there are.
func (t *Tier) scan() error {
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return err
	}
	found, parents := map[runID]*run{}, map[runID]runID{}
	var beyond []string
	spoiled := 0
	for _, e := range entries {
		name := e.Name()
		switch {
		case strings.HasSuffix(name, partSuffix): // left by a crash
			t.removeFiles([]string{filepath.Join(t.dir, name)})
			continue
		case !strings.HasSuffix(name, suffix):
			continue
		case len(found)+spoiled >= mostRead:
			beyond = append(beyond, filepath.Join(t.dir, name))
			continue
		}
		r, up, err := t.readRun(name)
		if err != nil {
			t.stats.Errors++
			if spoiled++; spoiled <= namedOdd {
				t.warnf("prefix cache: removed %s: %v", regular.Clip(filepath.Join(t.dir, name)), regular.Short(err))
			}
			t.removeFiles([]string{filepath.Join(t.dir, name)})
			continue
		}
		found[r.id], parents[r.id] = r, up
		t.clock = max(t.clock, r.used)
	}
	if spoiled > namedOdd {
		t.warnf("prefix cache: removed %d more files in %s that could not be read", spoiled-namedOdd, t.dir)
	}
	if len(beyond) > 0 {
		t.warnf("prefix cache: removed %d files in %s that are more than %d", len(beyond), t.dir, mostRead)
		t.removeFiles(beyond)
	}
	t.join(found, parents)
	return nil
}

func (t *Tier) readRun(name string) (*run, runID, error) {
	f, err := regular.OpenOwn(filepath.Join(t.dir, name), os.O_RDONLY)
	if err != nil {
		return nil, runID{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, runID{}, err
	}
	r, up, err := readHeader(f, st.Size(), &form{geo: t.opts.Geometry, print: t.print})
	if err == nil && r.id.String()+suffix != name {
		err = errors.New("it is not the run that its name says")
	}
	if now := time.Now().Unix(); err == nil && (r.when == 0 || r.when > now) {
		r.when = now
	}
	return r, up, err
}

// join links the runs that were found to those they continue. A run that continues one that is not there is removed.
func (t *Tier) join(found map[runID]*run, parents map[runID]runID) {
	var lost []string
	state := map[runID]uint8{} // 1: in progress, 2: linked, 3: lost
	var place func(id runID) bool
	place = func(id runID) bool {
		if state[id] != 0 {
			return state[id] == 2
		}
		state[id] = 1
		r, up := found[id], parents[id]
		ok := false
		if up == (runID{}) {
			ok = r.pages[0].index == 0
		} else if p := found[up]; p != nil && place(up) {
			if i := r.pages[0].index - 1 - p.pages[0].index; i >= 0 && i < len(p.pages) {
				r.parent, ok = &p.pages[i], true
			}
		}
		if ok = ok && t.link(r); ok {
			state[id] = 2
		} else {
			state[id] = 3
			lost = append(lost, t.path(id))
		}
		return ok
	}
	for id := range found {
		place(id)
	}
	if len(lost) > 0 {
		t.warnf("prefix cache: removed %d files in %s whose beginning is gone", len(lost), t.dir)
		t.removeFiles(lost)
	}
}

// writeUses writes a run's uses into its file.
func (t *Tier) writeUses(r *run) {
	f, err := regular.OpenOwn(t.path(r.id), os.O_WRONLY)
	if err != nil {
		return // it ranks lower next time
	}
	_, _ = f.WriteAt(r.counters(), 16)
	_ = f.Close()
	r.changed = false
}
