package backend

// Mix makes Out streams of In that lie side by side in the columns, with coefficients c of every row's own:
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

// ScaleLike checks the op of that name.
func (c Check) ScaleLike(x, like Array) {
	if x.Rows() != like.Rows() {
		fail("ScaleLike: %d and %d rows", x.Rows(), like.Rows())
	}
}
