package vision

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestWeigh compares weighing with a sum written plainly, at every length up to several vectors, and looks at the bytes around.
func TestWeigh(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for n := 1; n <= 70; n++ {
		for _, taps := range []int{1, 2, 5, 13} {
			stride := n + rng.IntN(9)
			src := make([]byte, stride*taps+n)
			for i := range src {
				src[i] = uint8(rng.UintN(256))
				if rng.IntN(3) == 0 {
					src[i] = 255
				}
			}
			// Weights as large as a filter's, so that sums leave 0 … 255 on both sides.
			weights := make([]int32, taps)
			for i := range weights {
				weights[i] = int32(rng.IntN(3<<fraction)/taps - 1<<fraction/taps)
			}
			want := make([]byte, n)
			for i := range want {
				s := int64(1 << (fraction - 1))
				for j, k := range weights {
					s += int64(src[j*stride+i]) * int64(k)
				}
				want[i] = uint8(min(max(s>>fraction, 0), 255))
			}
			for name, f := range map[string]func(dst, src []byte, stride int, weights []int32){"generic": weighGeneric, "fast": weigh} {
				got := bytes.Repeat([]byte{7}, n+32)
				f(got[16:16+n:16+n], src[:(taps-1)*stride+n:(taps-1)*stride+n], stride, weights)
				if !bytes.Equal(got[16:16+n], want) {
					t.Fatalf("%s: %d bytes of %d rows: %v, want %v", name, n, taps, got[16:16+n], want)
				}
				if !bytes.Equal(got[:16], bytes.Repeat([]byte{7}, 16)) || !bytes.Equal(got[16+n:], bytes.Repeat([]byte{7}, 16)) {
					t.Fatalf("%s: %d bytes: others were written", name, n)
				}
			}
		}
	}
}

// TestTranspose: every shape up to two blocks and a rest.
func TestTranspose(t *testing.T) {
	for rows := 1; rows <= 19; rows++ {
		for cols := 1; cols <= 19; cols++ {
			src := make([]byte, rows*cols)
			for i := range src {
				src[i] = uint8(i * 7)
			}
			dst := make([]byte, rows*cols)
			transpose(dst, rows, src, cols, rows, cols)
			for i, v := range src {
				if dst[i%cols*rows+i/cols] != v {
					t.Fatalf("%d by %d: byte %d", rows, cols, i)
				}
			}
		}
	}
}
