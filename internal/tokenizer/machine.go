package tokenizer

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2/syntax"
)

// machine is a compiled split expression. It is matched by backtracking, like the reference's and with the same choices,
// but counts its steps: an expression that goes back and forth without end gives up after so many for each byte of text,
// on a busy machine as on an idle one. The parser is regexp2's, whose own matcher is bounded by a clock only.
type machine struct {
	code  []instruction
	marks int
}

// instruction is a step of a machine. Those of a look-behind read leftwards.
type instruction struct {
	op       operation
	left     bool
	negative bool // of a look
	x, y     int  // where to go on; of a mark its number
	rune     rune
	text     []rune
	set      *runeSet
	min, max int // of a run
}

type operation uint8

const (
	opMatch operation = iota
	opFail
	opRune    // one rune
	opNotRune // any but one
	opSet
	opText
	opRun     // as many of set as there are, min to max, fewer when what follows fails
	opLazyRun // as few
	opHoldRun // as many, and no fewer
	opBranch  // x, or else y
	opJump
	opLook   // what stands up to x matches here, or not
	opAtomic // what stands up to x, in its first way only
	opMark   // notes the place under number x
	opMoved  // to y unless nothing was read since mark x
	opLineStart
	opLineEnd
	opTextStart
	opSearchStart
	opTextEnd
	opLastEnd // the end, or before a line break there
	opBoundary
	opNoBoundary
)

const (
	maxRegexCode = 1 << 14 // instructions of an expression
	// Steps of a search, for each byte of the text and besides: the known expressions take up to 60.
	regexSteps     = 400
	regexBaseSteps = 1 << 12
	// Ways that are kept open, likewise.
	regexWays     = 8
	regexBaseWays = 1 << 12
)

var errSteps = fmt.Errorf("the split expression takes more than %d steps or keeps more than %d ways open for a byte", regexSteps, regexWays)

// runeSet is a class of runes with a table of the low ones.
type runeSet struct {
	low  [utf8.RuneSelf]bool
	rest func(rune) bool
}

func newRuneSet(in func(rune) bool) *runeSet {
	s := &runeSet{rest: in}
	for r := range s.low {
		s.low[r] = in(rune(r))
	}
	return s
}

func (s *runeSet) has(r rune) bool {
	if r < utf8.RuneSelf {
		return s.low[r]
	}
	return s.rest(r)
}

// newMachine compiles an expression in regexp2's syntax.
func newMachine(pattern string) (*machine, error) {
	tree, err := syntax.Parse(pattern, syntax.ParseOptions{})
	if err != nil {
		return nil, err
	}
	m := &machine{}
	if err := m.compile(tree.Root); err != nil {
		return nil, err
	}
	m.emit(instruction{op: opMatch})
	return m, nil
}

func (m *machine) emit(in instruction) int {
	m.code = append(m.code, in)
	return len(m.code) - 1
}

var asserts = map[syntax.NodeType]operation{
	syntax.NtBol: opLineStart, syntax.NtEol: opLineEnd, syntax.NtBeginning: opTextStart, syntax.NtStart: opSearchStart,
	syntax.NtEnd: opTextEnd, syntax.NtEndZ: opLastEnd, syntax.NtBoundary: opBoundary, syntax.NtNonboundary: opNoBoundary,
	syntax.NtNothing: opFail,
}

