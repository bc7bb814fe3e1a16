package kernel

import (
	"math"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// Outliers: a group of a row has one step for all its numbers, so that one large number takes the resolution of the others. Where
// a group stands out of its row, its largest numbers therefore have 15 bits, 256·high + code, with a step that leaves 8 bits for
// the others. Columns are chosen by quads, four of them, which is what products take at a time: these add the high parts of the
// listed quads to a group's integer sum before anything is rounded.
//
// How many quads a group gives up is what makes the sum of two costs least: of the square of what limits the codes then, and of
// those of the quads. The unit is the square of what usually limits groups of the row, their harmonic mean, which a few large
// groups hardly change. Nothing but the row's own numbers decides.
const (
	// outlierCost is that of a quad. docs/formats.md has what others gave.
	outlierCost = 0.65
	// Groups below that many costs are not looked at: what they would gain is little.
	leastOutlier = 2
	// Numbers are at most outlierReach times what limits the codes, high parts at most 63: their products fit sums of 16 bits.
	outlierReach = 126
	highUnit     = 256
)

// setOutliers fills row i: as Fast does, then again the groups that stand out.
func (a *Acts) setOutliers(i int, x []float32) {
	at := i * a.groups
	scale, quads := a.scale[at:][:a.groups], a.quads[at:][:a.groups]
	quantizeRow(a.q[i*a.stride:][:a.cols], scale, a.sum[at:][:a.groups], a.offset[at:][:a.groups], x, a.group)
	clear(quads)
	var inverse, n float32
	for _, s := range scale {
		if s > 0 {
			inverse += 1 / s
			n++
		}
	}
	cost := outlierCost * (n / inverse) * (n / inverse)
	if !(cost*127*127 <= math.MaxFloat32) { // numbers are too large to be squared, or all are zeros
		return
	}
	for g, s := range scale {
		if s*s > leastOutlier*cost && s <= math.MaxFloat32 {
			a.split(i, g, x[g*a.group:][:a.group], cost*127*127)
		}
	}
}

// splitArgs is what split's routine gets of a group, and what it gives back unless it chose nothing.
type splitArgs struct {
	x, q, high unsafe.Pointer
	group      int
	cost       float32
	chosen     uint32
	limit      float32
	codes      int32 // Σq
	all        int32 // Σ(256·high + q)
}

// split gives the largest numbers of group g of row i 15 bits if that is worth its cost.
func (a *Acts) split(i, g int, x []float32, cost float32) {
	from := i*a.stride + g*a.group
	var s splitArgs
	s.x, s.q, s.high = unsafe.Pointer(&x[0]), unsafe.Pointer(&a.q[from]), unsafe.Pointer(&a.high[from])
	s.group, s.cost = a.group, cost
	if !splitAsm(&s) {
		s.generic(x, a.q[from:][:a.group], a.high[from:][:a.group])
	}
	if s.chosen == 0 {
		return
	}
	at := i*a.groups + g
	a.quads[at], a.scale[at] = s.chosen, s.limit/127
	a.sum[at], a.offset[at] = a.scale[at]*float32(s.all), s.codes*surplus(a.group)
}

const signBit, quadBits = 1 << 31, 31

// generic is the specification.
func (s *splitArgs) generic(x []float32, q, high []int8) {
	var tops [32]uint32 // of the quads: numbers without a sign are in the order of their bits, the lowest of which are which quad it is
	for k := range len(x) / 4 {
		v := x[4*k:][:4]
		top := max(math.Float32bits(v[0])&^signBit, math.Float32bits(v[1])&^signBit, math.Float32bits(v[2])&^signBit, math.Float32bits(v[3])&^signBit)
		tops[k] = top&^quadBits | uint32(k)
	}
	s.chosen, s.limit = fewest(tops[:len(x)/4], s.cost)
	if s.chosen == 0 {
		return
	}
	inverse := 127 / s.limit
	for k, v := range x {
		c := int32(math.RoundToEven(float64(v * inverse)))
		h := (c + highUnit/2) >> 8 // nothing in quads that are not chosen
		c = max(c-h*highUnit, -127)
		q[k], high[k] = int8(c), int8(h)
		s.codes += c
		s.all += c + h*highUnit
	}
}

// fewest chooses quads by their largest numbers, a bit each, and tells what limits the others then.
func fewest(tops []uint32, cost float32) (chosen uint32, limit float32) {
	var taken uint32
	least, floor := float32(math.MaxFloat32), float32(0)
	for k := range tops {
		var top uint32
		for _, t := range tops {
			top = max(top, t)
		}
		if k == 0 {
			floor = math.Float32frombits(top|quadBits) / outlierReach
		}
		now := max(math.Float32frombits(top|quadBits), floor)
		if v := float32(now*now) + float32(cost*float32(k)); v < least { // the conversions forbid fusing
			least, chosen, limit = v, taken, now
		}
		if cost*float32(k+1) >= least {
			break
		}
		taken |= 1 << (top & quadBits)
		tops[top&quadBits] = 0
	}
	return chosen, limit
}

// outlierQuad is where in a group the codes of a quad are: its lines in the planes, and how far they are shifted, right and left.
type outlierQuad struct{ line, line1, right, right1, left1, _, _, _ uint32 }

// outlierLists are what tiles of rows have above 8 bits: for every group the quads that any row of the tile has, with zeros for
// the others, which change no sum, so that a row's product is the same in any tile.
type outlierLists struct {
	tile    int            // rows of a tile
	set     []atomic.Int32 // rows of the tile that are set; the last one lists
	heads   []uint32       // [tile][groups] where the group's first record begins, in bytes; 0: it has none
	records []uint32       // a first one that counts for nothing, then [tile][quads of a row]
}

// record is the length of one: where the quad is in places, whether another of the group follows, four high parts of each row.
func (l *outlierLists) record() int { return 2 + l.tile }

func (a *Acts) resetOutliers(rows int) {
	l := &a.lists
	l.tile = outlierTile()
	tiles := (rows + l.tile - 1) / l.tile
	a.high, a.quads = grow(a.high, rows*a.stride), grow(a.quads, rows*a.groups)
	l.set = grow(l.set, tiles)
	for i := range l.set {
		l.set[i].Store(0)
	}
	l.heads, l.records = grow(l.heads, tiles*a.groups), grow(l.records, (1+tiles*a.cols/4)*l.record())
}

// tile tells where tile t begins and how many rows it has.
func (a *Acts) tile(t int) (from, rows int) {
	from = t * a.lists.tile
	return from, min(a.rows-from, a.lists.tile)
}

// listed counts row i as set, and lists the outliers of its tile if it is the last one.
func (a *Acts) listed(i int) {
	l := &a.lists
	t := i / l.tile
	from, rows := a.tile(t)
	if int(l.set[t].Add(1)) < rows {
		return
	}
	size := l.record()
	heads, quads, next := l.heads[t*a.groups:][:a.groups], a.quads[from*a.groups:][:rows*a.groups], (1+t*a.cols/4)*size
	var of [maxTile]uint32 // quads of the rows
	for g := range heads {
		var union uint32
		for r := range rows {
			of[r] = quads[r*a.groups+g]
			union |= of[r]
		}
		heads[g] = 0
		if union == 0 {
			continue
		}
		for heads[g] = uint32(4 * next); union != 0; next += size {
			q := bits.TrailingZeros32(union)
			union &= union - 1
			record := l.records[next:][:2+rows]
			record[0], record[1] = uint32(q*int(unsafe.Sizeof(outlierQuad{}))), union
			at := from*a.stride + g*a.group + 4*q
			for r, own := range of[:rows] {
				record[2+r] = *(*uint32)(unsafe.Pointer(&a.high[at])) & -(own >> q & 1)
				at += a.stride
			}
		}
	}
}

// mustBeListed panics unless the tile of row r has all its rows.
func (a *Acts) mustBeListed(r int) {
	t := r / a.lists.tile
	if _, rows := a.tile(t); int(a.lists.set[t].Load()) != rows {
		panic("kernel: product of rows that are not set")
	}
}

// quadOf is where quad q of a group is.
func quadOf(f Format, q int) (o outlierQuad) {
	part := uint32(q / 8 * 64 * f.bits())
	q %= 8
	for i, p := range layoutOf(f) {
		per := 8 / p.width
		line, shift := part+uint32(p.first+q/per)*64, q%per*p.width-p.at
		if i == 0 {
			o.line, o.right = line, uint32(shift)
		} else {
			o.line1, o.right1, o.left1 = line, uint32(max(shift, 0)), uint32(max(-shift, 0))
		}
	}
	return o
}

func layoutOf(f Format) []plane {
	if f == Codes8 {
		return []plane{{8, 0, 0}}
	}
	return planesOf(f)
}

// places are where quads are, by format.
var places = func() (p [FloatE2M1][32]outlierQuad) {
	for _, f := range []Format{Codes4, Codes8, Codes2, Codes3, Codes5, Codes6, CodesE2M1} {
		for q := range p[f] {
			p[f][q] = quadOf(f, q)
		}
	}
	return p
}()

// outliers is what a product with the rows from r on reads.
func (m *Matrix) outliers(a *Acts, r int) outlierArgs {
	l := &a.lists
	return outlierArgs{
		records: unsafe.Pointer(&l.records[r%l.tile]), places: unsafe.Pointer(&places[m.spec.Format]),
		heads: int(uintptr(unsafe.Pointer(&l.heads[r/l.tile*a.groups]))), record: 4 * l.record(), back: -4 * (r % l.tile),
	}
}
