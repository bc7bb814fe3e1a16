package safetensors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"

	"hearth/internal/regular"
)

// elementBits are the types of the format with their widths.
var elementBits = map[string]int{
	"BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
	"I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64, "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}

// maxDims bounds the dimensions of a tensor; models have three.
const maxDims = 16

// entry is a tensor as the header describes it.
type entry struct {
	name  string
	DType string   `json:"dtype"`
	Shape []uint64 `json:"shape"`
	Range []uint64 `json:"data_offsets"`
}

// parseHeader reads the JSON object by tokens, because a map would hide duplicate names.
func parseHeader(head []byte) ([]entry, map[string]string, error) {
	d := json.NewDecoder(bytes.NewReader(head))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, fmt.Errorf("is no safetensors file or damaged: its header is no JSON object")
	}
	var list []entry
	var meta map[string]string
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, nil, fmt.Errorf("header: %w", tidy(err))
		}
		name := t.(string) // a JSON decoder yields only strings as keys
		if seen[name] {
			return nil, nil, fmt.Errorf("header: tensor %s is there twice", regular.Quote(name))
		}
		seen[name] = true
		if name == "__metadata__" {
			if err := d.Decode(&meta); err != nil {
				return nil, nil, fmt.Errorf("header: __metadata__: %w", tidy(err))
			}
			continue
		}
		e := entry{name: name}
		if err := d.Decode(&e); err != nil {
			return nil, nil, fmt.Errorf("header: tensor %s: %w", regular.Quote(name), tidy(err))
		}
		list = append(list, e)
	}
	if _, err := d.Token(); err != nil {
		return nil, nil, fmt.Errorf("header: %w", tidy(err))
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, nil, fmt.Errorf("header: there is something after the JSON object")
	}
	return list, meta, nil
}

// tidy names the end of a cut header; "EOF" alone helps nobody.
func tidy(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the JSON ends early")
	}
	return err
}

// place checks every entry and gives it its bytes. Tensors must cover the body exactly: no overlap, no hole, nothing after.
func (f *File) place(list []entry, body []byte) error {
	for i := range list {
		if err := list[i].check(); err != nil {
			return fmt.Errorf("tensor %s: %w", regular.Quote(list[i].name), err)
		}
	}
	slices.SortStableFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.Range[0], b.Range[0]), cmp.Compare(a.Range[1], b.Range[1]))
	})
	var at uint64
	start := len(f.data) - len(body)
	for _, e := range list {
		from, to := e.Range[0], e.Range[1]
		switch {
		case from < at:
			return fmt.Errorf("tensor %s: bytes [%d, %d) overlap the tensor before, which ends at %d", regular.Quote(e.name), from, to, at)
		case from > at:
			return fmt.Errorf("tensor %s: starts at byte %d, which leaves a hole after byte %d", regular.Quote(e.name), from, at)
		case to > uint64(len(body)):
			return fmt.Errorf("tensor %s: the file is truncated: it should reach byte %d, there are %d", regular.Quote(e.name), to, len(body))
		}
		shape := make([]int, len(e.Shape))
		for i, n := range e.Shape {
			shape[i] = int(n)
		}
		f.index[e.name] = len(f.Tensors)
		f.Tensors = append(f.Tensors, Tensor{Name: e.name, DType: e.DType, Shape: shape, Bytes: body[from:to:to], at: start + int(from)})
		at = to
	}
	if at != uint64(len(body)) {
		return fmt.Errorf("%d bytes follow the last tensor", uint64(len(body))-at)
	}
	return nil
}

// check compares the byte range with type and shape.
func (e *entry) check() error {
	if len(e.Shape) > maxDims || len(e.Range) > maxDims {
		return fmt.Errorf("it has %d dimensions and %d offsets, more than %d", len(e.Shape), len(e.Range), maxDims)
	}
	width, ok := elementBits[e.DType]
	if !ok {
		return fmt.Errorf("unknown dtype %s", regular.Quote(e.DType))
	}
	if len(e.Range) != 2 || e.Range[0] > e.Range[1] || e.Range[1] > math.MaxInt {
		return fmt.Errorf("data_offsets %v are no byte range", e.Range)
	}
	n := uint64(width)
	for _, x := range e.Shape {
		hi, lo := bits.Mul64(n, x)
		if hi != 0 || x > math.MaxInt {
			return fmt.Errorf("shape %v is absurd", e.Shape)
		}
		n = lo
	}
	if n%8 != 0 || n/8 != e.Range[1]-e.Range[0] {
		return fmt.Errorf("%s of shape %v takes %d bytes, data_offsets %v give %d", e.DType, e.Shape, n/8, e.Range, e.Range[1]-e.Range[0])
	}
	return nil
}
