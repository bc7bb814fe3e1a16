package grammar

// way is one state of the automaton: the frame that takes the next byte, nil when the form is complete, and how many blanks came
// in a row.
type way struct {
	top    *frame
	blanks uint8
}

// frame is an entry of the stack: what is expected now. Below it is what comes after. Frames do not change, so ways share them.
type frame struct {
	op     op
	next   *frame
	depth  uint16   // frames below
	text   string   // of a literal, what is left of it
	shape  *shape   // of values, objects and arrays
	pick   *choices // of a choice: those from lo up to hi begin with the n bytes that were written
	lo, hi int32
	n      int32
	seen   uint64 // members that an object has, a bit for each of the first 64 properties
}

type op uint8

const (
	literal       op = iota // text, as it is
	spacedLiteral           // the same, blanks may come before it
	value                   // of shape
	inString                // behind the quote that opens it
	inEscape                // behind a backslash
	inHex                   // in \u, n digits are left
	inNumber                // see number.go: n is where, seen how long it is
	oneOf                   // spellings of a value
	oneKey                  // of an object's member
	otherKey                // of a member that is none of the properties
	colon
	object      // behind its brace: a member or the end
	objectMore  // behind a comma: a member
	objectAfter // behind a member: a comma or the end
	array       // behind its bracket: an element or the end
	arrayAfter  // behind an element: a comma or the end
)

const (
	mostBlanks = 64  // in a row: a model that writes nothing else comes to an end
	mostWays   = 64  // more are forgotten, which leaves less that is allowed
	mostFrames = 256 // deeper nesting is not allowed
)

func (f *frame) push(g frame) *frame {
	g.next = f
	if f != nil {
		g.depth = f.depth + 1
	}
	return &g
}

// become is a frame in the place of f.
func (f *frame) become(g frame) *frame { return f.next.push(g) }

// advance takes a byte on every way and returns the ways that go on, in the memory of dst.
func (u *Budget) advance(dst, ways []way, b byte) []way {
	dst = dst[:0]
	for _, w := range ways {
		dst = u.step(dst, w, b)
	}
	return dst
}

// to appends a way unless it is there.
func (u *Budget) to(dst []way, top *frame) []way {
	if u.spend(len(dst)); len(dst) == mostWays {
		return dst
	}
	for _, w := range dst {
		if w.blanks == 0 && (w.top == top || w.top != nil && top != nil && *w.top == *top) {
			return dst
		}
	}
	return append(dst, way{top: top})
}

func blank(b byte) bool { return b == ' ' || b == '\n' || b == '\t' || b == '\r' }

// step appends where a byte leads on one way.
func (u *Budget) step(dst []way, w way, b byte) []way {
	f := w.top
	u.spend(1)
	if f == nil { // what follows the form is free
		return u.to(dst, nil)
	}
	if blank(b) && f.op.spaced() {
		if w.blanks < mostBlanks && len(dst) < mostWays {
			dst = append(dst, way{f, w.blanks + 1})
		}
		return dst
	}
	switch f.op {
	case literal, spacedLiteral:
		if f.text[0] != b {
			return dst
		}
		if len(f.text) == 1 {
			return u.to(dst, f.next)
		}
		return u.to(dst, f.become(frame{op: literal, text: f.text[1:]}))
	case value:
		return u.begin(dst, f, b)
	case inString, inEscape, inHex:
		return u.inText(dst, f, b)
	case inNumber:
		return u.inDigits(dst, f, b)
	case oneOf, oneKey:
		return u.choose(dst, f, b)
	case otherKey:
		return u.differ(dst, f, b)
	case colon:
		if b == ':' {
			return u.to(dst, f.become(frame{op: value, shape: f.shape}))
		}
	case object, objectMore, objectAfter:
		return u.member(dst, f, b)
	case array:
		if b == ']' {
			return u.to(dst, f.next)
		}
		if f.shape.items == nil {
			return dst
		}
		return u.begin(dst, f.become(frame{op: arrayAfter, shape: f.shape}).push(frame{op: value, shape: f.shape.items}), b)
	case arrayAfter:
		switch b {
		case ',':
			return u.to(dst, f.push(frame{op: value, shape: f.shape.items}))
		case ']':
			return u.to(dst, f.next)
		}
	}
	return dst
}

// spaced tells whether blanks may come.
func (o op) spaced() bool {
	switch o {
	case spacedLiteral, value, colon, object, objectMore, objectAfter, array, arrayAfter:
		return true
	}
	return false
}

