package kernel

import "math"

func bf16(f float32) uint16 {
	u := math.Float32bits(f)
	if f != f {
		return uint16(u>>16) | 0x40 // keep it a quiet NaN when the low half held the payload
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// dotLanes is how many sums a dot keeps: element i goes to lane i mod dotLanes.
const dotLanes = 32

func dotGeneric(a, b []float32) float32 {
	var lane [dotLanes]float32
	for i := range a {
		lane[i%dotLanes] += a[i] * b[i]
	}
	return sumDot(&lane)
}

// sumDot adds up four vectors of eight lanes, then the lanes.
func sumDot(l *[dotLanes]float32) float32 {
	var f [8]float32
	for i := range f {
		f[i] = (l[i] + l[8+i]) + (l[16+i] + l[24+i])
	}
	return sumLanes(&f)
}

func widen(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

func sumLanes(l *[8]float32) float32 {
	return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
}

// exp constants: e^x = 2^n · e^r with n = round(x·log2 e) and r = x - n·ln 2 in two parts, then the degree-6 Taylor-like
// polynomial of Cephes expf (error below 2 units in the last place over the reduced range).
const (
	expLo = -87.33654 // below: 0; results would leave the normal range
	expHi = 88.37626  // above: +Inf
	log2e = 1.44269504
	ln2Hi = 0.693359375
	ln2Lo = -2.12194440e-4
	expP0 = 1.9875691500e-4
	expP1 = 1.3981999507e-3
	expP2 = 8.3334519073e-3
	expP3 = 4.1665795894e-2
	expP4 = 1.6666665459e-1
	expP5 = 5.0000001201e-1
)

func exp32(x float32) float32 {
	switch {
	case x != x:
		return x
	case x < expLo:
		return 0
	case x > expHi:
		return float32(math.Inf(1))
	}
	n := float32(math.RoundToEven(float64(x * log2e)))
	r := x - n*ln2Hi
	r -= n * ln2Lo
	p := float32(expP0)
	p = p*r + expP1
	p = p*r + expP2
	p = p*r + expP3
	p = p*r + expP4
	p = p*r + expP5
	p = p*(r*r) + r + 1
	return p * math.Float32frombits(uint32(int32(n)+127)<<23)
}

func sumGroups(sum, x []float32, group int) {
	for g := range sum {
		var lane [8]float32
		for i, v := range x[g*group:][:group] {
			lane[i&7] += v
		}
		sum[g] = sumLanes(&lane)
	}
}

// tiny is the largest value of a group that counts as zero: below it 127/max could overflow.
const tiny = 1e-30

func quantizeRow(q []int8, scale, sum []float32, offset []int32, x []float32, group int) {
	if quantizeAsm(q, scale, sum, offset, x, group) {
		return
	}
	quantizeGeneric(q, scale, sum, offset, x, group)
}

// surplus is what offsets hold for every unit of Σq: 128, of groups of 16 -12.
func surplus(group int) int32 {
	if group == 16 {
		return -12
	}
	return 128
}

func quantizeGeneric(q []int8, scale, sum []float32, offset []int32, x []float32, group int) {
	for g := range scale {
		v, out := x[g*group:][:group], q[g*group:][:group]
		var top float32
		for _, f := range v {
			top = max(top, float32(math.Abs(float64(f))))
		}
		if !(top >= tiny) {
			clear(out)
			scale[g], sum[g], offset[g] = top*0, top*0, 0 // NaN stays visible
			continue
		}
		inv := 127 / top
		var s int32
		for i, f := range v {
			out[i] = int8(math.RoundToEven(float64(f * inv)))
			s += int32(out[i])
		}
		scale[g] = top / 127
		sum[g] = scale[g] * float32(s)
		offset[g] = s * surplus(group)
	}
}
