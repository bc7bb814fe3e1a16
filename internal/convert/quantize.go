package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"hearth/internal/quant"
)

// blockBytes is about how much of a matrix one thread works on at a time, as float32.
const blockBytes = 4 << 20

// write makes the unit's bytes, in the order of its tensors. Codes go out as they come; scales and biases, which are a small
// part, wait until the end. done is told how many bytes of the source were read.
func (u *unit) write(ctx context.Context, w io.Writer, done func(int)) error {
	if u.dtype == "" {
		for _, t := range u.stored {
			if _, err := w.Write(t.Bytes); err != nil {
				return err
			}
			done(len(t.Bytes))
		}
		return ctx.Err()
	}
	var scales, biases []byte
	for _, t := range u.stored {
		b := blocks{u: u, dtype: quant.DType(t.DType), bytes: t.Bytes, rows: len(t.Bytes) / quant.DType(t.DType).Size() / u.in}
		err := b.each(ctx, func(k *block) error {
			if _, err := w.Write(k.codes); err != nil {
				return err
			}
			scales, biases = append(scales, k.scales...), append(biases, k.biases...)
			done(k.read)
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", u.name, err)
		}
	}
	for _, b := range [][]byte{scales, biases} {
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// blocks are the rows of one stored tensor.
type blocks struct {
	u     *unit
	dtype quant.DType
	bytes []byte
	rows  int
}

// block is what some of them become: codes, or floats where nothing is quantised.
type block struct {
	codes, scales, biases []byte
	read                  int
	err                   error
}

// each makes blocks on all processors and gives them to f in order.
func (b *blocks) each(ctx context.Context, f func(*block) error) error {
	n := max(blockBytes/4/b.u.in, 1)
	made := make([]block, runtime.GOMAXPROCS(0))
	for from := 0; from < b.rows; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var done sync.WaitGroup
		used := made[:0]
		for ; len(used) < len(made) && from < b.rows; from += n {
			used = used[:len(used)+1]
			k, lo, hi := &used[len(used)-1], from, min(from+n, b.rows)
			done.Go(func() { k.make(b, lo, hi) })
		}
		done.Wait()
		for i := range used {
			if err := errors.Join(used[i].err, ctx.Err()); err != nil {
				return err
			}
			if err := f(&used[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// make fills the block from rows [from, to).
func (k *block) make(b *blocks, from, to int) {
	size, in := b.dtype.Size(), b.u.in
	src := b.bytes[from*in*size : to*in*size]
	*k = block{read: len(src)}
	if b.u.scheme.None() && b.dtype == b.u.dtype {
		k.codes = src
		return
	}
	x := make([]float32, (to-from)*in)
	quant.Floats(x, b.dtype, src)
	if b.dtype != b.u.dtype {
		k.codes = make([]byte, len(x)*b.u.dtype.Size())
		quant.PutFloats(k.codes, b.u.dtype, x)
		if b.u.scheme.None() {
			return
		}
		quant.Floats(x, b.u.dtype, k.codes)
	}
	m, err := quant.Quantize(b.u.scheme, x, to-from, in, b.u.dtype)
	if err != nil {
		k.err = err
		return
	}
	k.codes, k.scales, k.biases = m.Weight, m.Scales, m.Biases
}
