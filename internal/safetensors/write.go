package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/bits"
)

// Write writes tensors in the given order. It refuses what Open would refuse.
func Write(w io.Writer, tensors []Tensor, meta map[string]string) error {
	for _, t := range tensors {
		if n, err := t.Size(); err == nil && n != len(t.Bytes) {
			return fmt.Errorf("write safetensors: tensor %q: %s of shape %v takes %d bytes, there are %d", t.Name, t.DType, t.Shape, n, len(t.Bytes))
		}
	}
	f, err := NewWriter(w, tensors, meta)
	if err != nil {
		return err
	}
	for _, t := range tensors {
		if _, err := f.Write(t.Bytes); err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
	}
	return f.Close()
}

// Size is the number of bytes that type and shape take.
func (t *Tensor) Size() (int, error) {
	width, ok := elementBits[t.DType]
	if !ok {
		return 0, fmt.Errorf("unknown dtype %q", t.DType)
	}
	n := uint64(width)
	for _, x := range t.Shape {
		hi, lo := bits.Mul64(n, uint64(x))
		if hi != 0 || x < 0 || lo > math.MaxInt {
			return 0, fmt.Errorf("shape %v is absurd", t.Shape)
		}
		n = lo
	}
	if n%8 != 0 {
		return 0, fmt.Errorf("%s of shape %v takes no whole number of bytes", t.DType, t.Shape)
	}
	return int(n / 8), nil
}

// Writer writes a file whose tensors' bytes come one after another, in pieces of any size.
type Writer struct {
	w    io.Writer
	left int
}

// NewWriter writes the header of a file with these tensors, whose own bytes it does not look at. It refuses what Open would
// refuse.
func NewWriter(w io.Writer, tensors []Tensor, meta map[string]string) (*Writer, error) {
	type info struct {
		DType string `json:"dtype"`
		Shape []int  `json:"shape"`
		Range [2]int `json:"data_offsets"`
	}
	head := make(map[string]any, len(tensors)+1)
	if meta != nil {
		head["__metadata__"] = meta
	}
	at := 0
	for _, t := range tensors {
		if _, ok := head[t.Name]; ok || t.Name == "__metadata__" {
			return nil, fmt.Errorf("write safetensors: tensor %q is there twice", t.Name)
		}
		n, err := t.Size()
		if err == nil && n > math.MaxInt-at {
			err = fmt.Errorf("shape %v is absurd", t.Shape)
		}
		if err != nil {
			return nil, fmt.Errorf("write safetensors: tensor %q: %w", t.Name, err)
		}
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		head[t.Name] = info{t.DType, shape, [2]int{at, at + n}}
		at += n
	}
	js, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("write safetensors: %w", err)
	}
	for len(js)%8 != 0 { // keeps the first tensor aligned
		js = append(js, ' ')
	}
	if len(js) > MaxHeader {
		return nil, fmt.Errorf("write safetensors: the header takes %d bytes, more than %d", len(js), MaxHeader)
	}
	for _, b := range [][]byte{binary.LittleEndian.AppendUint64(nil, uint64(len(js))), js} {
		if _, err := w.Write(b); err != nil {
			return nil, fmt.Errorf("write safetensors: %w", err)
		}
	}
	return &Writer{w, at}, nil
}

// Write implements io.Writer for the bytes of the tensors, in order.
func (w *Writer) Write(p []byte) (int, error) {
	if len(p) > w.left {
		return 0, fmt.Errorf("write safetensors: %d bytes more than the tensors take", len(p)-w.left)
	}
	n, err := w.w.Write(p)
	w.left -= n
	if err != nil {
		return n, fmt.Errorf("write safetensors: %w", err)
	}
	return n, nil
}

// Close checks that every byte came; what is written to stays open.
func (w *Writer) Close() error {
	if w.left != 0 {
		return fmt.Errorf("write safetensors: the tensors lack %d bytes", w.left)
	}
	return nil
}
