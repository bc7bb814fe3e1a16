//go:build !unix

package safetensors

import "errors"

// mmap always fails here; the file is read instead.
func mmap(uintptr, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmap([]byte) error { return nil }

func release([]byte, int, int) {}
