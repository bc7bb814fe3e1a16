//go:build darwin || linux

// Package dl opens shared libraries and calls C without cgo. It is a package of its own because a program that links it
// on Linux needs the system's C library at start: package mlx uses it on macOS, where every program does, and tests use
// it on both.
package dl

import (
	"fmt"

	"github.com/ebitengine/purego"
)

// Library is an open shared library. It stays open for the life of the process.
type Library struct{ handle uintptr }

// Open loads a library by path, or by name through the loader's own search.
func Open(path string) (*Library, error) {
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return &Library{h}, nil
}

// Symbol is the address of a name, or false.
func (l *Library) Symbol(name string) (uintptr, bool) {
	p, err := purego.Dlsym(l.handle, name)
	return p, err == nil && p != 0
}

// Call calls a C function that takes integers and pointers only.
func (l *Library) Call(fn uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(fn, args...)
	return r
}

// Bind makes f, a pointer to a function value, call a C function: for those with floating-point arguments.
func (l *Library) Bind(f any, fn uintptr) { purego.RegisterFunc(f, fn) }

// Callback makes a Go function callable from C. Callbacks are never freed.
func (l *Library) Callback(f any) uintptr { return purego.NewCallback(f) }
