package hub

import (
	"math"
	"sync"
	"time"
)

// FileState is what is done with a file.
type FileState string

const (
	Waits    FileState = "waiting"  // another process is fetching it
	Checks   FileState = "checking" // what is there of it is read
	Arrives  FileState = "fetching"
	Finished FileState = "done"
)

// FileProgress is how far a file is.
type FileProgress struct {
	Path  string    `json:"path"`
	Done  int64     `json:"done"`  // bytes that are on disk
	Total int64     `json:"total"` // bytes
	State FileState `json:"state,omitempty"`
}

// Progress is how far a Fetch is.
type Progress struct {
	Done  int64          `json:"done"`             // bytes that are on disk
	Total int64          `json:"total"`            // bytes of all files
	Rate  float64        `json:"rate"`             // bytes per second that arrived lately
	Left  float64        `json:"left_s,omitempty"` // seconds, at this rate; 0: not known
	Files []FileProgress `json:"files,omitempty"`  // in the order of Plan.Files
}

const (
	tellEvery = 200 * time.Millisecond
	rateOver  = 5 * time.Second // what is meant by lately
)

// tally counts what files are fetched; all of them at once.
type tally struct {
	mu    sync.Mutex
	files []FileProgress
	fresh int64 // bytes that arrived
	seen  []mark
	tell  func(Progress)
	now   func() time.Time
}

// mark is what had arrived at a time.
type mark struct {
	at    time.Time
	fresh int64
}

func newTally(p *Plan, tell func(Progress)) *tally {
	t := &tally{tell: tell, now: time.Now}
	for _, f := range p.Files {
		fp := FileProgress{Path: f.Path, Done: f.Have, Total: f.Size}
		if f.Have == f.Size {
			fp.State = Finished
		}
		t.files = append(t.files, fp)
	}
	t.seen = []mark{{t.now(), 0}}
	return t
}

// set says how much of file i is there, and how many bytes of that have just arrived.
func (t *tally) set(i int, state FileState, done, fresh int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.files[i].State, t.files[i].Done = state, done
	t.fresh += fresh
}

// report tells how far it is.
func (t *tally) report() {
	if t.tell != nil {
		t.tell(t.progress())
	}
}

func (t *tally) progress() Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := Progress{Files: append([]FileProgress(nil), t.files...)}
	for _, f := range t.files {
		p.Done += f.Done
		p.Total += f.Total
	}
	now := t.now()
	t.seen = append(t.seen, mark{now, t.fresh})
	for len(t.seen) > 2 && now.Sub(t.seen[1].at) >= rateOver {
		t.seen = t.seen[1:]
	}
	if d := now.Sub(t.seen[0].at); d > 0 {
		p.Rate = float64(t.fresh-t.seen[0].fresh) / d.Seconds()
	}
	if p.Rate >= 1 {
		p.Left = math.Round(float64(p.Total-p.Done) / p.Rate)
	}
	return p
}

// run reports until stop is called, which reports once more.
func (t *tally) run() (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(tellEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				t.report()
				return
			case <-tick.C:
				t.report()
			}
		}
	}()
	return func() { close(done); <-ended }
}
