package tokenizer

import (
	"context"
	"fmt"
)

// MaxWhole is the most bytes that EncodeContext takes as one word, which is a stretch that the model's rules let nobody cut: each
// takes some forty bytes of memory until it is encoded.
const MaxWhole = 1 << 20

// WholeError is a stretch of text that is longer than MaxWhole.
type WholeError struct{ Bytes int }

func (e *WholeError) Error() string {
	return fmt.Sprintf("a stretch of %d bytes has no place at which the tokenizer may cut it; it takes %d at most", e.Bytes, MaxWhole)
}

// watch stops an encoding whose caller has gone, or whose words are too long. It stops by a panic, which EncodeContext catches:
// what is encoded is deep in the stages of a pre-tokenizer. A nil watch stops nothing.
type watch struct {
	ctx  context.Context
	work int // bytes since ctx was looked at
}

// stopped is what a watch panics with.
type stopped struct{ err error }

// lookEvery is how many bytes are encoded between two looks at the context, some milliseconds at most.
const lookEvery = 32 << 10

// pass counts n bytes of work.
func (w *watch) pass(n int) {
	if w == nil {
		return
	}
	if w.work += n; w.work < lookEvery {
		return
	}
	w.work = 0
	if err := w.ctx.Err(); err != nil {
		panic(stopped{err})
	}
}

// whole is told of n bytes that are taken as one.
func (w *watch) whole(n int) {
	if w != nil && n > MaxWhole {
		panic(stopped{&WholeError{n}})
	}
}

// EncodeContext is Encode for texts of which others decide how long they are: it gives up when ctx ends, with its error, and with
// a *WholeError.
func (t *Tokenizer) EncodeContext(ctx context.Context, text string, o EncodeOptions) (ids []int32, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e := t.encoders.Get().(*encoder)
	e.word.watch = &watch{ctx: ctx}
	defer func() {
		if p := recover(); p != nil { // e is left to the collector
			s, ok := p.(stopped)
			if !ok {
				panic(p)
			}
			ids, err = nil, s.err
		}
	}()
	ids, _ = t.encode(e, make([]int32, 0, len(text)/3+4), text, o)
	e.word.watch = nil
	t.encoders.Put(e)
	return ids, nil
}
