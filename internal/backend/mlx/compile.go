package mlx

import (
	"unsafe"

	B "hearth/internal/backend"
)

// groupKey says what a compiled group computes.
type groupKey struct {
	op  string
	act B.Activation
	glu B.GLU
	to  dtype
}

// group computes one array of others by elementwise ops. On a GPU it is compiled: MLX traces f once for every
// combination of types and makes one kernel of it, which saves both launches and the memory between them.
func (l *lib) group(key groupKey, f func(in []handle) handle, in ...handle) handle {
	if !l.compiles || l.tracing {
		return f(in)
	}
	if l.err != nil {
		return 0
	}
	c, ok := l.groups[key]
	if !ok {
		if c = l.compile(f, len(in)); c == 0 {
			return 0
		}
		l.groups[key] = c
	}
	args := l.vector(in)
	*l.vec = 0
	l.Call(l.fns[fnClosureApply], uintptr(unsafe.Pointer(l.vec)), uintptr(c), args)
	l.Call(l.fns[fnVectorFree], args)
	out := uintptr(*l.vec)
	if out == 0 || l.err != nil {
		return 0
	}
	y := l.made(l.Call(l.fns[fnVectorGet], l.result(), out, 0))
	l.Call(l.fns[fnVectorFree], out)
	return y
}

// compile wraps f. There is one callback for all functions, because callbacks are never freed.
func (l *lib) compile(f func(in []handle) handle, n int) handle {
	if l.traceBack == 0 {
		l.traceBack = l.Callback(l.trace)
	}
	id := uintptr(len(l.traced))
	l.traced = append(l.traced, traced{f, n})
	plain := l.Call(l.fns[fnClosureNew], l.traceBack, id, 0)
	*l.res = 0
	l.Call(l.fns[fnCompile], l.out(), plain, flag(true))
	l.Call(l.fns[fnClosureFree], plain)
	return *l.res
}

// traced is a function that MLX calls back, with n arguments.
type traced struct {
	f func(in []handle) handle
	n int
}

// trace is called by MLX, inside a call of group's.
func (l *lib) trace(res *uintptr, in, id uintptr) uintptr {
	l.tracing = true
	defer func() { l.tracing = false }()
	t := l.traced[id]
	args := make([]handle, t.n)
	for i := range args {
		args[i] = l.made(l.Call(l.fns[fnVectorGet], l.result(), in, uintptr(i)))
	}
	y := t.f(args)
	if l.err != nil || y == 0 {
		return 1
	}
	l.Call(l.fns[fnVectorAppend], *res, uintptr(y))
	return 0
}

// gated is act(g)⊙x in the activation type.
func (s *scope) gated(u *B.GLU, g, x handle) handle {
	l, t := s.l, s.be.dtype()
	if t == f32 && !l.compiles {
		return l.gate(u, g, x)
	}
	return l.group(groupKey{op: "gate", glu: *u, to: t}, func(in []handle) handle { return l.cast(l.gate(u, l.cast(in[0], f32), l.cast(in[1], f32)), t) }, g, x)
}
