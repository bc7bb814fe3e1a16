package hub

import (
	"cmp"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"hearth/internal/regular"
)

const (
	// parallel is how many files are fetched at once.
	parallel = 4
	// bufferBytes is what is read at once and written before more is read: what a killed process may have to fetch again.
	bufferBytes = 256 << 10
	// leastProgress is what must arrive before failures are counted anew.
	leastProgress = 64 << 10
	// spareDisk stays free beside the files.
	spareDisk = 64 << 20
)

// Fetch brings what is missing of a plan, and makes the snapshot of it. What has arrived stays when it fails or ctx ends, and
// the next Fetch goes on there; so does another client of the cache. progress, if not nil, is called about five times a
// second, by one goroutine at a time, and once at the end. Errors are *FetchError, but for those of ctx and of the disk.
func (c *Client) Fetch(ctx context.Context, p Plan, progress func(Progress)) (Entry, error) {
	s, err := c.open(p.ID)
	if err != nil {
		return Entry{}, err
	}
	defer s.close()
	root := c.Cache.root(p.ID)
	b := blobs{filepath.Join(root, "blobs")}
	for _, dir := range []string{b.dir, filepath.Join(root, "snapshots", p.Commit)} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return Entry{}, err
		}
	}
	c.Cache.look(&p)
	if err := s.room(&p); err != nil {
		return Entry{}, err
	}
	if err := errors.Join(c.Cache.writeTag(), c.Cache.writeTree(&p)); err != nil {
		return Entry{}, err
	}
	t := newTally(&p, progress)
	stop := t.run()
	err = s.fetchAll(ctx, &p, b, t)
	stop()
	if err == nil {
		err = c.Cache.writeRef(&p)
	}
	if err != nil {
		return Entry{}, err
	}
	return c.Cache.Find(p.ID + "@" + p.Commit)
}

// room refuses what the disk has no room for.
func (s *session) room(p *Plan) error {
	missing := p.Missing()
	free, err := regular.Free(s.Cache.Dir)
	if missing == 0 || err != nil || free >= missing+spareDisk {
		return nil // where the room is not known, writing tells
	}
	return &FetchError{ID: p.ID, Reason: fmt.Sprintf("%s are missing, and the disk of %s has room for %s", Size(missing), s.Cache.Dir, Size(max(free-spareDisk, 0))),
		Advice: "make room, or name a folder on another disk with --hf-hub-cache"}
}

// Size is a number of bytes as people read it, in powers of a thousand as hubs and disks have them.
func Size(n int64) string {
	units := []string{"bytes", "kB", "MB", "GB", "TB"}
	x, u := float64(n), 0
	for ; x >= 999.95 && u < len(units)-1; u++ {
		x /= 1000
	}
	if u == 0 {
		return fmt.Sprintf("%d %s", n, units[u])
	}
	return fmt.Sprintf("%.1f %s", x, units[u])
}

// fetchAll fetches the files, several at once, until one fails.
func (s *session) fetchAll(ctx context.Context, p *Plan, b blobs, t *tally) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next, left := make(chan int), b.leftovers()
	var wg sync.WaitGroup
	for range min(parallel, len(p.Files)) {
		wg.Go(func() {
			for i := range next {
				if err := s.fetchFile(ctx, p, i, b, left[p.Files[i].Blob], t); err != nil {
					cancel(err) // the first one counts
				}
			}
		})
	}
	for i := range p.Files {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}

// fetchFile brings one file and makes its name. left is what was there of it when the first one was begun.
func (s *session) fetchFile(ctx context.Context, p *Plan, i int, b blobs, left []leftover, t *tally) error {
	f := &p.Files[i]
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if hasSize(s.Cache.pointer(p, f), f.Size) && len(left) == 0 {
		t.set(i, Finished, f.Size, 0)
		return nil
	}
	unlock, err := s.Cache.lockBlob(ctx, p.ID, f.Blob, func() {
		var done int64
		left = b.leftovers()[f.Blob] // what the other one has of it
		for _, l := range left {
			done = max(done, min(l.size, f.Size))
		}
		t.set(i, Waits, done, 0)
	})
	if err != nil {
		return err
	}
	defer unlock()
	fresh := false
	if !hasSize(s.Cache.pointer(p, f), f.Size) && !hasSize(b.path(f.Blob), f.Size) {
		d := &download{session: s, plan: p, file: f, blobs: b, left: left, tell: func(state FileState, done, fresh int64) { t.set(i, state, done, fresh) }}
		if err := d.run(ctx); err != nil {
			return err
		}
		fresh = true
	}
	if err := s.Cache.link(p, f, fresh); err != nil {
		return err
	}
	for _, l := range left { // of others, who did not go on with them
		_ = os.Remove(l.path)
	}
	t.set(i, Finished, f.Size, 0)
	return nil
}

