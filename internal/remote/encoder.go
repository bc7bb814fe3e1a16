package remote

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"hearth/internal/backend"
	"hearth/internal/watchdog"
)

// Encoder is a model in a worker process that turns each text into a row of numbers (an embedding, a score) and keeps no state.
// Its worker process is supervised as an Engine's is.
type Encoder struct{ e *Engine }

// OpenEncoder starts a worker process, of which Loaded has Forward, and waits until it has loaded. Errors are those of Open.
func OpenEncoder(ctx context.Context, cfg Config) (*Encoder, error) {
	e, err := Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Encoder{e}, nil
}

// About is what the worker process told of the model.
func (r *Encoder) About() json.RawMessage { return r.e.About() }

// Close ends the worker process.
func (r *Encoder) Close() error { return r.e.Close() }

// Forward runs a batch of texts and gives their rows one after the other. If the worker process ends meanwhile, the next one is
// asked, once. Errors: *engine.LostError, engine.ErrClosed, and the worker process's.
func (r *Encoder) Forward(ctx context.Context, b *backend.Batch) ([]float32, error) {
	return callList(ctx, r.e, callForward, func(f []byte) []byte { return appendTexts(f, b) }, (*contents).floats)
}

// appendTexts encodes the texts of a batch.
func appendTexts(f []byte, b *backend.Batch) []byte {
	f = binary.AppendUvarint(f, uint64(len(b.Spans)))
	for i := range b.Spans {
		f = binary.AppendUvarint(f, uint64(b.Spans[i].Len))
	}
	return appendIDs(appendIDs(f, b.Tokens), b.Types)
}

// texts is a batch as appendTexts encoded it.
func (c *contents) texts() *backend.Batch {
	b := &backend.Batch{}
	b.Spans = make([]backend.Span, c.count(1))
	lens := make([]uint64, len(b.Spans))
	for i := range lens {
		lens[i] = c.uint()
	}
	b.Tokens, b.Types = c.ids(), c.ids()
	row := uint64(0)
	for i, n := range lens {
		if n == 0 || n > uint64(len(b.Tokens))-row {
			c.fail()
			return &backend.Batch{}
		}
		b.Spans[i] = backend.Span{Slot: -1, Row: int(row), Len: int(n)}
		for pos := range n {
			b.Pos[0] = append(b.Pos[0], int32(pos))
		}
		row += n
	}
	if row != uint64(len(b.Tokens)) || len(b.Types) > 0 && len(b.Types) != len(b.Tokens) {
		c.fail()
	}
	return b
}

func appendFloats(b []byte, row []float32) []byte {
	b = binary.AppendUvarint(b, uint64(len(row)))
	for _, x := range row {
		b = appendFloat(b, x)
	}
	return b
}

func (c *contents) floats() []float32 {
	row := make([]float32, c.count(4))
	for i := range row {
		row[i] = c.float()
	}
	return row
}

// answerForward answers callForward. One batch runs at a time.
func (w *worker) answerForward(ctx context.Context, id uint64, b *backend.Batch) {
	w.step.Lock()
	defer w.step.Unlock()
	if w.room != nil {
		done, err := w.room(ctx, len(b.Tokens))
		if err != nil {
			w.reply(id, false, err, nil)
			return
		}
		defer done()
	}
	w.watchdog.Begin(watchdog.Prompt)
	defer w.watchdog.End()
	err := w.forward(b, func(rows []float32) {
		const piece = fullFrame / 4
		for len(rows) > 0 {
			n := min(len(rows), piece)
			w.reply(id, true, nil, func(f []byte) []byte { return appendFloats(f, rows[:n]) })
			rows = rows[n:]
		}
	})
	if err != nil {
		err = fmt.Errorf("read texts: %w", err)
	}
	w.reply(id, false, err, nil)
}
