package remote

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"hearth/internal/backend"
	"hearth/internal/engine"
	"hearth/internal/watchdog"
)

// Reader is a model in a worker process that turns texts into rows of numbers (embeddings, scores) and keeps no state. Its worker
// process is supervised as an Engine's is.
type Reader struct{ e *Engine }

// OpenReader starts a worker process, of which Loaded has Read, and waits until it has loaded. Errors are those of Open.
func OpenReader(cfg Config) (*Reader, error) {
	e, err := Open(cfg)
	if err != nil {
		return nil, err
	}
	return &Reader{e}, nil
}

// About is what the worker process told of the model.
func (r *Reader) About() json.RawMessage { return r.e.About() }

// Worker is Engine.Worker.
func (r *Reader) Worker() (pid, loaded int) { return r.e.Worker() }

// Close ends the worker process.
func (r *Reader) Close() error { return r.e.Close() }

// Read runs a batch of texts and gives their rows one after the other. If the worker process ends meanwhile, the next one is
// asked, once. Errors: *engine.LostError, engine.ErrClosed, and the worker process's.
func (r *Reader) Read(ctx context.Context, b *backend.Batch) ([]float32, error) {
	for tries := 1; ; tries++ {
		s, err := r.e.ready(ctx)
		if err != nil {
			return nil, err
		}
		var rows []float32
		err = r.e.call(ctx, s, callRead, func(f []byte) []byte { return appendTexts(f, b) },
			func(c *contents) { rows = append(rows, c.floats()...) })
		var lost *engine.LostError
		if err == nil {
			return rows, nil
		}
		if !errors.As(err, &lost) || tries == mostTries {
			return nil, err
		}
	}
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

// answerRead answers callRead. One batch runs at a time.
func (w *worker) answerRead(id uint64, b *backend.Batch) {
	w.reading.Lock()
	defer w.reading.Unlock()
	w.watchdog.Begin(watchdog.Prompt)
	defer w.watchdog.End()
	err := w.readTexts(b, func(rows []float32) {
		const piece = newsFrame / 4
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
