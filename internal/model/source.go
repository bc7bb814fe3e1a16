package model

import (
	"cmp"
	"fmt"
	"slices"

	B "hearth/internal/backend"
	"hearth/internal/regular"
)

// Source is where weights come from: a checkpoint after the architecture's renames, or a formula. Names are module
// paths: the tensor's name without ".weight".
type Source interface {
	Has(path string) bool
	// Shape is that of a stored tensor, by its whole name; nil if there is none.
	Shape(name string) []int
	// Check says what is wrong with the tensors of w, without reading them.
	Check(w Want) []Fault
	// Part gathers a tensor with its companions. It is called once per Want that passed Check.
	Part(w Want) B.Part
	// Done says that a part has been loaded and its bytes are not needed for now.
	Done(p B.Part)
	// Ignore marks what path has as not needed.
	Ignore(path string)
	// Apart reports a head that is stored, and not as the table once more.
	Apart(head, table string) bool
	// Unused lists tensors that nobody asked for.
	Unused() []Fault
}

// Want is one tensor that a layer declares.
type Want struct {
	Path       string
	Count      int     // experts stacked in one tensor; 0: no stack
	Rows       int     // on this rank, of one expert
	In         int     // of the stored tensor; 1 for vectors
	Ranks      int     // how many ranks share the stored rows (1: all are this rank's)
	Table      bool    // rows are looked up
	Vector     bool    // one dimension, never quantised
	Flat       bool    // a vector stored in any number of dimensions
	Conv       bool    // taps of a convolution, never quantised
	Window     []int   // a kernel over patches, stored as [Rows, Window…] or with the first of Window last, never quantised; nil: none
	Planes     int     // a table stored as [Planes, Rows/Planes, In], never quantised; 0: as one
	Transposed bool    // stored as [In, Rows], never quantised
	Bare       bool    // the tensor is called Path itself, without ".weight"
	Perm       []int32 // stored rows in the order the layer wants them; nil: as they are
	Plus1      bool    // a vector used as 1+w
	Bias       bool    // a bias must be there

	Of              string // the stack that this is a part of, where experts are stored apart
	Expert, Experts int    // which of how many
}

// tensor is the name of the stored weight.
func (w *Want) tensor() string {
	if w.Bare {
		return w.Path
	}
	return w.Path + ".weight"
}

// fits compares the stored rows with the declared ones; ranks may hold copies of a row when there are more ranks than heads.
func (w *Want) fits(rows int) bool {
	if w.Ranks <= 1 {
		return rows == w.Rows
	}
	return rows >= w.Rows && rows <= w.Rows*w.Ranks && rows%w.Rows == 0
}

// shape is what the checkpoint of an unquantised model would store.
func (w *Want) shape() []int {
	if w.Vector {
		return []int{w.Rows * max(w.Ranks, 1)}
	}
	if w.Window != nil {
		return append([]int{w.Rows}, w.Window...)
	}
	if w.Planes > 0 {
		return []int{w.Planes, w.Rows / w.Planes, w.In}
	}
	if w.Count > 0 && w.Transposed {
		return []int{w.Count, w.In, w.Rows * max(w.Ranks, 1)}
	}
	if w.Count > 0 {
		return []int{w.Count, w.Rows * max(w.Ranks, 1), w.In}
	}
	if w.Conv {
		return []int{w.Rows * max(w.Ranks, 1), w.In, 1}
	}
	if w.Transposed {
		return []int{w.In, w.Rows * max(w.Ranks, 1)}
	}
	return []int{w.Rows * max(w.Ranks, 1), w.In}
}

// matrix compares the shape of a stored matrix, or stack of them, with the declared one; it has so many columns. rows are those
// of all experts.
func (w *Want) matrix(shape []int, cols int) (rows int, ok bool) {
	if w.Window != nil {
		ok = len(shape) > 0 && shape[0] == w.Rows && (slices.Equal(shape[1:], w.Window) || slices.Equal(shape[1:], append(w.Window[1:len(w.Window):len(w.Window)], w.Window[0])))
		return w.Rows, ok
	}
	if w.Planes > 0 {
		return w.Rows, slices.Equal(shape, w.shape())
	}
	if w.Count > 0 {
		if len(shape) != 3 || shape[0] != w.Count {
			return 0, false
		}
		shape = shape[1:]
	}
	if w.Transposed && len(shape) == 2 { // also of each matrix of a stack
		shape = []int{shape[1], shape[0]}
	}
	if len(shape) != 2 || shape[1] != cols || !w.fits(shape[0]) {
		return 0, false
	}
	return max(w.Count, 1) * shape[0], true
}

// biasShape is the shape of the bias, which is fine if it has shape.
func (w *Want) biasShape(shape []int) (want []int, ok bool) {
	n := w.Rows * max(w.Ranks, 1)
	if w.Count > 0 {
		return []int{w.Count, n}, len(shape) == 2 && shape[0] == w.Count && w.fits(shape[1])
	}
	return []int{n}, len(shape) == 1 && w.fits(shape[0])
}

// FaultKind groups what may be wrong with a tensor.
type FaultKind uint8

// The kinds, in the order they are reported.
const (
	Missing FaultKind = iota
	Misshapen
	Extra
)

// Fault is one thing wrong with one tensor.
type Fault struct {
	Kind   FaultKind
	Tensor string
	File   string // where it is, if it is anywhere
	Text   string // what it should be and what it is
	Hint   string // what to do; empty: what its kind suggests
}

// maxFaults bounds how many tensors of a kind an error names.
const maxFaults = 6

// faultError turns all faults of a model into one error.
func faultError(faults []Fault) error {
	if len(faults) == 0 {
		return nil
	}
	e := &LoadError{Tensor: faults[0].Tensor, File: faults[0].File}
	for _, f := range faults {
		if f.File != e.File {
			e.File = "" // several files are at fault: name none
		}
	}
	for k, words := range [...][2]string{
		Missing:   {"is missing", "are missing"},
		Misshapen: {"does not fit", "do not fit"},
		Extra:     {"is not part of this architecture", "are not part of this architecture"},
	} {
		var of []Fault
		for _, f := range faults {
			if f.Kind == FaultKind(k) {
				of = append(of, f)
			}
		}
		if len(of) == 0 {
			continue
		}
		if e.Problem != "" {
			e.Problem += "; "
		}
		e.Problem += describe(of, words[0], words[1])
		if e.Hint == "" {
			e.Hint = cmp.Or(of[0].Hint, hints[k])
		}
	}
	return e
}

// describe says "tensor a is missing (why)" or "2 tensors are missing: a (why), b (why)".
func describe(faults []Fault, one, many string) string {
	why := func(f Fault) string {
		if f.Text == "" {
			return ""
		}
		return " (" + regular.Clip(f.Text) + ")"
	}
	if len(faults) == 1 {
		return "tensor " + regular.Clip(faults[0].Tensor) + " " + one + why(faults[0])
	}
	var names []string
	for _, f := range faults {
		names = append(names, regular.Clip(f.Tensor)+why(f))
	}
	return fmt.Sprintf("%d tensors %s: %s", len(faults), many, list(names, maxFaults))
}

var hints = [...]string{
	Missing:   "the folder is incomplete or config.json belongs to another model: fetch the model again",
	Misshapen: "config.json and the weights disagree: fetch the model again",
	Extra:     "config.json names the wrong model_type or the model has parts that are not supported",
}
