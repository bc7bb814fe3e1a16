package kernel

import "unsafe"

// Floats is Bytes for n floats.
func (m *Memory) Floats(n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(m.Bytes(n*4)))), n)
}

// MulAdd adds a · b to y.
func MulAdd(y, a, b []float32) {
	same(len(y), len(a), len(b))
	if len(y) > 0 && mulAddAsm(y, a, b) {
		return
	}
	for i := range y {
		y[i] += a[i] * b[i]
	}
}

// SigmoidMul writes dst = x/(1+exp(-gate)). dst may be gate or x.
func SigmoidMul(dst, gate, x []float32) {
	same(len(dst), len(gate), len(x))
	var e [64]float32
	for at := 0; at < len(dst); at += len(e) {
		n := min(len(dst)-at, len(e))
		Scale(e[:n], gate[at:at+n], -1)
		ExpSum(e[:n], e[:n], 0)
		for i, v := range e[:n] {
			dst[at+i] = x[at+i] / (1 + v)
		}
	}
}

// DeltaLanes is how many value columns of a head share a block of its state: a cache line.
const DeltaLanes = 16

// Delta is the gated delta rule of one head over N tokens in a row, for the DeltaLanes value columns of one block of
// state. Of token t, row t of K, Q, V and Y and entry t of Gate and Beta are used; strides are in floats. K and Q are
// normalised, Beta is past its sigmoid, Gate is the factor that the state decays by.
//
//	δ = β·(v - g·(k·S))    S = g·S + k⊗δ    y = q·S
//
// Sums run over KDim in ascending order, or over its even and its odd half, whatever N is: tokens may come in several calls.
// State is [KDim][DeltaLanes].
//
// A step reads and writes the state once, which lies in the first level cache for as long as the call lasts: the sums k·S
// of the next token are taken while the state is in registers.
type Delta struct {
	State            []float32
	K, Q, V, Y       []float32
	Gate, Beta       []float32
	N, KDim          int
	KStride, VStride int // of K and Q; of V
	YStride, GStride int // of Y; of Gate and Beta
}

// Run does the tokens and leaves the state after the last one.
func (d *Delta) Run() {
	if d.N == 0 || d.KDim == 0 {
		return
	}
	last := d.N - 1
	_, _, _ = d.State[:d.KDim*DeltaLanes], d.K[:last*d.KStride+d.KDim], d.Q[:last*d.KStride+d.KDim]
	_, _ = d.V[:last*d.VStride+DeltaLanes], d.Y[:last*d.YStride+DeltaLanes]
	_, _ = d.Gate[:last*d.GStride+1], d.Beta[:last*d.GStride+1]
	if !deltaAsm(d) {
		d.generic()
	}
}

func (d *Delta) generic() {
	for t := range d.N {
		k, q := d.K[t*d.KStride:][:d.KDim], d.Q[t*d.KStride:][:d.KDim]
		g, beta := d.Gate[t*d.GStride], d.Beta[t*d.GStride]
		var sum, delta, y [DeltaLanes]float32
		for i, f := range k {
			for j, s := range d.State[i*DeltaLanes:][:DeltaLanes] {
				sum[j] += s * f
			}
		}
		for j, v := range d.V[t*d.VStride:][:DeltaLanes] {
			delta[j] = beta * (v - g*sum[j])
		}
		for i, f := range k {
			row := d.State[i*DeltaLanes:][:DeltaLanes]
			for j := range row {
				row[j] = g*row[j] + f*delta[j]
				y[j] += row[j] * q[i]
			}
		}
		copy(d.Y[t*d.YStride:], y[:])
	}
}
