package mlx

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	B "hearth/internal/backend"
)

// Library is an open shared library whose functions can be called: package dl has the one for real use.
type Library interface {
	Symbol(name string) (uintptr, bool)
	Call(fn uintptr, args ...uintptr) uintptr
	CallFloat(fn uintptr, f float32, args ...uintptr) uintptr
	Bind(f any, fn uintptr)
	Callback(f any) uintptr
}

// Config says where MLX is. The zero value looks in the usual places and takes the GPU.
type Config struct {
	Path   string                             // of libmlxc; empty: look for it
	Device string                             // "metal" or "cpu"; empty: metal
	Link   func(path string) (Library, error) // nil: the system's loader

	Limit   int64 // bytes of memory MLX may use; 0: what the GPU says
	Compile bool  // elementwise groups also where they need a C++ compiler at run time: not on a GPU

	// World processes share a model, of which this is number Rank. MLX finds the others as its variables MLX_RANK and
	// MLX_HOSTFILE say. 0: there is one.
	Rank, World int

	Activations B.DType // BF16 or F32, of models that are not loaded to be exact; None: BF16 on a GPU
}

// install is what to do when there is no library, or not the right one.
const install = "brew install mlx-c, or set HEARTH_MLX_LIB to the path of libmlxc"

// handle is the address of an MLX array, stream or vector: mlx-c's structs of one pointer travel like one.
type handle uintptr

// layout is what differs between the releases of mlx-c that are known. There is no version symbol, so it is read off the
// names that came with each.
type layout struct {
	globalScale bool // 0.6: quantize and dequantize take a global scale
	forceFused  bool // 0.7: attention takes a flag before the stream
}

func (l layout) String() string {
	switch {
	case l.forceFused:
		return "mlx-c 0.7"
	case l.globalScale:
		return "mlx-c 0.6"
	}
	return "mlx-c 0.4 or 0.5"
}

// lib is MLX in this process: its functions, its stream, and the arrays that are alive. Everything in it belongs to the
// owner's thread.
//
// Invariants: temps are the arrays that the running closure made and nobody kept; live counts arrays neither freed nor spare;
// there are no spare ones unless a step is being built.
type lib struct {
	Library
	fns     [fnCount]uintptr
	layout  layout
	version string
	device  string
	path    string
	limit   int64 // bytes; 0: there is none
	total   int64 // of the machine; 0: not known
	gauges  gauges
	cumsum  uintptr // along an axis

	rank, world int
	ranks       uintptr // the group of them
	sum         uintptr // over them

	compiles  bool
	tracing   bool
	groups    map[groupKey]handle
	traced    []traced // by id
	traceBack uintptr
	vec       *handle // where C puts a list

	arrayData func(data, shape unsafe.Pointer, dims, dtype int32) handle
	data      func(handle) unsafe.Pointer

	stream  handle
	res     *handle // where C puts a result: on the heap, which does not move
	ints    *[32]int32
	argv    [20]uintptr
	text    map[string]*byte
	scalars map[float32]handle
	words   [2]handle // see placeValues
	temps   []handle
	live    int

	building bool     // a step that was not computed yet
	spare    []handle // of arrays that are over; see drop
	handles  []handle // of vector
	err      error    // the first since it was last taken
}

// places are where libmlxc may be, in order.
func places() []string {
	var all []string
	if exe, err := os.Executable(); err == nil {
		all = append(all, filepath.Join(filepath.Dir(exe), "libmlxc.dylib"))
	}
	return append(all, "/opt/homebrew/opt/mlx-c/lib/libmlxc.dylib", "/opt/homebrew/lib/libmlxc.dylib", "/usr/local/lib/libmlxc.dylib", "libmlxc.dylib")
}

// find opens the library. One beside the executable counts only if nobody else could have put it there.
func (c *Config) find() (Library, string, error) {
	link := c.Link
	if link == nil {
		link = system
	}
	if c.Link == nil && runtime.GOOS != "darwin" {
		_, err := system("")
		return nil, "", err
	}
	if c.Path != "" {
		if _, err := os.Stat(c.Path); err != nil {
			return nil, "", fmt.Errorf("no MLX library at %s, which HEARTH_MLX_LIB names: %s", c.Path, install)
		}
		lib, err := link(c.Path)
		if err != nil {
			return nil, "", fmt.Errorf("%w: %s", err, install)
		}
		return lib, c.Path, nil
	}
	var failed error // of a library that is there
	for i, p := range places() {
		if filepath.IsAbs(p) {
			if _, err := os.Stat(p); err != nil || i == 0 && !trusted(p) {
				continue
			}
		}
		lib, err := link(p)
		if err == nil {
			return lib, p, nil
		}
		if filepath.IsAbs(p) && failed == nil {
			failed = fmt.Errorf("%w: %s", err, install)
		}
	}
	if failed != nil {
		return nil, "", failed
	}
	return nil, "", fmt.Errorf("no MLX library found: %s", install)
}