// compile appends the code of a node, which goes on behind itself.
func (m *machine) compile(n *syntax.RegexNode) error {
	if len(m.code) > maxRegexCode {
		return fmt.Errorf("it is longer than %d steps", maxRegexCode)
	}
	left := n.Options&syntax.RightToLeft != 0
	switch n.T {
	case syntax.NtEmpty, syntax.NtUpdateBumpalong:
	case syntax.NtOne:
		m.emit(instruction{op: opRune, rune: n.Ch, left: left})
	case syntax.NtNotone:
		m.emit(instruction{op: opNotRune, rune: n.Ch, left: left})
	case syntax.NtSet:
		m.emit(instruction{op: opSet, set: newRuneSet(n.Set.Contains), left: left})
	case syntax.NtMulti:
		m.emit(instruction{op: opText, text: n.Str, left: left})
	case syntax.NtOneloop, syntax.NtNotoneloop, syntax.NtSetloop:
		m.run(opRun, n, left)
	case syntax.NtOnelazy, syntax.NtNotonelazy, syntax.NtSetlazy:
		m.run(opLazyRun, n, left)
	case syntax.NtOneloopatomic, syntax.NtNotoneloopatomic, syntax.NtSetloopatomic:
		m.run(opHoldRun, n, left)
	case syntax.NtConcatenate, syntax.NtGroup:
		return m.children(n)
	case syntax.NtCapture:
		if n.N != -1 {
			return errors.New("it has a balancing group, which is not supported")
		}
		return m.children(n)
	case syntax.NtAlternate:
		return m.alternate(n)
	case syntax.NtLoop, syntax.NtLazyloop:
		return m.loop(n)
	case syntax.NtPosLook, syntax.NtNegLook, syntax.NtAtomic:
		at := m.emit(instruction{op: opLook, negative: n.T == syntax.NtNegLook})
		if n.T == syntax.NtAtomic {
			m.code[at].op = opAtomic
		}
		if err := m.children(n); err != nil {
			return err
		}
		m.emit(instruction{op: opMatch})
		m.code[at].x = len(m.code)
	default:
		op, ok := asserts[n.T]
		if !ok {
			return errors.New("it has a construct that is not supported, such as a reference to a group")
		}
		m.emit(instruction{op: op})
	}
	return nil
}

func (m *machine) children(n *syntax.RegexNode) error {
	for _, c := range n.Children {
		if err := m.compile(c); err != nil {
			return err
		}
	}
	return nil
}

// run is a repeated class.
func (m *machine) run(op operation, n *syntax.RegexNode, left bool) {
	in := instruction{op: op, min: n.M, max: n.N, left: left}
	switch {
	case n.Set != nil:
		in.set = newRuneSet(n.Set.Contains)
	case n.T == syntax.NtNotoneloop || n.T == syntax.NtNotonelazy || n.T == syntax.NtNotoneloopatomic:
		in.set = newRuneSet(func(r rune) bool { return r != n.Ch })
	default:
		in.set = newRuneSet(func(r rune) bool { return r == n.Ch })
	}
	m.emit(in)
}

func (m *machine) alternate(n *syntax.RegexNode) error {
	var ends []int
	for i, c := range n.Children {
		branch := -1
		if i < len(n.Children)-1 {
			branch = m.emit(instruction{op: opBranch, x: len(m.code) + 1})
		}
		if err := m.compile(c); err != nil {
			return err
		}
		if branch >= 0 {
			ends = append(ends, m.emit(instruction{op: opJump}))
			m.code[branch].y = len(m.code)
		}
	}
	for _, at := range ends {
		m.code[at].x = len(m.code)
	}
	return nil
}

// loop repeats anything. A turn in which nothing is read is the last one.
func (m *machine) loop(n *syntax.RegexNode) error {
	for range n.M {
		before := len(m.code)
		if err := m.children(n); err != nil {
			return err
		}
		if len(m.code) == before {
			break // it is empty
		}
	}
	endless := n.N == math.MaxInt32
	var exits []int
	for i := n.M; i < n.N; i++ {
		branch := m.emit(instruction{op: opBranch})
		mark := m.marks
		m.marks++
		m.emit(instruction{op: opMark, x: mark})
		if err := m.children(n); err != nil {
			return err
		}
		moved := m.emit(instruction{op: opMoved, x: mark})
		exits = append(exits, branch)
		if endless {
			m.code[moved].y = branch
			break
		}
		exits = append(exits, m.emit(instruction{op: opJump}))
		m.code[moved].y = len(m.code)
	}
	for _, at := range exits {
		switch in := &m.code[at]; {
		case in.op == opJump:
			in.x = len(m.code)
		case n.T == syntax.NtLazyloop:
			in.x, in.y = len(m.code), at+1
		default:
			in.x, in.y = at+1, len(m.code)
		}
	}
	return nil
}

