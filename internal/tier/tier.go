// Package tier keeps pages of keys and values on disk, so that what was computed survives eviction and restarts. Package engine
// calls it: it puts pages that leave memory and fetches those that a prompt begins with. It never interprets a page, never waits
// for the disk on its caller's goroutine, and never logs (Options.Warn).
//
// A folder belongs to one model with one set of options, which a fingerprint identifies, and to one process at a time. A file
// holds a run: consecutive pages of one path of tokens. A run may continue another one at any of its pages. Files are written
// under another name and renamed; after that only the counter of uses in them changes. Headers are read at start and hold all
// tokens, so that paths are compared token by token. Headers and pages have checksums; a run that is truncated, foreign or
// corrupt is removed with a warning.
package tier

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"hearth/internal/kv"
	"hearth/internal/regular"
)

const (
	runPages   = 16           // pages of a run at most
	runBytes   = 16 << 20     // likewise, unless one page is larger
	queueBytes = 64 << 20     // waiting to be written; a larger run is queued alone
	queueRuns  = 256          // likewise
	mostRuns   = 1 << 14      // files of a folder: they are all read at start
	mostRead   = 2 * mostRuns // likewise, where something else has put more there
	defaultMax = 10 << 30     // quota where none is given,
	freeShare  = 10           // or 1/freeShare of the free disk, if that is less
	readers    = 2            // fetches that read at once
	staleDays  = 30           // folders of other models that were not opened for so long are removed,
	leastShare = 8            // of a quota that is shared, one folder has 1/leastShare at least
	diskShare  = 4            // and more of them while all folders have over 1/diskShare of what they and the free disk are
	mostUses   = 8            // uses that count for rank
)

// Options say what is stored where.
type Options struct {
	Dir         string // of all models; made if it is missing
	Name        string // of the model, for people who look into Dir
	Fingerprint string // everything that changes what the bytes of a page mean, in words
	Geometry    kv.Geometry
	Digest      func(number uint32) ([32]byte, bool) // of a media item, see kv.Media; nil: pages with such rows are not kept
	Snapshots   bool                                 // there is recurrent state: see Path.Pages
	Quota       int64                                // bytes of files; 0: 10 GiB, or a tenth of the free disk
	Shared      bool                                 // Quota is for what all folders of Dir have when this one is opened; a leastShare of it is there in any case
	TTL         time.Duration                        // what was not used for so long is removed; 0: nothing is
	Warn        func(string)                         // gets one line; called from any goroutine; nil: none
	Ready       func()                               // called when a page was read, a fetch has ended or a run was written; likewise
	// Reading, if set, is called before a run's file is opened to be read, for tests of slow disks.
	Reading func(name string)
}

// Tier is an open folder. Its methods may be called from any goroutine; Put and Close from one.
//
// Invariants (check): bytes are the sizes of all runs and at most the quota; a run's children continue it at a page it
// has; the evictable runs are exactly those that are written and that nobody continues, ordered by rank.
type Tier struct {
	opts  Options
	dir   string
	print [32]byte
	quota int64
	lock  *os.File
	quit  chan struct{}
	jobs  chan job
	reads chan struct{} // holds one element per fetch that reads
	wg    sync.WaitGroup
	free  buffers

	// create makes a file that must not exist. Tests put failures here.
	create func(name string) (file, error)

	mu     sync.Mutex
	root   map[string]*page
	runs   map[runID]*run
	leaves kv.Heap[*run]
	bytes  int64 // of all runs, queued ones too
	stored map[kv.Tag]kv.Stored
	queued int64 // of those, not written yet
	clock  int64 // counts uses
	linked int64 // counts runs
	scale  int64 // see rank
	seen   seen
	broken bool // a write failed: nothing is written any more
	stats  Stats
}

// Stats describe a tier.
type Stats struct {
	Dir     string // "" if there is none
	Entries int    // runs
	Bytes   int64
	Quota   int64
	Hits    int64 // prompts that got something from here, since start like the rest
	Tokens  int64 // that they got
	Writes  int64 // runs written
	Refused int64 // runs not worth writing
	Dropped int64 // runs lost because the queue was full
	Errors  int64 // runs that could not be written, or that were removed because they could not be read
}

// AddCounts adds what o has counted since it began; what is stored stays s's.
func (s *Stats) AddCounts(o *Stats) {
	s.Hits += o.Hits
	s.Tokens += o.Tokens
	s.Writes += o.Writes
	s.Refused += o.Refused
	s.Dropped += o.Dropped
	s.Errors += o.Errors
}