// link resolves every function. It runs on the owner's thread.
func (l *lib) link() error {
	for i, name := range names {
		p, ok := l.Symbol(name)
		if !ok {
			return l.lacks(name)
		}
		l.fns[i] = p
	}
	_, l.layout.globalScale = l.Symbol("mlx_bartlett")
	if l.cumsum, l.layout.forceFused = l.Symbol("mlx_cumsum_axis"); !l.layout.forceFused {
		var ok bool
		if l.cumsum, ok = l.Symbol("mlx_cumsum"); !ok {
			return l.lacks("mlx_cumsum")
		}
	}
	for _, f := range []struct {
		to   any
		name string
	}{
		{&l.arrayData, "mlx_array_new_data"}, {&l.data, "mlx_array_data_uint8"},
	} {
		p, ok := l.Symbol(f.name)
		if !ok {
			return l.lacks(f.name)
		}
		l.Bind(f.to, p)
	}
	l.res, l.vec, l.ints, l.text, l.scalars = new(handle), new(handle), new([32]int32), map[string]*byte{}, map[float32]handle{}
	l.groups, l.spare = map[groupKey]handle{}, make([]handle, 0, 64)
	l.Call(l.fns[fnErrorHandler], l.Callback(func(msg *byte, _ unsafe.Pointer) uintptr {
		if l.err == nil {
			l.err = errors.New(cString(msg))
		}
		return 0
	}), 0, 0)
	return l.begin()
}

func (l *lib) lacks(name string) error {
	return fmt.Errorf("%s has no %s, so it is no mlx-c from 0.4 to 0.7: %s", l.path, name, install)
}

// begin asks for the version and makes the stream: MLX's streams belong to the thread that made them.
func (l *lib) begin() error {
	var text func(handle) *byte
	l.Bind(&text, l.fns[fnStringData])
	*l.res = handle(l.Call(l.fns[fnStringNew]))
	if l.Call(l.fns[fnVersion], l.out()) == 0 {
		l.version = cString(text(*l.res))
	}
	l.Call(l.fns[fnStringFree], uintptr(*l.res))
	if err := l.known(); err != nil {
		return err
	}
	if l.device == "" {
		l.device = "metal" // on its CPU device MLX is slower than the cpu backend by far
	}
	switch {
	case l.device == "metal" && !l.metal():
		return fmt.Errorf("MLX %s finds no Metal device: use --backend cpu", l.version)
	case l.device != "metal" && l.device != "cpu":
		return fmt.Errorf("unknown MLX device %q, want metal or cpu", l.device)
	}
	fn := fnCPUStream
	if l.device == "metal" {
		fn = fnGPUStream
	}
	l.stream, l.compiles = handle(l.Call(l.fns[fn])), l.compiles || l.device == "metal"
	l.bound()
	if err := l.join(); err != nil {
		return err
	}
	return l.takeErr()
}

// oldest is the first MLX that has all of what is called.
const oldest = 30

// known refuses what is older than the functions used. What is newer is held to the self-test alone.
func (l *lib) known() error {
	var major, minor int
	if n, _ := fmt.Sscanf(l.version, "%d.%d", &major, &minor); n == 2 && major == 0 && minor < oldest {
		return fmt.Errorf("MLX %s at %s is too old, want 0.%d or newer: brew upgrade mlx mlx-c, or use --backend cpu", l.version, l.path, oldest)
	}
	return nil
}

func (l *lib) metal() bool {
	*l.res = 0
	return l.Call(l.fns[fnMetal], l.out()) == 0 && *l.res&1 != 0
}

// takeErr is the first error since the last call.
func (l *lib) takeErr() error {
	err := l.err
	l.err = nil
	return err
}

func (l *lib) out() uintptr { return uintptr(unsafe.Pointer(l.res)) }

// cText is a C string that lives as long as the process.
func (l *lib) cText(s string) unsafe.Pointer {
	p := l.text[s]
	if p == nil {
		p = &append([]byte(s), 0)[0]
		l.text[s] = p
	}
	return unsafe.Pointer(p)
}

func cString(p *byte) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}