// begin takes the first byte of a value. Alternatives have no alternatives themselves (see flatten).
func (u *Budget) begin(dst []way, f *frame, b byte) []way {
	s := f.shape
	u.spend(1)
	if len(s.any) > 0 {
		for _, alt := range s.any {
			if u.Spent() {
				break
			}
			dst = u.begin(dst, f.become(frame{op: value, shape: alt}), b)
		}
		return dst
	}
	if s.spellings != nil {
		return u.choose(dst, f.become(frame{op: oneOf, pick: s.spellings, hi: int32(len(s.spellings.texts))}), b)
	}
	switch {
	case b == '"' && s.kinds&text != 0:
		return u.to(dst, f.become(frame{op: inString}))
	case b == '{' && s.kinds&members != 0 && f.depth < mostFrames:
		return u.to(dst, f.become(frame{op: object, shape: s}))
	case b == '[' && s.kinds&elements != 0 && f.depth < mostFrames:
		return u.to(dst, f.become(frame{op: array, shape: s}))
	case b == 't' && s.kinds&boolean != 0:
		return u.to(dst, f.become(frame{op: literal, text: "true"[1:]}))
	case b == 'f' && s.kinds&boolean != 0:
		return u.to(dst, f.become(frame{op: literal, text: "false"[1:]}))
	case b == 'n' && s.kinds&null != 0:
		return u.to(dst, f.become(frame{op: literal, text: "null"[1:]}))
	case s.kinds&(integer|number) != 0:
		return u.inDigits(dst, f.become(frame{op: inNumber, n: numberStart, shape: s}), b)
	}
	return dst
}

// inText takes a byte of a string. Bytes of characters beyond ASCII are taken as they come.
func (u *Budget) inText(dst []way, f *frame, b byte) []way {
	switch f.op {
	case inEscape:
		switch b {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			return u.to(dst, f.become(frame{op: inString}))
		case 'u':
			return u.to(dst, f.become(frame{op: inHex, n: 4}))
		}
		return dst
	case inHex:
		if b-'0' > 9 && b|0x20-'a' > 5 {
			return dst
		}
		if f.n == 1 {
			return u.to(dst, f.become(frame{op: inString}))
		}
		return u.to(dst, f.become(frame{op: inHex, n: f.n - 1}))
	}
	switch {
	case b == '"':
		return u.to(dst, f.next)
	case b == '\\':
		return u.to(dst, f.become(frame{op: inEscape}))
	case b < ' ':
		return dst
	}
	return u.to(dst, f) // the same frame: see CallMatcher.Allowed
}

// choose takes a byte of one of several spellings.
func (u *Budget) choose(dst []way, f *frame, b byte) []way {
	lo, hi := f.pick.narrow(f.lo, f.hi, int(f.n), b)
	n := f.n + 1
	for ; lo < hi && len(f.pick.texts[lo]) == int(n); lo++ { // it comes before those that go on
		if f.open(lo) {
			dst = f.chosen(u, dst, lo)
		}
	}
	for i := lo; i < hi; i++ {
		u.spend(1)
		if f.open(i) {
			g := *f
			g.lo, g.hi, g.n = lo, hi, n
			return u.to(dst, &g)
		}
	}
	return dst
}

// differ takes a byte of a name that must not become one of the choices.
func (u *Budget) differ(dst []way, f *frame, b byte) []way {
	lo, hi := f.pick.narrow(f.lo, f.hi, int(f.n), b)
	name := f.become(frame{op: inString})
	u.spend(int(f.n))
	for _, c := range []byte(f.pick.texts[f.lo][1:f.n]) { // it may be in the middle of an escape
		name = u.inText(nil, name, c)[0].top
	}
	switch {
	case lo == hi:
		return u.inText(dst, name, b)
	case name.op == inString && b == '"':
		return dst
	}
	g := *f
	g.lo, g.hi, g.n = lo, hi, f.n+1
	return u.to(dst, &g)
}

// open tells whether a choice is still possible: an object has every member once, and none for which there is no value.
func (f *frame) open(i int32) bool {
	return f.op != oneKey || f.seen&bit(i) == 0 && f.shape.properties[i] != nil
}

// chosen goes on behind a complete spelling.
func (f *frame) chosen(u *Budget, dst []way, i int32) []way {
	switch {
	case f.op == oneKey:
		after := f.become(frame{op: objectAfter, shape: f.shape, seen: f.seen | bit(i)})
		return u.to(dst, after.push(frame{op: colon, shape: f.shape.properties[i]}))
	case f.pick.after != nil:
		return u.to(dst, f.pick.after(f.next, i))
	}
	return u.to(dst, f.next)
}

// bit is a property's bit in a set of members. Properties beyond the 64th have none: they may come twice, or not at all.
func bit(i int32) uint64 { return 1 << uint(i) }

// member takes a byte between the members of an object.
func (u *Budget) member(dst []way, f *frame, b byte) []way {
	s := f.shape
	switch {
	case b == '}' && f.op != objectMore:
		if s.required&^f.seen == 0 {
			return u.to(dst, f.next)
		}
	case b == ',' && f.op == objectAfter:
		if s.extra != nil || len(s.properties) > 64 || f.seen|s.closed != bit(int32(len(s.properties)))-1 {
			return u.to(dst, f.become(frame{op: objectMore, shape: s, seen: f.seen}))
		}
	case b == '"' && f.op != objectAfter:
		if s.keys != nil {
			dst = u.choose(dst, f.become(frame{op: oneKey, shape: s, seen: f.seen, pick: s.keys, hi: int32(len(s.keys.texts))}), b)
		}
		if s.extra != nil {
			after := f.become(frame{op: objectAfter, shape: s, seen: f.seen})
			name := frame{op: inString}
			if s.keys != nil {
				name = frame{op: otherKey, pick: s.keys, hi: int32(len(s.keys.texts)), n: 1}
			}
			dst = u.to(dst, after.push(frame{op: colon, shape: s.extra}).push(name))
		}
	}
	return dst
}
