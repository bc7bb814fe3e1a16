package backend

// Mix weights streams that stand side by side, every row with numbers of its own: out of In of them it makes Out,
// y_k = Σ_j (c[k·In+j] + Plus)·x_j, j ascending.
type Mix struct {
	In, Out int
	Plus    float32
}

// Mix checks the op of that name.
func (c Check) Mix(x, coefs Array, s *Mix) {
	if s.In <= 0 || s.Out <= 0 || x.Cols()%s.In != 0 || coefs.Cols() != s.In*s.Out || coefs.Rows() != x.Rows() {
		fail("Mix: %d×%d in %d streams with %d×%d numbers for %d", x.Rows(), x.Cols(), s.In, coefs.Rows(), coefs.Cols(), s.Out)
	}
}

// Match checks the op of that name.
func (c Check) Match(x, like Array) {
	if x.Rows() != like.Rows() {
		fail("Match: %d and %d rows", x.Rows(), like.Rows())
	}
}
