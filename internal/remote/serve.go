package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"hearth/internal/backend"
	"hearth/internal/budget"
	"hearth/internal/engine"
	"hearth/internal/watchdog"
)

// greeting is the first frame in both directions.
type greeting struct {
	Version int
	Build   string
	Spec    json.RawMessage `json:",omitempty"` // to the worker process: what it is to load
	Share   *budget.Use     `json:",omitempty"` // likewise: what it has of the machine's memory; nil: that is not counted
}

// Loaded is a model that a worker process has loaded: it has Engine, or it encodes texts and has Forward.
type Loaded struct {
	Engine *engine.Engine // made with Hooks.Trace and Hooks.Stuck
	Limits Limits         // of the engine
	// Forward runs a batch of texts without state and hands use a row for each, which are valid until use returns.
	Forward func(b *backend.Batch, use func(rows []float32)) error
	// Room, if set, waits before a Forward until a step of so many rows has memory, until ctx ends; done is called after it.
	Room  func(ctx context.Context, rows int) (done func(), err error)
	About json.RawMessage // for Engine.About and Encoder.About
	Close func() error    // ends the engine and frees the model
}

// Limits are those of the engine's configuration by which a prompt is refused.
type Limits struct{ Vocab, MaxSequences, MaxQueue int }

// facts is what a worker process tells of what it has loaded.
type facts struct {
	Limits
	Context int
	Drafts  int // see engine.Engine.Drafts
	KV      backend.KVPolicy
	About   json.RawMessage
}

// Hooks are for what is loaded in a worker process.
type Hooks struct {
	Trace func(engine.Step)   // must be the engine's
	Stuck func(time.Duration) // likewise: the parent ends this process
	Warn  func(line string)   // passes a line on to the parent
	Share *Share              // of the machine's memory; nil: there is none
}

// Refused is why a worker process loads nothing, as sentences that have crossed.
type Refused struct {
	Msg, Advice string
	NoBackend   bool               // the backend does not open here; another one may
	Short       *budget.ShortError `json:",omitempty"` // it lacks memory
}

// Unwrap is Short, where that is why.
func (r *Refused) Unwrap() error {
	if r.Short == nil {
		return nil
	}
	return r.Short
}

func (r *Refused) Error() string { return r.Msg }

// Hint says what to do.
func (r *Refused) Hint() string { return r.Advice }

// orphanLimit is how long a worker process whose parent is gone may take to write its caches.
const orphanLimit = 15 * time.Second

// ErrGone is what Serve ends with when the parent is gone.
var ErrGone = errors.New("the process that started this one has ended")

// Serve is the worker process: it loads what the parent asks for and runs it until the parent has enough of it or is gone. A
// *Refused of load goes to the parent as it is. Whoever calls it ends the process afterwards.
func Serve(conn io.ReadWriteCloser, build string, load func(spec json.RawMessage, h Hooks) (*Loaded, error)) error {
	defer conn.Close()
	w := &worker{out: newOutbox(), streams: map[uint64]*workerStream{}, calls: map[uint64]context.CancelFunc{}, wanted: map[uint64]*wanted{}}
	w.out.more = w.appendUpdates
	var stop context.CancelFunc
	w.ctx, stop = context.WithCancel(context.Background())
	defer stop()
	w.watchdog = watchdog.New(true, w.stuck)
	defer w.watchdog.Close()
	written := make(chan struct{})
	go func() {
		defer close(written)
		_ = w.out.run(conn) // the reader notices
	}()
	finish := func() {
		w.out.close()
		<-written
	}
	in := newReceiver(conn)
	g, err := w.greet(in, build)
	if err != nil {
		finish()
		return err
	}
	type loading struct {
		*Loaded
		error
	}
	loads, ended := make(chan loading, 1), make(chan error, 1)
	go func() {
		l, err := load(g.Spec, Hooks{Trace: func(engine.Step) { w.out.signal() }, Stuck: w.stuck, Warn: w.warn, Share: w.share})
		loads <- loading{l, err}
	}()
	go func() {
		err := w.read(in)
		if w.share != nil {
			close(w.share.gone)
		}
		ended <- err
	}()
	var l loading
	select {
	case l = <-loads:
	case err := <-ended: // before there is anything to keep
		w.out.close()
		go func() {
			if l := <-loads; l.Loaded != nil {
				_ = l.Close() // the process may end first
			}
		}()
		return err
	}
	if l.error != nil {
		w.fail(l.error)
		finish()
		return l.error
	}
	w.start(l.Loaded)
	err = <-ended
	if err != nil { // nobody reads this any more
		conn.Close()
		w.out.close()
		stop()
	}
	closed := make(chan error, 1)
	go func() { closed <- l.Close() }()
	limit := time.NewTimer(orphanLimit)
	defer limit.Stop()
	select {
	case e := <-closed:
		w.out.put(kindClosed, func(b []byte) []byte { return appendError(b, e) })
		if err == nil {
			finish()
		}
	case <-limit.C:
	}
	return err
}
