package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/quant"
	"hearth/internal/regular"
)

// foreign is how a tool other than MLX stores the tensors of a quantised module, and how they become ours. Modules that
// have none of its keys are stored as MLX stores them, most often as plain floats.
type foreign struct {
	keys  []string // suffixes, one of which every quantised module has
	needs []string // further suffixes that it has
	may   []string // and may have
	drop  []string // and may have without meaning for us: activation scales, shapes
	// check says whether convert will do, given that keys and needs are there.
	check func(m module, w Want) error
	// convert builds weight, scales, biases and scheme. Tensors that only change name or type still refer to mapped bytes.
	convert func(m module, w Want) B.Part
}

// unread maps the ends of tensor names to the tools that write them, whose formats are not supported.
var unread = map[string]string{
	".tq_packed": "JANGTQ (TurboQuant)", ".qweight": "AWQ or GPTQ, which config.json does not say", ".weight_packed": "compressed-tensors, which config.json does not say",
	".weight.absmax": "bitsandbytes", ".trellis": "EXL3", ".q_weight": "EXL2", ".codebooks": "AQLM", ".Qidxs": "QuIP#", ".W_q": "HQQ",
}

// unreadable says which tensor of the folder has a format that is not read.
func (s *source) unreadable() error {
	for _, name := range slices.Sorted(maps.Keys(s.names)) {
		for end, tool := range unread {
			if !strings.HasSuffix(name, end) || s.quant.foreign != nil && slices.Contains(s.quant.foreign.suffixes(), end) {
				continue
			}
			return &LoadError{Tensor: s.names[name], Problem: fmt.Sprintf("tensor %s is stored as by %s, which is not supported", regular.Clip(s.names[name]), tool), Hint: mlxHint}
		}
	}
	return nil
}

// suffixes are all names of a module's tensors.
func (f *foreign) suffixes() []string { return slices.Concat(f.keys, f.needs, f.may, f.drop) }

// module is the tensors of one quantised module by what they are called after its path; first names it in errors.
type module struct {
	f     *foreign
	first *B.Tensor
	file  string
	t     map[string]*B.Tensor
}

// module finds the tensors of a module that another tool quantised; ok is false for any other.
func (s *source) module(path string) (m module, ok bool) {
	f := s.quant.foreign
	if f == nil {
		return m, false
	}
	m = module{f: f, t: map[string]*B.Tensor{}}
	for _, k := range f.keys {
		if t, file := s.tensor(path + k); t != nil && m.first == nil {
			m.first, m.file, m.t[f.keys[0]] = t, file, t
		}
	}
	if m.first == nil {
		return m, false
	}
	for _, k := range slices.Concat(f.needs, f.may, f.drop) {
		if t, _ := s.tensor(path + k); t != nil {
			m.t[k] = t
		}
	}
	return m, true
}

// check lists what is wrong with the module's tensors.
func (m module) check(w Want) []Fault {
	for _, k := range m.f.needs {
		if m.t[k] == nil {
			return []Fault{{Kind: Missing, Tensor: w.Path + k, Text: "the weight is quantised"}}
		}
	}
	if err := m.f.check(m, w); err != nil {
		return []Fault{{Kind: Misshapen, Tensor: m.first.Name, File: m.file, Text: err.Error()}}
	}
	return nil
}

// expect compares a tensor's type and two-dimensional shape.
func expect(t *B.Tensor, rows, cols int, types ...string) error {
	if !slices.Contains(types, t.DType) {
		return fmt.Errorf("%s is %s, expected %s", t.Name, t.DType, types[0])
	}
	if !slices.Equal(t.Shape, []int{rows, cols}) {
		return fmt.Errorf("%s has shape %v, expected [%d %d]", t.Name, t.Shape, rows, cols)
	}
	return nil
}