// download is the way of one file into blobs. Its blob is locked.
type download struct {
	*session
	plan  *Plan
	file  *File
	blobs blobs
	left  []leftover
	tell  func(state FileState, done, fresh int64)

	part *os.File
	at   int64     // bytes of the part that are written
	hash hash.Hash // of them
}

// run goes on with what is there of the file, or begins. A part that somebody else began and that turns out to be wrong is
// fetched once more as a whole.
func (d *download) run(ctx context.Context) (err error) {
	d.part, d.at, err = d.blobs.openPart(d.file, d.left)
	if err != nil {
		return err
	}
	defer func() { _ = d.part.Close() }()
	resumed := d.at > 0
	if err := d.check(ctx); err != nil {
		return err
	}
	for {
		if err := d.retry(ctx, func() (bool, error) {
			if d.at == d.file.Size {
				return false, nil
			}
			before := d.at
			err := d.attempt(ctx)
			return d.at-before >= leastProgress, err
		}); err != nil {
			return err
		}
		if hex.EncodeToString(d.hash.Sum(nil)) == d.file.Blob {
			break
		}
		if err := d.part.Truncate(0); err != nil {
			return err
		}
		if !resumed {
			_ = os.Remove(d.blobs.part(d.file.Blob))
			return &FetchError{ID: d.plan.ID, Reason: d.file.Path + " came with other contents than the hub's checksum of it; it was removed", Advice: "try again"}
		}
		resumed, d.at, d.hash = false, 0, newHash(d.file)
	}
	if err := d.part.Sync(); err != nil {
		return err
	}
	if err := d.part.Close(); err != nil {
		return err
	}
	err = os.Rename(d.blobs.part(d.file.Blob), d.blobs.path(d.file.Blob))
	if err != nil && hasSize(d.blobs.path(d.file.Blob), d.file.Size) {
		return nil // where there are no locks, another may have been faster
	}
	return err
}

// newHash begins the checksum that names a file's blob: that of a git object where it is no SHA-256 of a file that git does
// not keep.
func newHash(f *File) hash.Hash {
	if len(f.Blob) == sha256.Size*2 {
		return sha256.New()
	}
	h := sha1.New()
	h.Write([]byte("blob " + strconv.FormatInt(f.Size, 10) + "\x00"))
	return h
}

// check reads what is there into the checksum.
func (d *download) check(ctx context.Context) error {
	d.hash = newHash(d.file)
	buf := make([]byte, 1<<20)
	for n := int64(0); n < d.at; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		d.tell(Checks, d.at, 0)
		k, err := d.part.ReadAt(buf[:min(int64(len(buf)), d.at-n)], n)
		d.hash.Write(buf[:k])
		n += int64(k)
		if err != nil && n < d.at {
			return err
		}
	}
	d.tell(Arrives, d.at, 0)
	return nil
}

// attempt asks for the rest of the file and writes what comes.
func (d *download) attempt(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(d.stallLimit(), func() { cancel(errStalled) })
	defer stall.Stop()
	because := func(err error) error {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", d.file.Path, context.Cause(ctx))
		}
		return err
	}
	a, err := d.get(ctx, d.url(), d.at)
	if err != nil {
		return because(err)
	}
	defer a.Body.Close()
	skip, err := d.expect(a)
	if err != nil {
		return err
	}
	buf := make([]byte, bufferBytes)
	for {
		n, err := a.Body.Read(buf)
		stall.Reset(d.stallLimit())
		b := buf[:n]
		if k := min(skip, int64(len(b))); k > 0 {
			b, skip = b[k:], skip-k
		}
		if int64(len(b)) > d.file.Size-d.at {
			return d.wrong("the hub sends more of it than the %d bytes that it has", d.file.Size)
		}
		if len(b) > 0 {
			if _, err := d.part.WriteAt(b, d.at); err != nil {
				return d.disk(err)
			}
			d.hash.Write(b)
			d.at += int64(len(b))
			d.tell(Arrives, d.at, int64(len(b)))
		}
		switch {
		case err == io.EOF && d.at < d.file.Size:
			return fmt.Errorf("%s: %w", d.file.Path, io.ErrUnexpectedEOF)
		case err == io.EOF, err != nil && d.at == d.file.Size:
			return nil
		case err != nil:
			return because(fmt.Errorf("%s: %w", d.file.Path, err))
		}
	}
}

