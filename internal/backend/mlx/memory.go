package mlx

import (
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	B "hearth/internal/backend"
)

// cacheBytes is what MLX may keep of freed arrays for the next ones, or a sixteenth of its limit.
const cacheBytes = 2 << 30

// tileBytes is how large one array of attention's scores gets: longer prompts are attended to by fewer rows at a time
// where MLX has no kernel that does without such an array.
const tileBytes = 128 << 20

// gauges are MLX's figures as of the last step, for those who must not wait for the owner.
type gauges struct{ active, peak, cache atomic.Int64 }

// Memory is what MLX holds in this process, and what it may.
func (b *Backend) Memory() B.Memory {
	g := &b.o.gauges
	return B.Memory{Active: g.active.Load(), Peak: g.peak.Load(), Cache: g.cache.Load(), Limit: b.o.limit}
}

// Idle frees what the store has let go of since the last step.
func (b *Backend) Idle() {
	b.later(b.o.gauge)
	b.flush()
}

// size is a number that a function of MLX's gives, or 0.
func (l *lib) size(f fn) int64 {
	*l.res = 0
	l.Call(l.fns[f], l.out())
	return int64(*l.res)
}

// gauge takes the figures.
func (l *lib) gauge() {
	l.gauges.active.Store(l.size(fnActive))
	l.gauges.peak.Store(l.size(fnPeak))
	l.gauges.cache.Store(l.size(fnCache))
}

// bound finds out how much memory MLX may use and tells it. A CPU device has no limit of its own.
func (l *lib) bound() {
	if l.limit == 0 && l.device == "metal" {
		l.limit, l.total = l.deviceSize("max_recommended_working_set_size"), l.deviceSize("memory_size")
		if l.limit == 0 {
			l.limit, l.total = machine()
		}
	}
	cache := int64(cacheBytes)
	if l.limit > 0 {
		l.Call(l.fns[fnMemoryLimit], l.out(), uintptr(l.limit))
		cache = min(cache, l.limit/16)
	}
	l.Call(l.fns[fnCacheLimit], l.out(), uintptr(cache))
}

// deviceSize asks for a fact about the GPU, 0 where the library cannot tell: mlx-c can from 0.5 on.
func (l *lib) deviceSize(key string) int64 {
	var fns [6]uintptr
	for i, name := range []string{"mlx_device_new_type", "mlx_device_free", "mlx_device_info_new", "mlx_device_info_get", "mlx_device_info_get_size", "mlx_device_info_free"} {
		var ok bool
		if fns[i], ok = l.Symbol(name); !ok {
			return 0
		}
	}
	const gpu = 1
	device := l.Call(fns[0], gpu, 0)
	info, size := new(uintptr), new(uintptr)
	*info = l.Call(fns[2])
	if l.Call(fns[3], uintptr(unsafe.Pointer(info)), device) == 0 {
		l.Call(fns[4], uintptr(unsafe.Pointer(size)), *info, uintptr(l.cText(key)))
	}
	l.Call(fns[5], *info)
	l.Call(fns[1], device)
	_ = l.takeErr() // of a library that does not know the key
	return int64(*size)
}

// Limit is what the GPU may use of the machine's memory, in bytes, 0 where there is none. It opens no library, and where macOS
// decides it is what that usually decides; Memory of a Backend has the exact number.
func Limit() int64 {
	limit, _ := machine()
	return limit
}

// wire keeps what is loaded resident: macOS would write parts of a large model to disk between two requests.
func (l *lib) wire() {
	if l.limit > 0 {
		l.Call(l.fns[fnWiredLimit], l.out(), uintptr(min(l.size(fnActive), l.limit)))
	}
	_ = l.takeErr() // before macOS 15 there is no such thing
	l.gauge()
}

// Scratch counts the arrays of a step's widest layers as float32, its logits, and one tile of scores: MLX frees
// arrays in the order it computes, several layers late at most.
func (b *Backend) Scratch(rows, outs int) int64 {
	const layers = 8
	wide := b.wide
	if wide == 0 {
		wide = 1 << 14 // nothing is loaded: that of models of 8 billion parameters
	}
	n := int64(rows)*int64(wide)*4*layers + int64(outs)*int64(b.table)*4*3
	return n + min(int64(rows)*(1<<20), 3*tileBytes)
}

// note makes Scratch reckon with a weight.
func (b *Backend) note(s *B.WeightSpec) {
	out := 0
	for _, n := range s.Out {
		out += n
	}
	switch s.Use {
	case B.UseTable:
		b.table = max(b.table, out)
	case B.UseVector, B.UseConv:
	case B.UseExperts, B.UseExpertGLU:
		b.wide = max(b.wide, (s.In+out)*max(s.Picks, 1))
	case B.UseHeads:
		b.wide = max(b.wide, (s.In+out)*max(s.Count, 1))
	default:
		b.wide = max(b.wide, s.In+out)
	}
}

// Room says what is left for state beside weights and steps.
func (b *Backend) Room(weights int64, rows int) (int64, error) {
	if b.o.limit == 0 {
		return math.MaxInt64, nil
	}
	need := weights + b.Scratch(rows, min(rows, 64))
	if left := b.o.limit - b.before - need; left > 0 {
		return left, nil
	}
	return 0, b.o.tooMuch(fmt.Sprintf("the weights and a step of %d tokens", rows), need, b.before)
}

// fits refuses a step before Metal meets its limit: it would end the process.
func (l *lib) fits(rows int, need int64) error {
	if l.limit == 0 {
		return nil
	}
	if used := l.size(fnActive); used+need > l.limit {
		return l.tooMuch(fmt.Sprintf("the arrays of a step of %d tokens", rows), need, used)
	}
	return nil
}

// tooMuch says what to set. The setting is no help where the machine has no such memory.
func (l *lib) tooMuch(what string, need, used int64) error {
	const mb = 1 << 20
	e := &B.MemoryError{What: what, Need: need, Used: used, Limit: l.limit}
	want := (need + used + 1<<30 + 1024*mb - 1) / (1024 * mb) * 1024 // and some state, in whole GiB
	if l.total > 0 && want*mb > l.total*9/10 {
		e.Hint = "choose a smaller model, or --backend cpu"
	} else {
		e.Hint = fmt.Sprintf("let the GPU have more with `sudo sysctl iogpu.wired_limit_mb=%d`, choose a smaller model, or --backend cpu", want)
	}
	return e
}