// regexLook is how many steps are done between two looks at the context.
const regexLook = 1 << 16

// search is the state of a search.
type search struct {
	*machine
	s     string
	from  int // where the match before ended
	steps int // left
	on    *watch
	stack []backtrack
	marks []int
}

// backtrack is what is done when an alternative fails: try another one, give back or take one rune of a repetition, or undo a
// mark.
type backtrack struct {
	kind  operation // opBranch, opRun, opLazyRun, opMark
	pc    int
	pos   int
	other int // opRun: no further back than this; opLazyRun: how many more; opMark: what the mark was
}

// find tells of the matches in s as regexp2 and Go's own package list them: an empty one right behind another counts for nothing.
// When the steps are spent it has told of those before, and gives errSteps.
func (m *machine) find(s string, on *watch, found func(from, to int)) error {
	g := &search{machine: m, s: s, steps: regexSteps*len(s) + regexBaseSteps, marks: make([]int, m.marks), on: on}
	last := -1
	for at := 0; ; {
		from, to, ok := g.search(at)
		g.from = to
		if g.steps < 0 {
			return errSteps
		}
		if !ok {
			return nil
		}
		if to > from || from != last {
			found(from, to)
			last = to
		}
		if at = to; to == from {
			if at == len(s) {
				return nil
			}
			_, n := utf8.DecodeRuneInString(s[at:])
			at += n
		}
	}
}

// search finds the first match that begins at a place or behind it.
func (g *search) search(at int) (from, to int, ok bool) {
	for {
		if to, ok = g.match(0, at); ok || at == len(g.s) || g.steps < 0 {
			return at, to, ok
		}
		_, n := utf8.DecodeRuneInString(g.s[at:])
		at += n
	}
}

// next reads a rune in the direction of an instruction; n is 0 at the end.
func (g *search) next(in *instruction, pos int) (r rune, n int) {
	if in.left {
		r, n = utf8.DecodeLastRuneInString(g.s[:pos])
		return r, -n
	}
	if pos < len(g.s) && g.s[pos] < utf8.RuneSelf {
		return rune(g.s[pos]), 1
	}
	return utf8.DecodeRuneInString(g.s[pos:])
}

// match runs from an instruction to opMatch.
func (g *search) match(pc, pos int) (end int, ok bool) {
	base := len(g.stack)
	for {
		if g.steps--; g.steps < 0 || len(g.stack) > regexWays*len(g.s)+regexBaseWays {
			g.steps, g.stack = -1, g.stack[:base]
			return 0, false
		}
		if g.steps%regexLook == 0 {
			g.on.pass(lookEvery)
		}
		in := &g.code[pc]
		pc++
		fits := true
		switch in.op {
		case opMatch:
			g.stack = g.stack[:base]
			return pos, true
		case opRune, opNotRune, opSet:
			r, n := g.next(in, pos)
			switch {
			case n == 0:
				fits = false
			case in.op == opSet:
				fits = in.set.has(r)
			default:
				fits = (r == in.rune) == (in.op == opRune)
			}
			pos += n
		case opText:
			pos, fits = g.text(in, pos)
		case opRun, opHoldRun, opLazyRun:
			pos, fits = g.runes(in, pc, pos)
		case opBranch:
			g.stack = append(g.stack, backtrack{opBranch, in.y, pos, 0})
			pc = in.x
		case opJump:
			pc = in.x
		case opMark:
			g.stack = append(g.stack, backtrack{opMark, in.x, 0, g.marks[in.x]})
			g.marks[in.x] = pos
		case opMoved:
			if g.marks[in.x] != pos {
				pc = in.y
			}
		case opLook:
			_, found := g.match(pc, pos)
			fits = found != in.negative
			pc = in.x
		case opAtomic:
			pos, fits = g.match(pc, pos)
			pc = in.x
		default:
			fits = g.holds(in.op, pos)
		}
		if fits {
			continue
		}
		if pc, pos, ok = g.retreat(base); !ok {
			return 0, false
		}
	}
}

