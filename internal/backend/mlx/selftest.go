package mlx

import (
	"fmt"
	"math"
	"slices"

	B "hearth/internal/backend"
)

// check is one op with operands small enough to know the answer.
type check struct {
	name string
	run  func() handle
	want []float32
}

// selfTest computes every op the backend uses and compares: a library whose functions take other arguments than the layout says
// gives other numbers, or none.
func (l *lib) selfTest() error {
	for _, c := range l.checks() {
		if err := l.try(&c); err != nil {
			return fmt.Errorf("MLX %s (%s, called as %s) fails its self-test at %w; MLX 0.30 to 0.32 are known to work: %s", l.version, l.path, l.layout, err, install)
		}
	}
	return nil
}

func (l *lib) try(c *check) error {
	defer l.release()
	got := make([]float32, len(c.want))
	h := c.run()
	n := 1
	for _, d := range l.shape(h) {
		n *= d
	}
	if l.err == nil && n != len(got) {
		return fmt.Errorf("%s: %d numbers, want %d", c.name, n, len(got))
	}
	l.download(h, got)
	if err := l.takeErr(); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	for i, v := range got {
		if d := math.Abs(float64(v - c.want[i])); !(d <= 1e-3*max(1, math.Abs(float64(c.want[i])))) {
			return fmt.Errorf("%s: number %d is %g, want %g", c.name, i, v, c.want[i])
		}
	}
	return nil
}

func (l *lib) checks() []check {
	return slices.Concat(l.elementwise(), l.moves(), l.products(), l.fast(), l.choices())
}

// choices are what drawing tokens and quantised keys and values need besides, and functions that MLX calls back.
func (l *lib) choices() []check {
	x := func() handle { return upload(l, []float32{1, 2, 3, 4}, f32, 2, 2) }
	ramp := make([]float32, 32) // whole numbers up to 255 are their own codes
	for i := range ramp {
		ramp[i] = float32(8 * i)
	}
	ramp[31] = 255
	all := []check{
		{"min", func() handle { return l.reduce(fnMin, x(), 1) }, []float32{1, 3}},
		{"argmax", func() handle { return l.reduce(fnArgmax, upload(l, []float32{1, 3, 2, 3}, f32, 1, 4), 1) }, []float32{1}},
		{"round", func() handle { return l.do(fnRound, uintptr(upload(l, []float32{-1.5, .5, 2.4}, f32, 3)), 0) }, []float32{-2, 0, 2}},
		{"cumsum", func() handle { return l.cumulative(x(), true) }, []float32{1, 3, 3, 7}},
		{"cumsum of what is before", func() handle { return l.cumulative(x(), false) }, []float32{0, 1, 0, 3}},
		{"quantised keys", func() handle {
			f := newForm(B.KVPolicy{Bits: 8}, 1, 32, 32)
			return l.numbers(&f, l.coded(&f, upload(l, ramp, f32, 1, 1, 1, 32), 1), 1, f32)
		}, ramp},
	}
	if l.compiles {
		all = append(all, check{"compile", func() handle {
			return l.group(groupKey{op: "twice"}, func(in []handle) handle { return l.add(in[0], in[0]) }, x())
		}, []float32{2, 4, 6, 8}})
	}
	return all
}

