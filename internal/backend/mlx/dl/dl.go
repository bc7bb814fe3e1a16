//go:build darwin || linux

// Package dl opens shared libraries and calls C without cgo. It is a package of its own because a program that links it
// on Linux needs the system's C library at start: package mlx uses it on macOS, where every program does, and tests use
// it on both.
package dl

import (
	"fmt"
	"math"

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

// withFloat is the address of a few instructions that put a float where C wants it: in assembly, for amd64 and arm64.
var withFloat uintptr

// floatAt is how many arguments withFloat sees before the float.
const floatAt = 14

// CallFloat is Call for functions with one float32 among their arguments, which may be anywhere. Bind would do, at
// four times the cost.
func (l *Library) CallFloat(fn uintptr, f float32, args ...uintptr) uintptr {
	var all [floatAt + 2]uintptr
	copy(all[:floatAt], args)
	all[floatAt], all[floatAt+1] = uintptr(math.Float32bits(f)), fn
	r, _, _ := purego.SyscallN(withFloat, all[:]...)
	return r
}

// Bind makes f, a pointer to a function value, call a C function: for those that give pointers.
func (l *Library) Bind(f any, fn uintptr) { purego.RegisterFunc(f, fn) }

// Callback makes a Go function callable from C. Callbacks are never freed.
func (l *Library) Callback(f any) uintptr { return purego.NewCallback(f) }
