package backend

import (
	"errors"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// errUnreadable is what becomes of reading a mapped file that has been cut short since, or whose disk fails.
var errUnreadable = errors.New("a file of the model can no longer be read: it has become shorter or its disk fails; " +
	"load the model again when the file is whole")

// Unreadable is the error that v means, what was recovered from a panic: nil where that is no memory that cannot be read. The
// runtime panics for such memory on goroutines that called debug.SetPanicOnFault, and ends the process on others.
func Unreadable(v any) error {
	if _, fault := v.(interface{ Addr() uintptr }); fault {
		return errUnreadable
	}
	return nil
}

// Readers are functions that run beside each other and may read mapped files. What one of them panics with, Wait panics with.
type Readers struct {
	all   sync.WaitGroup
	first atomic.Pointer[any]
}

// Go runs f.
func (r *Readers) Go(f func()) {
	r.all.Go(func() {
		debug.SetPanicOnFault(true)
		defer func() {
			if v := recover(); v != nil {
				r.first.CompareAndSwap(nil, &v)
			}
		}()
		f()
	})
}

// Wait waits for all of them.
func (r *Readers) Wait() {
	r.all.Wait()
	if v := r.first.Load(); v != nil {
		panic(*v)
	}
}
