package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strings"

	B "hearth/internal/backend"
	"hearth/internal/jsonc"
	"hearth/internal/quant"
	"hearth/internal/regular"
	"hearth/internal/safetensors"
)

// Names of an adapter's folder, as mlx-lm writes it.
const (
	adapterConfig = "adapter_config.json"
	adapterFile   = "adapters.safetensors"
)

// Adapter is what low-rank fine-tuning leaves beside a model: two small matrices for each of some modules, whose
// product is added to the module's own. Close it after the model it was loaded with.
type Adapter struct {
	Where string // for errors and listings

	rank  int
	scale float32
	file  *safetensors.File
}

// OpenAdapter reads the folder fsys; where is how errors call it. All errors are LoadErrors.
func OpenAdapter(fsys fs.FS, where string) (*Adapter, error) {
	a := &Adapter{Where: where}
	err := a.read(fsys)
	if err == nil {
		a.file, err = safetensors.Open(fsys, adapterFile)
		if errors.Is(err, fs.ErrNotExist) {
			err = &LoadError{File: adapterFile, Problem: "is missing", Hint: "give the folder that mlx-lm's training wrote"}
		}
	}
	if err != nil {
		return nil, blame(err, "adapter", where)
	}
	return a, nil
}

// Close unmaps the file.
func (a *Adapter) Close() error { return a.file.Close() }

func (a *Adapter) read(fsys fs.FS) error {
	b, err := regular.ReadFS(fsys, adapterConfig, maxConfigBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return &LoadError{File: adapterConfig, Problem: "is missing", Hint: "give a folder with adapter_config.json and adapters.safetensors in it"}
	} else if err != nil {
		return &LoadError{File: adapterConfig, Err: err}
	}
	var c struct {
		Kind string `json:"fine_tune_type"`
		PEFT string `json:"peft_type"`
		LoRA *struct {
			Rank  int    `json:"rank"`
			Scale *float `json:"scale"`
			Alpha *float `json:"alpha"`
		} `json:"lora_parameters"`
	}
	if err := json.Unmarshal(jsonc.WithoutBOM(b), &c); err != nil {
		return &LoadError{File: adapterConfig, Err: tidyJSON(err)}
	}
	fail := func(hint, format string, args ...any) error {
		return &LoadError{File: adapterConfig, Problem: fmt.Sprintf(format, args...), Hint: hint}
	}
	const fuse = "fuse it into the model with the program that made it"
	switch {
	case c.PEFT != "":
		return fail(fuse+", or convert it to mlx-lm's form", "adapters of PEFT (peft_type %s) are not supported", regular.Quote(c.PEFT))
	case c.Kind != "" && c.Kind != "lora":
		return fail(fuse, "fine_tune_type %s is not supported", regular.Quote(c.Kind))
	case c.LoRA == nil:
		return fail("", "lora_parameters is missing")
	case c.LoRA.Scale == nil && c.LoRA.Alpha != nil:
		return fail("divide alpha by the rank", "lora_parameters has alpha, but no scale")
	case c.LoRA.Scale == nil:
		return fail("", "lora_parameters has no scale")
	case math.IsNaN(float64(*c.LoRA.Scale)) || math.Abs(float64(*c.LoRA.Scale)) > 1e6:
		return fail("", "scale %g is out of range", float64(*c.LoRA.Scale))
	case c.LoRA.Rank <= 0 || c.LoRA.Rank > maxSize:
		return fail("", "rank %d is missing or out of range", c.LoRA.Rank)
	}
	a.rank, a.scale = c.LoRA.Rank, float32(*c.LoRA.Scale)
	return nil
}

// over is src with the adapter, under the tensor names that m uses.
func (a *Adapter) over(src Source, m Model) Source {
	s := &adapted{Source: src, a: a, names: map[string]string{}, used: map[string]bool{}}
	rename := renaming(m)
	for _, t := range a.file.Tensors {
		module, leaf := t.Name, ""
		for _, l := range []string{".lora_a", ".lora_b"} {
			if m, ok := strings.CutSuffix(t.Name, l); ok {
				module, leaf = m, l
			}
		}
		if leaf == "" {
			s.names[module] = t.Name
		} else if to := rename(module + ".weight"); to != "" { // else of a part that is left out
			s.names[strings.TrimSuffix(to, ".weight")+leaf] = t.Name
		}
	}
	return s
}

