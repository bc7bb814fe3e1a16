package catalog

import (
	"context"

	"hearth/internal/chat"
)

// loading is how the load of a model goes. It ends once.
type loading struct {
	done chan struct{} // closed when it has ended
	err  error         // set before done is closed
}

// end ends the load, or stands for one that is never begun.
func (l *loading) end(err error) {
	l.err = err
	close(l.done)
}

// Ready reports whether the model is loaded.
func (l *loading) Ready() bool {
	select {
	case <-l.done:
		return l.err == nil
	default:
		return false
	}
}

// wait waits until the model is loaded. Errors are ctx's, and a *chat.Error where it cannot be.
func (l *loading) wait(ctx context.Context) error {
	select {
	case <-l.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if l.err != nil {
		return &chat.Error{Kind: chat.Internal, Msg: "the model could not be loaded; see the server's log", Err: l.err}
	}
	return nil
}
