package kernel

// Scan is the recurrence of state space models of one head over N tokens in a row, for the DeltaLanes value columns of one block
// of state. Of token t, row t of K, Q, V and Y and entry t of Gate are used; strides are in floats.
//
//	S = g·S + k⊗v    y = q·S
//
// Sums run over KDim in ascending order, whatever N is: tokens may come in several calls. State is [KDim][DeltaLanes]. With Wide,
// N is 1 and Gate has a factor per number of the state, in its order.
type Scan struct {
	State            []float32
	K, Q, V, Y, Gate []float32
	N, KDim          int
	KStride, QStride int
	VStride, YStride int
	GStride          int
	Wide             bool
}

// Run does the tokens and leaves the state after the last one.
func (s *Scan) Run() {
	if s.N == 0 || s.KDim == 0 {
		return
	}
	last := s.N - 1
	_, _, _ = s.State[:s.KDim*DeltaLanes], s.K[:last*s.KStride+s.KDim], s.Q[:last*s.QStride+s.KDim]
	_, _, _ = s.V[:last*s.VStride+DeltaLanes], s.Y[:last*s.YStride+DeltaLanes], s.Gate[:last*s.GStride+1]
	if s.Wide {
		if s.N != 1 {
			panic("kernel: Scan: a factor per number of the state is for one token")
		}
		_ = s.Gate[:s.KDim*DeltaLanes]
	}
	if !scanAsm(s) {
		s.generic()
	}
}

func (s *Scan) generic() {
	for t := range s.N {
		k, q, v := s.K[t*s.KStride:][:s.KDim], s.Q[t*s.QStride:][:s.KDim], s.V[t*s.VStride:][:DeltaLanes]
		var y [DeltaLanes]float32
		for i, f := range k {
			row := s.State[i*DeltaLanes:][:DeltaLanes]
			for j := range row {
				g := s.Gate[t*s.GStride]
				if s.Wide {
					g = s.Gate[i*DeltaLanes+j]
				}
				row[j] = g*row[j] + f*v[j]
				y[j] += row[j] * q[i]
			}
		}
		copy(s.Y[t*s.YStride:], y[:])
	}
}

// Decays fills dst, [rows][DeltaLanes], with exp(a·by), where by has one factor per lane.
func Decays(dst, a, by []float32) {
	same(len(dst), len(a), len(a))
	by = by[:DeltaLanes]
	if len(dst)%DeltaLanes != 0 {
		panic("kernel: Decays: not whole rows")
	}
	if len(dst) == 0 {
		return
	}
	if !timesAsm(dst, a, by) {
		for i, v := range a {
			dst[i] = v * by[i%DeltaLanes]
		}
	}
	ExpSum(dst, dst, 0)
}

// KeyDelta is Delta with a decay per row of the state: entry i of row t of Gate is the factor of row i, and row t of KG is K
// times that. GStride is that of Gate and KG, BStride that of Beta.
//
//	δ = β·(v - (k∘g)·S)    S = g∘S + k⊗δ    y = q·S
type KeyDelta struct {
	State            []float32
	K, Q, V, Y       []float32
	Gate, KG, Beta   []float32
	N, KDim          int
	KStride, VStride int // of K and Q; of V
	YStride, GStride int
	BStride          int
}

// Run does the tokens and leaves the state after the last one.
func (d *KeyDelta) Run() {
	if d.N == 0 || d.KDim == 0 {
		return
	}
	last := d.N - 1
	_, _, _ = d.State[:d.KDim*DeltaLanes], d.K[:last*d.KStride+d.KDim], d.Q[:last*d.KStride+d.KDim]
	_, _, _ = d.V[:last*d.VStride+DeltaLanes], d.Y[:last*d.YStride+DeltaLanes], d.Beta[:last*d.BStride+1]
	_, _ = d.Gate[:last*d.GStride+d.KDim], d.KG[:last*d.GStride+d.KDim]
	if !keyDeltaAsm(d) {
		d.generic()
	}
}

func (d *KeyDelta) generic() {
	for t := range d.N {
		k, q := d.K[t*d.KStride:][:d.KDim], d.Q[t*d.KStride:][:d.KDim]
		g, kg := d.Gate[t*d.GStride:][:d.KDim], d.KG[t*d.GStride:][:d.KDim]
		var sum, delta, y [DeltaLanes]float32
		for i, f := range kg {
			for j, s := range d.State[i*DeltaLanes:][:DeltaLanes] {
				sum[j] += s * f
			}
		}
		for j, v := range d.V[t*d.VStride:][:DeltaLanes] {
			delta[j] = d.Beta[t*d.BStride] * (v - sum[j])
		}
		for i, f := range k {
			row := d.State[i*DeltaLanes:][:DeltaLanes]
			for j := range row {
				row[j] = g[i]*row[j] + f*delta[j]
				y[j] += row[j] * q[i]
			}
		}
		copy(d.Y[t*d.YStride:], y[:])
	}
}
