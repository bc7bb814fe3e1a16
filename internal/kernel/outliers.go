package kernel

import (
	"math"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// Outliers: a group of a row has one step for all its numbers, so that one large number takes the resolution of the others. Where
// a group stands out of its row, its largest numbers are therefore stored in two parts, high·step + code·scale, with a step that
// leaves codes for the others only. Columns are chosen by quads, four of them, which is what products take at a time.
//
// How many quads a group gives up is what makes the sum of two costs least: of the square of what limits the codes then, and
// of outlierCost for every quad and for the group. The unit is the square of what usually limits groups of the row, the
// harmonic mean, which a few large groups hardly change. Nothing but the row's own numbers decides.
const (
	outlierCost = 0.5
	// Groups below that many costs are not looked at: a quad and the group cost two, and the rest of the group has steps as well.
	leastOutlier = 3.5
	// A step of high parts is twice what limits the codes, and highest of them are enough: their products fit sums of 16 bits.
	highest = 63
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
	for g, s := range scale {
		if s*s > leastOutlier*cost && s <= math.MaxFloat32 {
			a.split(i, g, x[g*a.group:][:a.group], cost*127*127)
		}
	}
}

// split stores group g of row i in two parts if that is worth its cost.
func (a *Acts) split(i, g int, x []float32, cost float32) {
	var tops [32]uint32 // of the quads: numbers without a sign are in the order of their bits, the lowest of which are which quad it is
	n := len(x) / 4
	for q := range n {
		v := x[4*q:][:4]
		top := max(math.Float32bits(v[0])&^signBit, math.Float32bits(v[1])&^signBit, math.Float32bits(v[2])&^signBit, math.Float32bits(v[3])&^signBit)
		tops[q] = top&^quadBits | uint32(q)
	}
	chosen, limit := fewest(tops[:n], cost)
	if chosen == 0 {
		return
	}
	var left [128]float32
	copy(left[:], x)
	step := 2 * limit
	inverse, total := 1/step, int32(0)
	high := a.high[i*a.stride+g*a.group:][:a.group]
	for m := chosen; m != 0; m &= m - 1 {
		q := bits.TrailingZeros32(m)
		for k := 4 * q; k < 4*q+4; k++ {
			h := float32(math.RoundToEven(float64(x[k] * inverse)))
			left[k] = x[k] - float32(step*h) // the conversion forbids fusing
			high[k] = int8(h)
			total += int32(h)
		}
	}
	at := i*a.groups + g
	quantizeRow(a.q[i*a.stride+g*a.group:][:a.group], a.scale[at:][:1], a.sum[at:][:1], a.offset[at:][:1], left[:a.group], a.group)
	a.sum[at] += float32(step * float32(total))
	a.quads[at], a.step[at] = chosen, step
}

const signBit, quadBits = 1 << 31, 31

// fewest chooses quads by their largest numbers, a bit each, and tells what limits the others then.
func fewest(tops []uint32, cost float32) (chosen uint32, limit float32) {
	var taken uint32
	least, first := float32(math.MaxFloat32), float32(0)
	for k := range len(tops) {
		var top uint32
		for _, t := range tops {
			top = max(top, t)
		}
		now := max(math.Float32frombits(top|quadBits), first/(2*highest))
		if k == 0 {
			first, least = now, now*now
		} else if v := now*now + cost*float32(k+1); v < least {
			least, chosen, limit = v, taken, now
		}
		if cost*float32(k+2) >= least {
			break
		}
		taken |= 1 << (top & quadBits)
		tops[top&quadBits] = 0
	}
	return chosen, limit
}

// outlierArgs is what a product of high parts gets: rows of a tile against whole panels, of the quads that are listed.
type outlierArgs struct {
	w       unsafe.Pointer // first panel
	groups  unsafe.Pointer // outlierGroup
	quads   unsafe.Pointer // numbers of quads in their groups, a byte each
	places  unsafe.Pointer // outlierQuad, by that number
	x       unsafe.Pointer // [quad][rows of a tile] four int8
	step    unsafe.Pointer // [group][rows of a tile] float32
	y       unsafe.Pointer
	listed  int // groups
	panels  int
	tile    int // bytes between quads of x, and groups of step
	panel   int // bytes
	group   int // bytes
	codes   int // bytes of a group before its scales
	yStride int
	wide    int // scales are float32
	masks   [2]uint32
	table   int // codes are those of e2m1
}

// outlierGroup is a group of which so many quads have high parts.
type outlierGroup struct{ quads, group uint32 }

// outlierQuad is where in a group the codes of a quad are: its lines in the planes, and how far they are shifted, right and left.
type outlierQuad struct{ line, line1, right, right1, left1, _, _, _ uint32 }

// outlierLists are what tiles of rows have in two parts: the groups and quads that any row of the tile has, with zeros for the
// others. Integer sums are not changed by these, so that a row's product is the same in any tile.
type outlierLists struct {
	tile   int            // rows of a tile
	set    []atomic.Int32 // rows of the tile that are set; the last one lists
	listed []int          // groups
	groups []outlierGroup // [tile][groups]
	step   []float32      // [tile][groups][rows]
	quads  []uint8        // [tile][quads of a row]
	x      []uint32       // [tile][quads of a row][rows]
}

func (a *Acts) resetOutliers(rows int) {
	l := &a.lists
	l.tile = outlierTile()
	tiles := (rows + l.tile - 1) / l.tile
	a.high, a.quads, a.step = grow(a.high, rows*a.stride), grow(a.quads, rows*a.groups), grow(a.step, rows*a.groups)
	l.set, l.listed = grow(l.set, tiles), grow(l.listed, tiles)
	for i := range l.set {
		l.set[i].Store(0)
	}
	l.groups, l.step = grow(l.groups, tiles*a.groups), grow(l.step, tiles*a.groups*l.tile)
	l.quads, l.x = grow(l.quads, tiles*a.cols/4), grow(l.x, tiles*a.cols/4*l.tile)
}

// tile tells where tile t begins and how many rows it has.
func (a *Acts) tile(t int) (from, rows int) {
	from = t * a.lists.tile
	return from, min(a.rows-from, a.lists.tile)
}

// listed counts row i as set, and lists the outliers of its tile if it is the last one.
func (a *Acts) listed(i int) {
	t := i / a.lists.tile
	from, rows := a.tile(t)
	if int(a.lists.set[t].Add(1)) < rows {
		return
	}
	l := &a.lists
	groups, steps := l.groups[t*a.groups:][:a.groups], l.step[t*a.groups*l.tile:][:a.groups*l.tile]
	numbers, x := l.quads[t*a.cols/4:][:a.cols/4], l.x[t*a.cols/4*l.tile:][:a.cols/4*l.tile]
	n, k := 0, 0
	for g := range a.groups {
		var union uint32
		for r := range rows {
			union |= a.quads[(from+r)*a.groups+g]
		}
		if union == 0 {
			continue
		}
		groups[n] = outlierGroup{uint32(bits.OnesCount32(union)), uint32(g)}
		for r := range rows {
			steps[n*l.tile+r] = 0
			if at := (from+r)*a.groups + g; a.quads[at] != 0 {
				steps[n*l.tile+r] = a.step[at]
			}
		}
		n++
		for ; union != 0; union &= union - 1 {
			q := bits.TrailingZeros32(union)
			numbers[k] = uint8(q)
			for r := range rows {
				has := a.quads[(from+r)*a.groups+g] >> q & 1
				x[k*l.tile+r] = *(*uint32)(unsafe.Pointer(&a.high[(from+r)*a.stride+g*a.group+4*q])) & -has
			}
			k++
		}
	}
	l.listed[t] = n
}

// outliers multiplies the codes of all rows and adds the high parts, as many panels at a time as stay in the second-level cache.
func (m *Matrix) outliers(y []float32, ldy int, a *Acts, r0, r1, p0, p1 int) {
	codes := *a
	codes.prec = Fast
	step := max(sharedBytes/m.panel, 1)
	for p := p0; p < p1; p += step {
		end, to := min(p+step, p1), y[p*PanelRows:]
		m.mul(to, ldy, &codes, r0, r1, p, end)
		for r := r0; r < r1; {
			t := r / a.lists.tile
			from, rows := a.tile(t)
			if int(a.lists.set[t].Load()) != rows {
				panic("kernel: product of rows that are not set")
			}
			n := min(from+rows, r1) - r
			if a.lists.listed[t] > 0 {
				m.addOutliers(to, ldy, a, r, n, p, end)
			}
			r += n
		}
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

// addOutliers adds the high parts of n rows of a tile, from row r on, to panels [p0, p1).
func (m *Matrix) addOutliers(y []float32, ldy int, a *Acts, r, n, p0, p1 int) {
	full := min(p1, m.spec.Rows/PanelRows)
	if p0 < full {
		m.outlierPanels(y[r*ldy:], ldy, a, r, n, p0, full-p0)
	}
	if full == p1 {
		return
	}
	var part [maxTile * PanelRows]float32
	y = y[r*ldy+(full-p0)*PanelRows:]
	cols := m.spec.Rows - full*PanelRows
	for i := range n {
		copy(part[i*PanelRows:][:cols], y[i*ldy:])
	}
	m.outlierPanels(part[:], PanelRows, a, r, n, full, 1)
	for i := range n {
		copy(y[i*ldy:][:cols], part[i*PanelRows:])
	}
}

// outlierPanels is addOutliers for whole panels, y starting with the first row and column.
func (m *Matrix) outlierPanels(y []float32, ldy int, a *Acts, r, n, p, panels int) {
	l, t := &a.lists, r/a.lists.tile
	args := outlierArgs{
		w: unsafe.Pointer(&m.data[p*m.panel]), groups: unsafe.Pointer(&l.groups[t*a.groups]), quads: unsafe.Pointer(&l.quads[t*a.cols/4]),
		places: unsafe.Pointer(&places[m.spec.Format]), listed: l.listed[t], tile: l.tile * 4, panel: m.panel, group: m.group, codes: m.codeBytes(), yStride: ldy * 4,
	}
	if m.spec.Scales == ScaleF32 {
		args.wide = 1
	}
	if m.spec.Format == CodesE2M1 {
		args.table = 1
	}
	for i, p := range layoutOf(m.spec.Format) {
		args.masks[i] = p.mask()
	}
	x, step := l.x[t*a.cols/4*l.tile+r%l.tile:], l.step[t*a.groups*l.tile+r%l.tile:]
	for i := 0; i < n; {
		args.panels = panels // which the routine counts down
		args.x, args.step, args.y = unsafe.Pointer(&x[i]), unsafe.Pointer(&step[i]), unsafe.Pointer(&y[i*ldy])
		k := outlierAsm(&args, n-i)
		if k == 0 {
			k = 1
			m.outlierGeneric(y[i*ldy:], &args, x[i:], step[i:], p, panels)
		}
		i += k
	}
}

// mask is the plane's bits of four codes.
func (p plane) mask() uint32 { return uint32(1<<p.width-1) << p.at * 0x01010101 }

// outlierGeneric is the specification, of one row: y = D·(weight scale · step) + y, group by group, with D = Σ code·high.
func (m *Matrix) outlierGeneric(y []float32, args *outlierArgs, x []uint32, step []float32, p, panels int) {
	groups := unsafe.Slice((*outlierGroup)(args.groups), args.listed)
	for i := range panels {
		w, out := m.data[(p+i)*m.panel:][:m.panel], y[i*PanelRows:][:PanelRows]
		q := 0
		for g, group := range groups {
			var dot [PanelRows]int32
			codes := w[int(group.group)*m.group:][:m.group]
			for range group.quads {
				at, high := &places[m.spec.Format][*(*uint8)(unsafe.Add(args.quads, q))], x[q*args.tile/4]
				for j := range dot {
					c := m.quadCodes(codes, at, j)
					for k := 0; k < 32; k += 8 {
						dot[j] += int32(c>>k&255) * int32(int8(high>>k))
					}
				}
				q++
			}
			for j := range out {
				out[j] += float32(dot[j]) * (m.scale(codes[m.codeBytes():], j) * step[g*args.tile/4])
			}
		}
	}
}

// quadCodes are the four codes of row j.
func (m *Matrix) quadCodes(group []byte, o *outlierQuad, j int) uint32 {
	planes := layoutOf(m.spec.Format)
	c := get32(group[o.line+uint32(4*j):]) >> o.right & planes[0].mask()
	if len(planes) > 1 {
		c |= get32(group[o.line1+uint32(4*j):]) >> o.right1 << o.left1 & planes[1].mask()
	}
	if m.spec.Format == CodesE2M1 {
		c = uint32(e2m1Codes12[c&15]) | uint32(e2m1Codes12[c>>8&15])<<8 | uint32(e2m1Codes12[c>>16&15])<<16 | uint32(e2m1Codes12[c>>24&15])<<24
	}
	return c
}