// rows is the number of stored rows if t has that many as w wants, and two dimensions.
func rows(t *B.Tensor, w Want) (int, error) {
	if len(t.Shape) != 2 || !w.fits(t.Shape[0]) {
		return 0, fmt.Errorf("expected %d rows, found shape %v", w.Rows*max(w.Ranks, 1), t.Shape)
	}
	return t.Shape[0], nil
}

// as is a tensor's bytes read as another type.
func as(t *B.Tensor, dt quant.DType, shape ...int) *B.Tensor {
	return &B.Tensor{Name: t.Name, DType: string(dt), Shape: shape, Bytes: t.Bytes, Release: t.Release}
}

// words is a matrix of codes, read as MLX stores it.
func words(t *B.Tensor, rows int) *B.Tensor {
	return as(t, quant.U32, rows, len(t.Bytes)/4/max(rows, 1))
}

// e4m3Types and e8m0Types are how files call bytes of these types.
var (
	e4m3Types  = []string{"F8_E4M3", "U8"}
	e8m0Types  = []string{"F8_E8M0", "U8"}
	floatTypes = []string{"BF16", "F16", "F32"}
	intTypes   = []string{"I32", "U32"}
)

// packedInts: compressed-tensors "pack-quantized". Codes as in MLX with the middle of their range for zero.
var packedInts = foreign{
	keys: []string{".weight_packed"}, needs: []string{".weight_scale"},
	may: []string{".weight_zero_point", ".weight_g_idx"}, drop: []string{".weight_shape"},
	check: func(m module, w Want) error {
		p, s := m.t[".weight_packed"], m.t[".weight_scale"]
		if m.t[".weight_zero_point"] != nil {
			return fmt.Errorf("codes with zero points are not supported")
		}
		if m.t[".weight_g_idx"] != nil {
			return fmt.Errorf("columns that are reordered before they are grouped are not supported")
		}
		n, err := rows(p, w)
		if err != nil {
			return err
		}
		bits := p.Shape[1] * 32 / w.In
		if bits != 4 && bits != 8 {
			return fmt.Errorf("%d words per row of %d columns, expected codes of 4 or 8 bits", p.Shape[1], w.In)
		}
		if err := expect(p, n, w.In*bits/32, intTypes...); err != nil {
			return err
		}
		return groups(s, n, w.In, bits)
	},
	convert: func(m module, w Want) B.Part {
		p, s := m.t[".weight_packed"], m.t[".weight_scale"]
		n := p.Shape[0]
		bits := p.Shape[1] * 32 / w.In
		scheme := quant.Scheme{Mode: quant.Affine, Bits: bits, Group: w.In / s.Shape[1]}
		zeros := numbers(s)
		for i, x := range zeros {
			zeros[i] = -float32(int(1)<<(bits-1)) * x
		}
		biases := floats(s.Name, quant.DType(s.DType), zeros, s.Shape...)
		return B.Part{Scheme: scheme, Weight: words(p, n), Scales: s, Biases: biases}
	},
}

// groups checks affine scales of n rows.
func groups(s *B.Tensor, n, in, bits int) error {
	if len(s.Shape) != 2 || s.Shape[1] <= 0 || in%s.Shape[1] != 0 {
		return fmt.Errorf("%s has shape %v, which does not divide %d columns into groups", s.Name, s.Shape, in)
	}
	if err := expect(s, n, s.Shape[1], floatTypes...); err != nil {
		return err
	}
	return quant.Scheme{Mode: quant.Affine, Bits: bits, Group: in / s.Shape[1]}.Check(in)
}

func floats(name string, dt quant.DType, x []float32, shape ...int) *B.Tensor {
	t := &B.Tensor{Name: name, DType: string(dt), Shape: shape, Bytes: make([]byte, len(x)*dt.Size())}
	quant.PutFloats(t.Bytes, dt, x)
	return t
}