// text reads a fixed text, which may end at pos.
func (g *search) text(in *instruction, pos int) (int, bool) {
	for i := range in.text {
		want := in.text[i]
		if in.left {
			want = in.text[len(in.text)-1-i]
		}
		r, n := g.next(in, pos)
		if g.steps--; n == 0 || r != want {
			return pos, false
		}
		pos += n
	}
	return pos, true
}

// runes reads a run of a class; pc is what follows it.
func (g *search) runes(in *instruction, pc, pos int) (int, bool) {
	most := in.max
	if in.op == opLazyRun {
		most = in.min
	}
	count, least := 0, pos
	for count < most {
		r, n := g.next(in, pos)
		if g.steps--; n == 0 || !in.set.has(r) || g.steps < 0 {
			break
		}
		pos += n
		if count++; count == in.min {
			least = pos
		}
	}
	if count < in.min {
		return pos, false
	}
	switch {
	case in.op == opRun && pos != least:
		g.stack = append(g.stack, backtrack{opRun, pc, pos, least})
	case in.op == opLazyRun && in.max > in.min:
		g.stack = append(g.stack, backtrack{opLazyRun, pc, pos, in.max - in.min})
	}
	return pos, true
}

// retreat goes back to the last choice that is left above base of the stack.
func (g *search) retreat(base int) (pc, pos int, ok bool) {
	for len(g.stack) > base {
		top := &g.stack[len(g.stack)-1]
		if g.steps--; g.steps < 0 {
			break
		}
		switch top.kind {
		case opBranch:
			pc, pos = top.pc, top.pos
			g.stack = g.stack[:len(g.stack)-1]
			return pc, pos, true
		case opMark:
			g.marks[top.pc] = top.other
			g.stack = g.stack[:len(g.stack)-1]
		case opRun:
			var n int
			if top.pos > top.other {
				_, n = utf8.DecodeLastRuneInString(g.s[:top.pos])
				n = -n
			} else {
				_, n = utf8.DecodeRuneInString(g.s[top.pos:])
			}
			top.pos += n
			pc, pos = top.pc, top.pos
			if top.pos == top.other {
				g.stack = g.stack[:len(g.stack)-1]
			}
			return pc, pos, true
		case opLazyRun:
			in := &g.code[top.pc-1]
			r, n := g.next(in, top.pos)
			if n == 0 || !in.set.has(r) {
				g.stack = g.stack[:len(g.stack)-1]
				continue
			}
			top.pos += n
			pc, pos = top.pc, top.pos
			if top.other--; top.other == 0 {
				g.stack = g.stack[:len(g.stack)-1]
			}
			return pc, pos, true
		}
	}
	g.stack = g.stack[:base]
	return 0, 0, false
}

func (g *search) holds(op operation, pos int) bool {
	s := g.s
	switch op {
	case opLineStart:
		return pos == 0 || s[pos-1] == '\n'
	case opLineEnd:
		return pos == len(s) || s[pos] == '\n'
	case opTextStart:
		return pos == 0
	case opSearchStart:
		return pos == g.from
	case opTextEnd:
		return pos == len(s)
	case opLastEnd:
		return pos == len(s) || pos == len(s)-1 && s[pos] == '\n'
	case opBoundary, opNoBoundary:
		before, n := utf8.DecodeLastRuneInString(s[:pos])
		after, k := utf8.DecodeRuneInString(s[pos:])
		return ((n > 0 && syntax.IsWordChar(before)) != (k > 0 && syntax.IsWordChar(after))) == (op == opBoundary)
	}
	return false // opFail
}