// url is where the hub has the file.
func (d *download) url() *url.URL {
	parts := strings.Split(d.file.Path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return d.address("/"+d.plan.ID+"/resolve/"+d.plan.Commit+"/"+strings.Join(parts, "/"), "")
}

// maxRead bounds a file that Read reads, in bytes.
const maxRead = 16 << 20

// Read gives the contents of a small file of a plan, such as its config.json: from the disk if it is there, else from the hub.
// Nothing is kept. Errors are *FetchError, but for those of ctx.
func (c *Client) Read(ctx context.Context, p *Plan, name string) ([]byte, error) {
	i := slices.IndexFunc(p.Files, func(f File) bool { return f.Path == name })
	if i < 0 {
		return nil, &FetchError{ID: p.ID, Reason: "has no " + name}
	}
	f := &p.Files[i]
	for _, path := range []string{c.Cache.pointer(p, f), blobs{filepath.Join(c.Cache.root(p.ID), "blobs")}.path(f.Blob)} {
		if text, err := regular.Read(path, maxRead); err == nil && int64(len(text)) == f.Size {
			return text, nil
		}
	}
	if f.Size > maxRead {
		return nil, &FetchError{ID: p.ID, Reason: fmt.Sprintf("%s has %d bytes, more than %d", name, f.Size, maxRead)}
	}
	s, err := c.open(p.ID)
	if err != nil {
		return nil, err
	}
	defer s.close()
	var text []byte
	err = s.retry(ctx, func() (bool, error) {
		d := &download{session: s, plan: p, file: f, hash: newHash(f)}
		if text, err = d.all(ctx); err != nil {
			return false, err
		}
		if d.hash.Write(text); hex.EncodeToString(d.hash.Sum(nil)) != f.Blob {
			return false, d.wrong("it came with other contents than the hub's checksum of it")
		}
		return false, nil
	})
	return text, err
}

// all reads the whole file into memory, at once.
func (d *download) all(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(2*d.stallLimit(), func() { cancel(errStalled) })
	defer stall.Stop()
	a, err := d.get(ctx, d.url(), 0)
	if err != nil {
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	defer a.Body.Close()
	if _, err := d.expect(a); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(a.Body, d.file.Size+1))
	if err != nil {
		return nil, cmp.Or(context.Cause(ctx), fmt.Errorf("%s: %w", d.file.Path, err))
	}
	return text, nil
}

// wrong is a failure of one attempt that no word of the hub explains.
func (d *download) wrong(format string, args ...any) error {
	return &waitError{err: &FetchError{ID: d.plan.ID, Reason: d.file.Path + ": " + fmt.Sprintf(format, args...), Advice: "try again later: what has arrived is kept"}}
}

func (d *download) disk(err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err
	}
	return &FetchError{ID: d.plan.ID, Reason: fmt.Sprintf("%s cannot be written to %s: %v", d.file.Path, d.blobs.dir, err), Advice: "make room, and try again: what has arrived is kept", Err: err}
}

// expect compares an answer with what the list of files said. skip is how much of its body is on disk already.
func (d *download) expect(a *answer) (skip int64, err error) {
	size := int64(-1)
	switch a.StatusCode {
	case http.StatusOK:
		if skip = d.at; a.ContentLength >= 0 {
			size = a.ContentLength
		}
	case http.StatusPartialContent:
		var from, to int64
		var of string
		if n, _ := fmt.Sscanf(a.Header.Get("Content-Range"), "bytes %d-%d/%s", &from, &to, &of); n != 3 || from != d.at {
			return 0, d.wrong("the hub was asked for what follows byte %d and sends %s", d.at, regular.Quote(a.Header.Get("Content-Range")))
		}
		if size, err = strconv.ParseInt(of, 10, 64); err != nil {
			size = to + 1
		}
		if a.ContentLength >= 0 && a.ContentLength != to+1-from {
			size = from + a.ContentLength
		}
	case http.StatusRequestedRangeNotSatisfiable:
		return 0, d.wrong("the hub has no byte %d of it", d.at)
	default:
		return 0, d.refusal(a, d.file.Path)
	}
	if e := a.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return 0, d.wrong("the hub sends it compressed (%s), which was not asked for", regular.Clip(e))
	}
	if a.first != nil {
		if n, err := strconv.ParseInt(a.first.Get("X-Linked-Size"), 10, 64); err == nil {
			if n != d.file.Size {
				size = n
			}
		}
		if commit := a.first.Get("X-Repo-Commit"); commit != "" && commit != d.plan.Commit {
			return 0, d.wrong("the hub sends it from commit %s", regular.Clip(commit))
		}
		tag := a.first.Get("X-Linked-Etag")
		if tag == "" && a.own {
			tag = a.first.Get("Etag")
		}
		if tag = etag(tag); blobID.MatchString(tag) && len(tag) == len(d.file.Blob) && tag != d.file.Blob {
			return 0, d.wrong("the hub sends another file, %s instead of %s", tag, d.file.Blob)
		}
	}
	if size >= 0 && size != d.file.Size {
		return 0, d.wrong("the hub lists it with %d bytes and sends %d", d.file.Size, size)
	}
	return skip, nil
}

// etag is an ETag without quotes and the mark of a weak one.
func etag(s string) string {
	return strings.Trim(strings.TrimPrefix(strings.TrimSpace(s), "W/"), `"`)
}
