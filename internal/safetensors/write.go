package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// Write writes tensors in the given order. It refuses what Open would refuse.
func Write(w io.Writer, tensors []Tensor, meta map[string]string) error {
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
			return fmt.Errorf("write safetensors: tensor %q is there twice", t.Name)
		}
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		e := entry{name: t.Name, DType: t.DType, Range: []uint64{uint64(at), uint64(at + len(t.Bytes))}}
		for _, n := range shape {
			e.Shape = append(e.Shape, uint64(n))
		}
		if err := e.check(); err != nil {
			return fmt.Errorf("write safetensors: tensor %q: %w", t.Name, err)
		}
		head[t.Name] = info{t.DType, shape, [2]int{at, at + len(t.Bytes)}}
		at += len(t.Bytes)
	}
	js, err := json.Marshal(head)
	if err != nil {
		return fmt.Errorf("write safetensors: %w", err)
	}
	for len(js)%8 != 0 { // keeps the first tensor aligned
		js = append(js, ' ')
	}
	if len(js) > MaxHeader {
		return fmt.Errorf("write safetensors: the header takes %d bytes, more than %d", len(js), MaxHeader)
	}
	if _, err := w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(js)))); err != nil {
		return fmt.Errorf("write safetensors: %w", err)
	}
	if _, err := w.Write(js); err != nil {
		return fmt.Errorf("write safetensors: %w", err)
	}
	for _, t := range tensors {
		if _, err := w.Write(t.Bytes); err != nil {
			return fmt.Errorf("write safetensors: tensor %q: %w", t.Name, err)
		}
	}
	return nil
}
