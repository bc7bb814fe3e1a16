package backend

import "errors"

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