// snapGroup is the window of the last group of a tier with snapshots. A page of that group is a snapshot of the state after the
// page; a sequence can only start where there is one.
const snapGroup = -1

// Open takes the folder of the model, and reads what is in it. Errors are regular.ErrBusy, or those of the file system; they
// name the folder.
func Open(o Options) (*Tier, error) {
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	if o.Ready == nil {
		o.Ready = func() {}
	}
	t := &Tier{opts: o, print: fingerprint(&o), quit: make(chan struct{}), jobs: make(chan job, queueRuns),
		reads: make(chan struct{}, readers), root: map[string]*page{}, runs: map[runID]*run{}, stored: map[kv.Tag]kv.Stored{}, create: createFile}
	if o.Snapshots {
		t.opts.Geometry.Groups = append(slices.Clip(o.Geometry.Groups), kv.Group{Window: snapGroup, PageBytes: o.Geometry.SnapBytes})
	}
	t.dir = filepath.Join(o.Dir, folder(o.Name, t.print))
	if err := t.open(); err != nil {
		return nil, fmt.Errorf("open prefix cache on disk: %w", err)
	}
	t.wg.Add(1)
	go t.write()
	return t, nil
}

func (t *Tier) open() (err error) {
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return err
	}
	if t.lock, err = lockDir(t.dir); err != nil {
		return fmt.Errorf("%s: %w", t.dir, err)
	}
	defer func() {
		if err != nil {
			t.lock.Close()
		}
	}()
	if err := replace(filepath.Join(t.dir, aboutFile), []byte(t.opts.Fingerprint+"\n")); err != nil {
		return err
	}
	others := removeStale(t.opts.Dir, t.dir)
	if err := t.scan(); err != nil {
		return err
	}
	free, unknown := regular.Free(t.dir)
	t.quota = t.opts.Quota
	if t.quota <= 0 {
		if unknown != nil {
			return fmt.Errorf("free space of %s: %w", t.dir, unknown)
		}
		t.quota = min(defaultMax, (free+t.bytes)/freeShare)
	}
	most := int64(math.MaxInt64)
	if t.opts.Shared {
		most = t.quota
	}
	if unknown == nil {
		if _, beside := shrink(others, t.bytes, free, most); t.opts.Shared {
			t.quota = max(t.quota-beside, t.quota/leastShare)
		}
	}
	t.removeFiles(t.makeRoom(0, math.MaxInt64, nil))
	if t.opts.TTL > 0 {
		t.expire()
	}
	return nil
}

// Stats gives the figures.
func (t *Tier) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stats
	s.Dir, s.Entries, s.Bytes, s.Quota = t.dir, len(t.runs), t.bytes, t.quota
	return s
}

// Restored counts a prompt that got so many tokens from here.
func (t *Tier) Restored(tokens int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Hits++
	t.stats.Tokens += int64(tokens)
}

// Clear removes everything, also what waits to be written. It gives the bytes.
func (t *Tier) Clear() int64 {
	t.mu.Lock()
	bytes, files := t.bytes, t.savedFiles()
	for _, r := range t.runs {
		if t.leaves.Remove(r); r.written {
			files = append(files, t.path(r.id))
		}
	}
	t.root, t.runs, t.leaves, t.bytes = map[string]*page{}, map[runID]*run{}, nil, 0
	clear(t.stored)
	t.mu.Unlock()
	t.removeFiles(files)
	return bytes
}

// Stored is how much there is under a tag.
func (t *Tier) Stored(tag kv.Tag) kv.Stored {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stored[tag]
}

// ClearTag removes everything under a tag, and the files of Save, which may belong to any tag. It gives what there was.
func (t *Tier) ClearTag(tag kv.Tag) kv.Stored {
	t.mu.Lock()
	was, files := t.stored[tag], t.savedFiles()
	for key, p := range t.root {
		if tagOf(key, t.opts.Geometry.PageTokens) == tag {
			files = t.unlink(files, p.run)
		}
	}
	t.mu.Unlock()
	t.removeFiles(files)
	return was
}

// Close ends fetches, writes what is queued and the counters of uses, and unlocks the folder.
func (t *Tier) Close() error {
	close(t.quit)
	close(t.jobs)
	t.wg.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.runs {
		if r.written && r.changed {
			t.writeUses(r)
		}
	}
	return t.lock.Close()
}

func (t *Tier) warnf(format string, args ...any) { t.opts.Warn(fmt.Sprintf(format, args...)) }

func (t *Tier) removeFiles(files []string) {
	for _, f := range files {
		_ = os.Remove(f) // what stays is found, and counted, at the next start
	}
}
