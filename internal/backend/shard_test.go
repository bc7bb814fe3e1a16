package backend

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hearth/internal/quant"
)

// stored is a tensor of numbers of that shape.
func stored(name string, shape ...int) *Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	x := make([]float32, n)
	r := rand.New(rand.NewPCG(uint64(n), 3))
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	t := &Tensor{Name: name, DType: string(quant.F32), Shape: shape, Bytes: make([]byte, 4*n)}
	quant.PutFloats(t.Bytes, quant.F32, x)
	return t
}

// coded is a quantised part of rows×in.
func coded(rows, in int) Part {
	s := quant.Scheme{Mode: quant.Affine, Bits: 4, Group: 32}
	w := &Tensor{Name: "w", DType: string(quant.U32), Shape: []int{rows, in / 8}, Bytes: make([]byte, rows*in/2)}
	r := rand.New(rand.NewPCG(uint64(rows), 4))
	for i := range w.Bytes {
		w.Bytes[i] = byte(r.IntN(256))
	}
	return Part{Weight: w, Scales: stored("s", rows, in/32), Biases: stored("b", rows, in/32), Bias: stored("bias", rows), Scheme: s}
}

func rowsOf(t *testing.T, s WeightSpec) (all [][]float32, bias []float32) {
	t.Helper()
	k, err := s.Stack()
	if err != nil {
		t.Fatal(err)
	}
	for r := range k.Out {
		m, at := k.At(r)
		row := make([]float32, k.In)
		m.Row(row, at)
		all = append(all, row)
	}
	return all, k.Bias()
}

// TestLocal: ranks' rows are the file's rows, each on one rank or on as many as share it, and their columns are its columns.
func TestLocal(t *testing.T) {
	const in, ranks = 64, 2
	for name, f := range map[string]func(rows, in int) Part{
		"floats": func(rows, in int) Part { return Part{Weight: stored("w", rows, in), Bias: stored("bias", rows)} },
		"4 bit":  coded,
	} {
		t.Run(name, func(t *testing.T) {
			whole := WeightSpec{Name: "w", Out: []int{24, 8}, In: in, Count: 1, Parts: []Part{f(24, in), f(8, in)}}
			want, bias := rowsOf(t, whole)
			fused := WeightSpec{Name: "w", Out: []int{24, 8}, In: in, Count: 1, Parts: []Part{f(32, in)}}
			wantFused, _ := rowsOf(t, fused)
			total := make([][]float32, len(want))
			for r := range ranks {
				col := whole
				col.Shard, col.Out = ColPar, []int{12, 8} // the second has rows that both ranks hold
				got, b := local(t, col, r, ranks)
				if d := slices.Concat(want[12*r:12*r+12], want[24:32]); !equalRows(got, d) {
					t.Errorf("rank %d: other rows", r)
				}
				if !slices.Equal(b, slices.Concat(bias[12*r:12*r+12], bias[24:32])) {
					t.Errorf("rank %d: biases %v", r, b)
				}
				col = fused
				col.Shard, col.Out = ColPar, []int{12, 4}
				if got, _ := local(t, col, r, ranks); !equalRows(got, slices.Concat(wantFused[12*r:12*r+12], wantFused[24+4*r:28+4*r])) {
					t.Errorf("rank %d: other rows of one tensor", r)
				}
				row := whole
				row.Shard, row.In = RowPar, in/ranks
				got, b = local(t, row, r, ranks)
				for i := range got {
					total[i] = append(total[i], got[i]...)
				}
				if (b != nil) != (r == 0) {
					t.Errorf("rank %d: biases %v", r, b)
				}
			}
			if !equalRows(total, want) {
				t.Error("the ranks' columns are not the file's")
			}
		})
	}
}

func local(t *testing.T, s WeightSpec, r, n int) ([][]float32, []float32) {
	t.Helper()
	s, err := s.Local(r, n)
	if err != nil {
		t.Fatal(err)
	}
	return rowsOf(t, s)
}

func equalRows(a, b [][]float32) bool {
	return slices.EqualFunc(a, b, func(x, y []float32) bool {
		return slices.EqualFunc(x, y, func(u, v float32) bool { return math.Float32bits(u) == math.Float32bits(v) })
	})
}

// TestLocalRefuses: what does not divide is an error with the name and the sizes.
func TestLocalRefuses(t *testing.T) {
	floats := func(rows, in int) Part { return Part{Weight: stored("w", rows, in)} }
	permuted := floats(8, 64)
	permuted.Perm = []int32{0, 2, 4, 6, 1, 3, 5, 7}
	for want, s := range map[string]WeightSpec{
		"10 stored rows for 4 on each of 2":          {Out: []int{4}, In: 64, Shard: ColPar, Parts: []Part{floats(10, 64)}},
		"do not divide into groups of 32":            {Out: []int{8}, In: 16, Shard: RowPar, Parts: []Part{coded(8, 32)}},
		"shape [8 63] does not divide among 2":       {Out: []int{8}, In: 31, Shard: RowPar, Parts: []Part{floats(8, 63)}},
		"not supported across ranks":                 {Out: []int{4}, In: 64, Shard: ColPar, Parts: []Part{permuted}},
		fmt.Sprintf("%d tensors for %d parts", 2, 3): {Out: []int{4, 4, 4}, In: 64, Shard: ColPar, Parts: []Part{floats(8, 64), floats(8, 64)}},
	} {
		s.Name = "layer"
		if _, err := s.Local(0, 2); err == nil || !strings.Contains(err.Error(), "split layer: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