// packedMXFP4: compressed-tensors "mxfp4-pack-quantized", MLX's layout under other names.
var packedMXFP4 = foreign{
	keys: []string{".weight_packed"}, needs: []string{".weight_scale"}, drop: []string{".weight_shape"},
	check: func(m module, w Want) error {
		return checkE2M1(m.t[".weight_packed"], m.t[".weight_scale"], w, 32, e8m0Types)
	},
	convert: func(m module, w Want) B.Part {
		return partE2M1(quant.MXFP4, m.t[".weight_packed"], m.t[".weight_scale"], w)
	},
}

func checkE2M1(codes, scales *B.Tensor, w Want, group int, types []string) error {
	n, err := rows(codes, w)
	if err != nil {
		return err
	}
	if w.In%group != 0 {
		return fmt.Errorf("%d columns do not divide into groups of %d", w.In, group)
	}
	if err := expect(codes, n, w.In/2, "U8"); err != nil {
		return err
	}
	return expect(scales, n, w.In/group, types...)
}

func partE2M1(mode quant.Mode, codes, scales *B.Tensor, w Want) B.Part {
	s, _ := mode.Default()
	n := codes.Shape[0]
	return B.Part{Scheme: s, Weight: words(codes, n), Scales: as(scales, quant.U8, n, w.In/s.Group)}
}

// packedNVFP4: compressed-tensors "nvfp4-pack-quantized". Its global scale divides.
var packedNVFP4 = foreign{
	keys: []string{".weight_packed"}, needs: []string{".weight_scale", ".weight_global_scale"},
	drop: []string{".weight_shape", ".input_global_scale"},
	check: func(m module, w Want) error {
		if err := checkE2M1(m.t[".weight_packed"], m.t[".weight_scale"], w, 16, e4m3Types); err != nil {
			return err
		}
		_, err := single(m.t[".weight_global_scale"])
		return err
	},
	convert: func(m module, w Want) B.Part {
		p := partE2M1(quant.NVFP4, m.t[".weight_packed"], m.t[".weight_scale"], w)
		g, _ := single(m.t[".weight_global_scale"])
		p.Global = floats(m.first.Name, quant.F32, []float32{quant.GlobalUnit / g}, 1)
		return p
	},
}

// modelopt: NVIDIA's NVFP4 export. Its second scale multiplies.
var modelopt = foreign{
	keys: []string{".weight_scale"}, needs: []string{".weight", ".weight_scale_2"},
	drop: []string{".input_scale", ".k_scale", ".v_scale"},
	check: func(m module, w Want) error {
		if err := checkE2M1(m.t[".weight"], m.t[".weight_scale"], w, 16, e4m3Types); err != nil {
			return err
		}
		_, err := single(m.t[".weight_scale_2"])
		return err
	},
	convert: func(m module, w Want) B.Part {
		p := partE2M1(quant.NVFP4, m.t[".weight"], m.t[".weight_scale"], w)
		g, _ := single(m.t[".weight_scale_2"])
		p.Global = floats(m.first.Name, quant.F32, []float32{quant.GlobalUnit * g}, 1)
		return p
	},
}

// single reads the one float32 of a tensor, and refuses what cannot be a global scale.
func single(t *B.Tensor) (float32, error) {
	if t.DType != "F32" || len(t.Bytes) != 4 {
		return 0, fmt.Errorf("%s is %s of shape %v, expected one F32", t.Name, t.DType, t.Shape)
	}
	x := numbers(t)[0]
	if !(x > 1e-30 && x < 1e30) {
		return 0, fmt.Errorf("%s is %g", t.Name, x)
	}
	return x, nil
}

