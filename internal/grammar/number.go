package grammar

// Where in a number of JSON a frame is.
const (
	numberStart int32 = iota
	numberMinus
	numberZero
	numberWhole
	numberPoint
	numberFraction
	numberE
	numberSign
	numberExponent
)

// mostDigits bounds a number: a model that goes round in digits comes to an end.
const mostDigits = 40

// inDigits takes a byte of a number, or one behind it: nothing but what follows marks its end.
func (u *Budget) inDigits(dst []way, f *frame, b byte) []way {
	digit, fraction := b-'0' <= 9, f.shape.kinds&number != 0
	at := int32(-1)
	switch f.n {
	case numberStart, numberMinus:
		switch {
		case b == '-' && f.n == numberStart:
			at = numberMinus
		case b == '0':
			at = numberZero
		case digit:
			at = numberWhole
		}
	case numberZero, numberWhole:
		switch {
		case digit && f.n == numberWhole:
			at = numberWhole
		case b == '.' && fraction:
			at = numberPoint
		case b|0x20 == 'e' && fraction:
			at = numberE
		}
	case numberPoint, numberFraction:
		switch {
		case digit:
			at = numberFraction
		case b|0x20 == 'e' && f.n == numberFraction:
			at = numberE
		}
	case numberE, numberSign, numberExponent:
		switch {
		case digit:
			at = numberExponent
		case (b == '-' || b == '+') && f.n == numberE:
			at = numberSign
		}
	}
	if at >= 0 {
		if f.seen < mostDigits {
			g := *f
			g.n, g.seen = at, f.seen+1
			dst = u.to(dst, &g)
		}
		return dst
	}
	switch f.n {
	case numberZero, numberWhole, numberFraction, numberExponent:
		return u.step(dst, way{top: f.next}, b)
	}
	return dst
}