// adapted is a source whose parts have adapters.
type adapted struct {
	Source
	a     *Adapter
	names map[string]string // name in tags -> name in the file
	used  map[string]bool   // by name in tags
}

func (s *adapted) tensor(name string) *B.Tensor {
	t, ok := s.a.file.Tensor(s.names[name])
	if !ok {
		return nil
	}
	s.used[name] = true
	return &B.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Bytes: t.Bytes}
}

// adapts names the module whose adapter applies to w.
func (w *Want) adapts() string {
	if w.Of != "" {
		return w.Of
	}
	return w.Path
}

// adapterShapes are the shapes that the two matrices of an adapter of w have for a rank. The first multiplies the
// inputs; that of a table has a row for each row of the table.
func (w *Want) adapterShapes(rank int) (a, b []int) {
	n := max(w.Count, w.Experts)
	switch {
	case n > 0:
		return []int{n, rank, w.In}, []int{n, w.Rows, rank}
	case w.Table:
		return []int{w.Rows, rank}, []int{rank, w.In}
	}
	return []int{w.In, rank}, []int{rank, w.Rows}
}

// Check implements Source.
func (s *adapted) Check(w Want) []Fault {
	faults := s.Source.Check(w)
	if w.Vector || w.Conv {
		return faults
	}
	path := w.adapts()
	shapeA, shapeB := w.adapterShapes(s.a.rank)
	for _, x := range []struct {
		leaf, other string
		shape       []int
	}{{".lora_a", ".lora_b", shapeA}, {".lora_b", ".lora_a", shapeB}} {
		t := s.tensor(path + x.leaf)
		switch {
		case t == nil && s.names[path+x.other] != "":
			faults = append(faults, s.fault(Missing, path+x.leaf, "it belongs to %s", x.other[1:]))
		case t == nil:
		case fmt.Sprint(t.Shape) != fmt.Sprint(x.shape):
			faults = append(faults, s.fault(Misshapen, t.Name, "expected shape %v, found %v", x.shape, t.Shape))
		case !quant.DType(t.DType).Float():
			faults = append(faults, s.fault(Misshapen, t.Name, "expected a float type, found %s", t.DType))
		}
	}
	return faults
}

func (s *adapted) fault(k FaultKind, name, format string, args ...any) Fault {
	return Fault{Kind: k, Tensor: name, File: path.Join(s.a.Where, adapterFile), Text: fmt.Sprintf(format, args...),
		Hint: "the adapter was made for another model"}
}

// Part implements Source.
func (s *adapted) Part(w Want) B.Part {
	p := s.Source.Part(w)
	if w.Vector || w.Conv {
		return p
	}
	name := w.adapts()
	a, b := s.tensor(name+".lora_a"), s.tensor(name+".lora_b")
	if a == nil || b == nil {
		return p
	}
	down, up := numbers(a), numbers(b)
	switch {
	case w.Of != "":
		n, m := len(down)/w.Experts, len(up)/w.Experts
		down, up = down[w.Expert*n:][:n], up[w.Expert*m:][:m]
	case w.Count > 0:
	case w.Table:
		down, up = up, down
	default:
		down, up = transposed(down, s.a.rank), transposed(up, w.Rows)
	}
	for i := range up {
		up[i] *= s.a.scale
	}
	p.Adapter = &B.Adapter{Rank: s.a.rank, Down: down, Up: up}
	return p
}

// numbers are those of a tensor of floats.
func numbers(t *B.Tensor) []float32 {
	x := make([]float32, product(t.Shape))
	quant.Floats(x, quant.DType(t.DType), t.Bytes)
	return x
}

// transposed turns rows of cols numbers into columns.
func transposed(x []float32, cols int) []float32 {
	y, rows := make([]float32, len(x)), len(x)/cols
	for i, v := range x {
		y[i%cols*rows+i/cols] = v
	}
	return y
}

// Unused implements Source.
func (s *adapted) Unused() []Fault {
	var f []Fault
	for name, stored := range s.names {
		if !s.used[name] {
			f = append(f, s.fault(Extra, stored, ""))
		}
	}
	sortFaults(f)
	return append(s.Source.Unused(), f...)
}