func (l *lib) elementwise() []check {
	x := func() handle { return upload(l, []float32{1, 2, 3, 4}, f32, 2, 2) }
	un := func(name string, f fn, of float32, want float64) check {
		return check{name, func() handle { return l.un(f, upload(l, []float32{of}, f32, 1)) }, []float32{float32(want)}}
	}
	two := func(name string, f fn, want ...float32) check {
		return check{name, func() handle { return l.bin(f, x(), l.num(2)) }, want}
	}
	return []check{
		two("add", fnAdd, 3, 4, 5, 6), two("subtract", fnSubtract, -1, 0, 1, 2), two("multiply", fnMultiply, 2, 4, 6, 8),
		two("divide", fnDivide, .5, 1, 1.5, 2), two("maximum", fnMaximum, 2, 2, 3, 4), two("minimum", fnMinimum, 1, 2, 2, 2),
		two("less", fnLess, 1, 0, 0, 0), two("greater", fnGreater, 0, 0, 1, 1),
		un("sigmoid", fnSigmoid, 1, 1/(1+math.Exp(-1))), un("tanh", fnTanh, 1, math.Tanh(1)), un("erf", fnErf, 1, math.Erf(1)),
		un("exp", fnExp, 1, math.E), un("expm1", fnExpm1, 1, math.E-1), un("log1p", fnLog1p, 1, math.Ln2), un("sqrt", fnSqrt, 9, 3),
		un("rsqrt", fnRsqrt, 4, .5), un("square", fnSquare, 3, 9), un("abs", fnAbs, -3, 3), un("negative", fnNegative, 3, -3),
		{"astype", func() handle { return l.cast(l.cast(upload(l, []float32{1.00390625}, f32, 1), bf16), f32) }, []float32{1}},
		{"where", func() handle { return l.where(l.bin(fnLess, x(), l.num(3)), x(), l.num(0)) }, []float32{1, 2, 0, 0}},
		{"softmax", func() handle { return l.softmax(upload(l, []float32{0, 0, 0, 0}, f32, 1, 4), 1) }, []float32{.25, .25, .25, .25}},
		{"sum", func() handle { return l.reduce(fnSum, x(), 1) }, []float32{3, 7}},
		{"mean", func() handle { return l.reduce(fnMean, x(), 0) }, []float32{2, 3}},
		{"max", func() handle { return l.reduce(fnMax, x(), 1) }, []float32{2, 4}},
	}
}

func (l *lib) moves() []check {
	x := func() handle { return upload(l, []float32{1, 2, 3, 4}, f32, 2, 2) }
	ids := func(v ...int32) handle { return upload(l, v, i32, len(v)) }
	order := func() handle { return upload(l, []float32{3, 1, 2, 1}, f32, 1, 4) }
	return []check{
		{"reshape", func() handle { return l.reshape(x(), 4) }, []float32{1, 2, 3, 4}},
		{"transpose", func() handle { return l.transpose(x(), 1, 0) }, []float32{1, 3, 2, 4}},
		{"slice", func() handle { return l.slice(x(), 1, 1, 2) }, []float32{2, 4}},
		{"slice_update", func() handle { return l.paste(x(), upload(l, []float32{9, 9}, f32, 1, 2), 0, 1, 1, 2) }, []float32{1, 2, 9, 9}},
		{"concatenate", func() handle { return l.concat(0, x(), x()) }, []float32{1, 2, 3, 4, 1, 2, 3, 4}},
		{"take", func() handle { return l.take(x(), ids(1, 0, 1), 0) }, []float32{3, 4, 1, 2, 3, 4}},
		{"take_along_axis", func() handle { return l.takeAlong(x(), l.reshape(ids(1, 0), 2, 1), 1) }, []float32{2, 3}},
		{"sort", func() handle { return l.do(fnSort, uintptr(order()), 1) }, []float32{1, 1, 2, 3}},
		{"argsort", func() handle { return l.do(fnArgsort, uintptr(order()), 1) }, []float32{1, 3, 2, 0}},
		{"zeros", func() handle { return l.zeros(f32, 1, 3) }, []float32{0, 0, 0}},
		{"array_set", func() handle { return l.again(x()) }, []float32{1, 2, 3, 4}},
	}
}