// blockFP8: bytes of e4m3 with a power of two per 32×32 block, or per 32 columns of each row.
var blockFP8 = foreign{
	keys: []string{".weight_scale_inv", ".scale"}, needs: []string{".weight"},
	check: func(m module, w Want) error {
		codes, s := m.t[".weight"], m.first
		n, err := rows(codes, w)
		if err != nil {
			return err
		}
		if w.In%32 != 0 {
			return fmt.Errorf("%d columns do not divide into groups of 32", w.In)
		}
		if err := expect(codes, n, w.In, e4m3Types...); err != nil {
			return err
		}
		blocks := n
		if len(s.Shape) == 2 && s.Shape[0] != n {
			blocks = (n + 31) / 32
		}
		if err := expect(s, blocks, w.In/32, append(e8m0Types, "F32")...); err != nil {
			return err
		}
		_, err = powers(s)
		return err
	},
	convert: func(m module, w Want) B.Part {
		codes := m.t[".weight"]
		n, g := codes.Shape[0], w.In/32
		stored, _ := powers(m.first)
		scales := &B.Tensor{Name: m.first.Name, DType: string(quant.U8), Shape: []int{n, g}, Bytes: stored}
		if m.first.Shape[0] != n {
			scales.Bytes = make([]byte, 0, n*g)
			for r := range n {
				scales.Bytes = append(scales.Bytes, stored[r/32*g:(r/32+1)*g]...)
			}
		}
		s, _ := quant.MXFP8.Default()
		return B.Part{Scheme: s, Weight: words(codes, n), Scales: scales}
	},
}

// floatFP8: bytes of e4m3 with floats that multiply: one for all, one for each row, or one for each block of 128×128. They become
// bfloat16, rounded once, as in mlx-lm's models that take such files. Single modules of a folder may be stored so.
var floatFP8 = foreign{
	keys: []string{".weight_scale_inv", ".weight_scale"}, needs: []string{".weight"}, drop: []string{".activation_scale", ".input_scale"},
	check: func(m module, w Want) error {
		codes, s := m.t[".weight"], m.first
		n, err := rows(codes, w)
		if err != nil {
			return err
		}
		if err := expect(codes, n, w.In, e4m3Types...); err != nil {
			return err
		}
		if !slices.Contains(floatTypes, s.DType) {
			return fmt.Errorf("%s is %s, expected %s", s.Name, s.DType, floatTypes[0])
		}
		if fp8Scale(s, n, w.In) == nil {
			return fmt.Errorf("%s has shape %v, expected one number, one for each of %d rows, or [%d %d] for blocks of 128x128", s.Name, s.Shape, n, (n+127)/128, (w.In+127)/128)
		}
		return nil
	},
	convert: func(m module, w Want) B.Part {
		codes, s := m.t[".weight"], m.first
		n := codes.Shape[0]
		at := fp8Scale(s, n, w.In)
		scales := numbers(s)
		t := &B.Tensor{Name: codes.Name, DType: string(quant.BF16), Shape: codes.Shape, Bytes: make([]byte, 2*n*w.In)}
		eachHead(n, func(r int) {
			row := make([]float32, w.In)
			for c := range row {
				row[c] = quant.E4M3(codes.Bytes[r*w.In+c]) * scales[at(r, c)]
			}
			quant.PutFloats(t.Bytes[2*r*w.In:], quant.BF16, row)
		})
		return B.Part{Weight: t}
	},
}

// fp8Scale tells which of its scales a weight has; nil: the shape is none that is known.
func fp8Scale(s *B.Tensor, rows, cols int) func(r, c int) int {
	switch across := (cols + 127) / 128; {
	case product(s.Shape) == 1:
		return func(int, int) int { return 0 }
	case slices.Equal(s.Shape, []int{(rows + 127) / 128, across}):
		return func(r, c int) int { return r/128*across + c/128 }
	case slices.Equal(s.Shape, []int{rows, 1}):
		return func(r, _ int) int { return r }
	}
	return nil
}

// powers gives a tensor of powers of two as exponents with bias 127.
func powers(t *B.Tensor) ([]byte, error) {
	if t.DType != "F32" {
		return t.Bytes, nil
	}
	x := numbers(t)
	e := make([]byte, len(x))
	for i, v := range x {
		u := math.Float32bits(v)
		if u&0x807fffff != 0 || u == 0 || u == 0x7f800000 {
			return nil, fmt.Errorf("%s holds %g, which is no power of two", t.Name, v)
		}
		e[i] = byte(u >> 23)
	}
	return e, nil
}
