package embed

import (
	"context"

	"hearth/internal/backend"
	"hearth/internal/budget"
	"hearth/internal/model"
)

// Memory is what steps of a model may have of the machine's memory. A step of texts of usual length always has it; longer ones
// ask for theirs and give it back. One step runs at a time.
type Memory struct {
	share   budget.Holding
	scratch *budget.Scratch
	be      backend.Backend
	usual   int64 // bytes of a step of usualRows
	wake    chan struct{}
}

// usualRows is more than a step has, unless it is of one text alone: see queue.fill.
const usualRows = 2 * StepRows

// NewMemory measures the steps of a model of which a text has limit tokens at most, and makes share that of its weights and a
// usual step. It is nil where there is no share or the backend does not tell what steps take. Errors: *budget.ShortError.
func NewMemory(m *model.Encoder, be backend.Backend, share budget.Holding, limit int) (*Memory, error) {
	if share == nil {
		return nil, nil
	}
	r := &Memory{share: share, be: be, wake: make(chan struct{}, 1)}
	most := max(limit, usualRows)
	var err error
	switch be := be.(type) {
	case interface {
		Rehearse(steps func() error) (int64, error)
	}:
		r.scratch, err = budget.Fit(budget.Step{Rows: most}, func(st budget.Step) (int64, error) {
			return be.Rehearse(func() error { // what both take: arrays are as large as the larger of them
				err := Forward(m, r.be, blank(st.Rows, limit), func([]float32) {})
				if err == nil && st.Rows <= usualRows {
					err = Forward(m, r.be, blank(st.Rows, 1), func([]float32) {})
				}
				return err
			})
		})
	case interface{ Scratch(rows, outs int) int64 }:
		r.scratch, err = budget.Fit(budget.Step{Rows: most}, func(st budget.Step) (int64, error) { return be.Scratch(st.Rows, 0), nil })
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r.usual = r.of(usualRows)
	has := share.Use()
	lack := budget.Use{Scratch: max(r.usual-has.Scratch, 0)}
	if _, a := share.Grow(lack, lack); a != budget.Yes {
		return nil, share.Short(lack)
	}
	share.Give(budget.Use{State: has.State, Scratch: max(has.Scratch-r.usual, 0)}) // it keeps no state
	share.Listen(nil, func() {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	})
	return r, nil
}

// blank is a batch of texts that are as long as they may be.
func blank(rows, longest int) *backend.Batch {
	b := &backend.Batch{Tokens: make([]int32, rows)}
	for i := range rows {
		at := i % longest
		if at == 0 {
			b.Spans = append(b.Spans, backend.Span{Slot: -1, Row: i})
		}
		b.Spans[len(b.Spans)-1].Len++
		b.Pos[0] = append(b.Pos[0], int32(at))
	}
	return b
}

func (r *Memory) of(rows int) int64 { return r.scratch.Of(budget.Step{Rows: rows, Outs: 1}) }

// Room waits until a step of so many rows has memory; done gives back what is more than usual of it, when the step has run.
// Errors: *budget.ShortError where there never will be enough, ctx's.
func (r *Memory) Room(ctx context.Context, rows int) (done func(), err error) {
	if r == nil {
		return func() {}, nil
	}
	lack := budget.Use{Scratch: r.of(rows) - r.usual}
	if lack.Scratch <= 0 {
		return func() {}, nil
	}
	for {
		switch _, a := r.share.Grow(lack, lack); a {
		case budget.Yes:
			return func() {
				if t, ok := r.be.(interface{ Trim() }); ok {
					t.Trim()
				}
				r.share.Give(lack)
			}, nil
		case budget.Never:
			return nil, r.share.Short(lack)
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