// products: row r of the quantised matrices has the code r in all of 64 columns.
func (l *lib) products() []check {
	const in, rows = 64, 8
	codes := func(experts int) handle {
		w := make([]byte, 0, experts*rows*in/2)
		for i := range experts * rows * in / 2 {
			w = append(w, byte(i/(in/2)%rows*0x11))
		}
		return upload(l, w, u32, experts*rows, in/8)
	}
	same := func(v float32, n int) []float32 { return slices.Repeat([]float32{v}, n) }
	affine := func() *block {
		return &block{scheme: scheme{"affine", 4, 64}, w: codes(1), scales: upload(l, same(.5, rows), f32, rows, 1), biases: upload(l, same(-1, rows), f32, rows, 1)}
	}
	ones := func(shape ...int) handle { return upload(l, same(1, in), f32, shape...) }
	var want, table, picked []float32
	for r := range rows {
		want = append(want, in*(.5*float32(r)-1))
		table = append(table, same(.5*float32(r)-1, in)...)
	}
	for _, scale := range []float32{2, 1} {
		for r := range rows {
			picked = append(picked, in*scale*float32(r))
		}
	}
	return []check{
		{"matmul", func() handle {
			x := upload(l, []float32{1, 2, 3, 4}, f32, 2, 2)
			return l.bin(fnMatmul, x, x)
		}, []float32{7, 10, 15, 22}},
		{"quantized_matmul", func() handle { return l.quantised(ones(1, in), affine()) }, want},
		{"quantized_matmul of mxfp4", func() handle {
			w := &block{scheme: scheme{"mxfp4", 4, 32}, w: codes(1), scales: upload(l, slices.Repeat([]byte{127}, 2*rows), u8, rows, 2)}
			return l.quantised(ones(1, in), w)
		}, []float32{0, 32, 64, 96, 128, 192, 256, 384}},
		{"dequantize", func() handle {
			w := affine()
			return l.dequantised(w.w, w.scales, w.biases, w.scheme, f32)
		}, table},
		{"gather_qmm", func() handle {
			w := &block{scheme: scheme{"affine", 4, 64}, w: l.reshape(codes(2), 2, rows, in/8),
				scales: upload(l, slices.Concat(same(1, rows), same(2, rows)), f32, 2, rows, 1), biases: l.zeros(f32, 2, rows, 1)}
			return l.gathered(ones(1, 1, 1, in), w, upload(l, []int32{1, 0}, i32, 1, 2))
		}, picked},
		{"gather_mm", func() handle {
			w := upload(l, []float32{1, 0, 0, 1, 0, 2, 2, 0}, f32, 2, 2, 2)
			return l.gathered(upload(l, []float32{3, 4}, f32, 1, 1, 1, 2), &block{w: w}, upload(l, []int32{1, 0}, i32, 1, 2))
		}, []float32{8, 6, 3, 4}},
	}
}

// fast: queries of zeros see all keys alike, so attention is the mean of what is visible.
func (l *lib) fast() []check {
	const width = 64
	rows := func(v ...float32) handle {
		var x []float32
		for _, f := range v {
			x = append(x, slices.Repeat([]float32{f}, width)...)
		}
		return upload(l, x, f32, 1, 1, len(v), width)
	}
	attend := func(causal bool, mask []bool, sinks []float32) func() handle {
		return func() handle {
			var m, s handle
			if mask != nil {
				m = upload(l, mask, 0, 2, 2)
			}
			if sinks != nil {
				s = upload(l, sinks, f32, 1)
			}
			return l.slice(l.attend(rows(0, 0), rows(1, 2), rows(1, 3), .5, causal, m, s), 3, 0, 1)
		}
	}
	vector := func(v ...float32) handle { return upload(l, v, f32, len(v)) }
	rms := math.Sqrt(12.5)
	return []check{
		{"rms_norm", func() handle { return l.normed(upload(l, []float32{3, 4}, f32, 1, 2), vector(1, 2), 0) },
			[]float32{float32(3 / rms), float32(8 / rms)}},
		{"layer_norm", func() handle {
			return l.layerNormed(upload(l, []float32{1, 3}, f32, 1, 2), vector(1, 2), vector(0, 1), 0)
		},
			[]float32{-1, 3}},
		{"rope", func() handle {
			return l.roped(upload(l, []float32{1, 0, 1, 0}, f32, 1, 1, 2, 2), 2, false, 1, vector(1))
		},
			[]float32{float32(math.Cos(1)), float32(math.Sin(1)), float32(math.Cos(2)), float32(math.Sin(2))}},
		{"attention", attend(false, nil, nil), []float32{2, 2}},
		{"causal attention", attend(true, nil, nil), []float32{1, 2}},
		{"masked attention", attend(false, []bool{true, true, false, true}, nil), []float32{2, 3}},
		{"attention with sinks", attend(true, nil, []float32{0}), []float32{.5, 4. / 3}},
	}
}
