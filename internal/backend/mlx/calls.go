package mlx

import (
	"errors"
	"math"
	"unsafe"
)

type fn int

const (
	fnErrorHandler fn = iota
	fnStringNew
	fnStringData
	fnStringFree
	fnVersion
	fnMetal
	fnCPUStream
	fnGPUStream
	fnActive
	fnPeak
	fnCache
	fnClearCache
	fnResetPeak
	fnCacheLimit
	fnMemoryLimit
	fnWiredLimit
	fnArrayFree
	fnArraySet
	fnArrayNdim
	fnArrayDim
	fnArrayDtype
	fnArrayFloat
	fnVectorNew
	fnVectorOf
	fnVectorFree
	fnVectorAppend
	fnVectorGet
	fnClosureNew
	fnClosureFree
	fnClosureApply
	fnCompile
	fnEval
	fnAsyncEval
	fnAdd
	fnSubtract
	fnMultiply
	fnDivide
	fnMaximum
	fnMinimum
	fnMatmul
	fnLess
	fnGreater
	fnSigmoid
	fnTanh
	fnErf
	fnExp
	fnExpm1
	fnLog1p
	fnSqrt
	fnRsqrt
	fnSquare
	fnAbs
	fnNegative
	fnAstype
	fnContiguous
	fnReshape
	fnTranspose
	fnSlice
	fnSliceUpdate
	fnConcat
	fnTake
	fnTakeAlong
	fnWhere
	fnSum
	fnMean
	fnMax
	fnMin
	fnArgmax
	fnRound
	fnSoftmax
	fnSort
	fnArgsort
	fnZeros
	fnQuantizedMatmul
	fnGatherQMM
	fnGatherMM
	fnDequantize
	fnRMSNorm
	fnLayerNorm
	fnRope
	fnAttention
	fnCount
)

// names are mlx-c's, in the order of the constants.
var names = [fnCount]string{
	"mlx_set_error_handler", "mlx_string_new", "mlx_string_data", "mlx_string_free", "mlx_version",
	"mlx_metal_is_available", "mlx_default_cpu_stream_new", "mlx_default_gpu_stream_new",
	"mlx_get_active_memory", "mlx_get_peak_memory", "mlx_get_cache_memory", "mlx_clear_cache",
	"mlx_reset_peak_memory", "mlx_set_cache_limit", "mlx_set_memory_limit", "mlx_set_wired_limit",
	"mlx_array_free", "mlx_array_set", "mlx_array_ndim", "mlx_array_dim", "mlx_array_dtype", "mlx_array_new_float32",
	"mlx_vector_array_new", "mlx_vector_array_new_data", "mlx_vector_array_free", "mlx_vector_array_append_value", "mlx_vector_array_get",
	"mlx_closure_new_func_payload", "mlx_closure_free", "mlx_closure_apply", "mlx_compile", "mlx_eval", "mlx_async_eval",
	"mlx_add", "mlx_subtract", "mlx_multiply", "mlx_divide", "mlx_maximum", "mlx_minimum", "mlx_matmul", "mlx_less", "mlx_greater",
	"mlx_sigmoid", "mlx_tanh", "mlx_erf", "mlx_exp", "mlx_expm1", "mlx_log1p", "mlx_sqrt", "mlx_rsqrt", "mlx_square", "mlx_abs", "mlx_negative",
	"mlx_astype", "mlx_contiguous", "mlx_reshape", "mlx_transpose_axes", "mlx_slice", "mlx_slice_update", "mlx_concatenate_axis",
	"mlx_take_axis", "mlx_take_along_axis", "mlx_where", "mlx_sum_axis", "mlx_mean_axis", "mlx_max_axis", "mlx_min_axis", "mlx_argmax_axis", "mlx_round", "mlx_softmax_axis",
	"mlx_sort_axis", "mlx_argsort_axis", "mlx_zeros", "mlx_quantized_matmul", "mlx_gather_qmm", "mlx_gather_mm", "mlx_dequantize",
	"mlx_fast_rms_norm", "mlx_fast_layer_norm", "mlx_fast_rope", "mlx_fast_scaled_dot_product_attention",
}

// dtype is MLX's own numbering.
type dtype int32

const (
	u8   dtype = 1
	u32  dtype = 3
	i32  dtype = 7
	f16  dtype = 9
	f32  dtype = 10
	bf16 dtype = 12
)

// some is a C optional of four bytes and a flag, which fills one register; its zero is "none".
func some(v int) uintptr { return uintptr(uint64(uint32(v)) | 1<<32) }

func flag(b bool) uintptr {
	if b {
		return 1
	}
	return 0
}

// result is where C puts the array it makes: into a spare handle if there is one, which it then need not make.
func (l *lib) result() uintptr {
	*l.res = 0
	if n := len(l.spare) - 1; n >= 0 {
		*l.res, l.spare = l.spare[n], l.spare[:n]
	}
	return l.out()
}

// made notes the array that a call left in res. It is freed when the running closure ends unless it is kept.
func (l *lib) made(status uintptr) handle {
	h := *l.res
	if int32(status) != 0 || h == 0 {
		if l.err == nil {
			l.err = errors.New("MLX gave no array, and no reason")
		}
		if h != 0 {
			l.spare = append(l.spare, h)
		}
		return 0
	}
	l.temps = append(l.temps, h)
	l.live++
	return h
}

// args puts together those of a function whose first is the result and whose last is the stream.
func (l *lib) args(result uintptr, more []uintptr) []uintptr {
	n := 1 + copy(l.argv[1:], more)
	l.argv[0], l.argv[n] = result, uintptr(l.stream)
	return l.argv[:n+1]
}

// do calls such a function. After an error it does nothing.
func (l *lib) do(f fn, args ...uintptr) handle {
	if l.err != nil {
		return 0
	}
	return l.made(l.Call(l.fns[f], l.args(l.result(), args)...))
}

// doFloat is do with a float besides.
func (l *lib) doFloat(f fn, x float32, args ...uintptr) handle {
	if l.err != nil {
		return 0
	}
	return l.made(l.CallFloat(l.fns[f], x, l.args(l.result(), args)...))
}

// over is do whose result takes the place of the array that has the handle h, which may be an argument.
func (l *lib) over(h handle, f fn, args ...uintptr) {
	if l.err != nil {
		return
	}
	*l.res = h
	if int32(l.Call(l.fns[f], l.args(l.out(), args)...)) != 0 && l.err == nil {
		l.err = errors.New("MLX replaced no array, and gave no reason")
	}
}

// retain takes an array out of those that are freed with the closure. One that is somebody else's gets another handle.
func (l *lib) retain(h handle) handle {
	if h == 0 {
		return 0
	}
	for i := len(l.temps) - 1; i >= 0; i-- {
		if l.temps[i] == h {
			l.temps[i] = 0
			return h
		}
	}
	return l.retain(l.again(h))
}

// release frees what the closure made and did not keep.
func (l *lib) release() {
	for _, h := range l.temps {
		l.drop(h)
	}
	l.temps = l.temps[:0]
}

func (l *lib) free(h handle) {
	if h != 0 {
		l.Call(l.fns[fnArrayFree], uintptr(h))
		l.live--
	}
}

// drop is free while a step is built: the handle is for one of the next results, which saves a call. Until then MLX has the
// array, so that this is for those without numbers.
func (l *lib) drop(h handle) {
	switch {
	case h == 0:
	case l.building && len(l.spare) < cap(l.spare):
		l.spare = append(l.spare, h)
		l.live--
	default:
		l.free(h)
	}
}

// built ends building. What is computed next must not find arrays that nobody wants: MLX would not write over what they share.
func (l *lib) built() {
	l.building = false
	for _, h := range l.spare {
		l.Call(l.fns[fnArrayFree], uintptr(h))
	}
	l.spare = l.spare[:0]
}

// again is another handle of the same array.
func (l *lib) again(h handle) handle {
	if l.err != nil {
		return 0
	}
	return l.made(l.Call(l.fns[fnArraySet], l.result(), uintptr(h)))
}

func (l *lib) un(f fn, a handle) handle     { return l.do(f, uintptr(a)) }
func (l *lib) bin(f fn, a, b handle) handle { return l.do(f, uintptr(a), uintptr(b)) }
func (l *lib) add(a, b handle) handle       { return l.bin(fnAdd, a, b) }
func (l *lib) mul(a, b handle) handle       { return l.bin(fnMultiply, a, b) }
func (l *lib) sub(a, b handle) handle       { return l.bin(fnSubtract, a, b) }

// cast is a itself if it is of that type.
func (l *lib) cast(a handle, t dtype) handle {
	if l.err == nil && a != 0 && dtype(int32(l.Call(l.fns[fnArrayDtype], uintptr(a)))) == t {
		return a
	}
	return l.do(fnAstype, uintptr(a), uintptr(t))
}

// num is a number in float32, made once.
func (l *lib) num(f float32) handle {
	h, ok := l.scalars[f]
	if !ok && l.err == nil {
		h = handle(l.CallFloat(l.fns[fnArrayFloat], f))
		if math.IsNaN(float64(f)) {
			panic("mlx: a constant is no number")
		}
		l.scalars[f] = h
	}
	return h
}

// dims puts a list where C can read it.
func (l *lib) dims(list ...int) (p, n uintptr) {
	for i, v := range list {
		l.ints[i] = int32(v)
	}
	return l.list(0), uintptr(len(list))
}

func (l *lib) reshape(a handle, shape ...int) handle {
	p, n := l.dims(shape...)
	return l.do(fnReshape, uintptr(a), p, n)
}

func (l *lib) transpose(a handle, axes ...int) handle {
	p, n := l.dims(axes...)
	return l.do(fnTranspose, uintptr(a), p, n)
}

func (l *lib) zeros(t dtype, shape ...int) handle {
	p, n := l.dims(shape...)
	return l.do(fnZeros, p, n, uintptr(t))
}

// shape is that of a.
func (l *lib) shape(a handle) []int {
	if a == 0 {
		return nil
	}
	s := make([]int, l.Call(l.fns[fnArrayNdim], uintptr(a)))
	for i := range s {
		s[i] = int(int32(l.Call(l.fns[fnArrayDim], uintptr(a), uintptr(i))))
	}
	return s
}

// slice is a[..., from:to, ...] along one axis: a itself if that is all of it.
func (l *lib) slice(a handle, axis, from, to int) handle {
	n := l.box(a)
	if n == 0 {
		return 0
	}
	if from == 0 && int32(to) == l.ints[8+axis] {
		return a
	}
	l.ints[axis], l.ints[8+axis] = int32(from), int32(to)
	return l.do(fnSlice, uintptr(a), l.list(0), n, l.list(1), n, l.list(2), n)
}

// part is slice for those who know the shape of a.
func (l *lib) part(a handle, axis, from, to int, shape ...int) handle {
	if from == 0 && to == shape[axis] {
		return a
	}
	for i, n := range shape {
		l.ints[i], l.ints[8+i], l.ints[16+i] = 0, int32(n), 1
	}
	l.ints[axis], l.ints[8+axis] = int32(from), int32(to)
	n := uintptr(len(shape))
	return l.do(fnSlice, uintptr(a), l.list(0), n, l.list(1), n, l.list(2), n)
}

// box writes where the whole of a starts, where it ends, and steps of 1, as three lists, and gives their length.
func (l *lib) box(a handle) uintptr {
	if l.err != nil || a == 0 {
		return 0
	}
	n := l.Call(l.fns[fnArrayNdim], uintptr(a))
	for i := range n {
		l.ints[i], l.ints[8+i], l.ints[16+i] = 0, int32(l.Call(l.fns[fnArrayDim], uintptr(a), i)), 1
	}
	return n
}

// list is the address of a list for C.
func (l *lib) list(at int) uintptr { return uintptr(unsafe.Pointer(&l.ints[8*at])) }

// paste is a with b at from along one axis; the other axes are b's, which has that shape.
func (l *lib) paste(a, b handle, axis, from int, shape ...int) handle {
	n := l.place(axis, from, shape)
	return l.do(fnSliceUpdate, uintptr(a), uintptr(b), l.list(0), n, l.list(1), n, l.list(2), n)
}

// pasteOver is paste whose result takes the place of a.
func (l *lib) pasteOver(a, b handle, axis, from int, shape ...int) {
	n := l.place(axis, from, shape)
	l.over(a, fnSliceUpdate, uintptr(a), uintptr(b), l.list(0), n, l.list(1), n, l.list(2), n)
}

// place writes the lists of paste and gives their length.
func (l *lib) place(axis, from int, shape []int) uintptr {
	for i, n := range shape {
		l.ints[i], l.ints[8+i], l.ints[16+i] = 0, int32(n), 1
	}
	l.ints[axis] = int32(from)
	l.ints[8+axis] += int32(from)
	return uintptr(len(shape))
}

func (l *lib) concat(axis int, all ...handle) handle {
	if len(all) == 1 {
		return all[0]
	}
	v := l.vector(all)
	defer l.Call(l.fns[fnVectorFree], v)
	return l.do(fnConcat, v, uintptr(axis))
}

func (l *lib) vector(all []handle) uintptr {
	l.handles = l.handles[:0]
	for _, h := range all {
		if h != 0 {
			l.handles = append(l.handles, h)
		}
	}
	if len(l.handles) == 0 {
		return l.Call(l.fns[fnVectorNew])
	}
	return l.Call(l.fns[fnVectorOf], uintptr(unsafe.Pointer(&l.handles[0])), uintptr(len(l.handles)))
}

// eval computes arrays, and waits unless async.
func (l *lib) eval(async bool, all ...handle) {
	l.built()
	if l.err != nil {
		return
	}
	v := l.vector(all)
	f := fnEval
	if async {
		f = fnAsyncEval
	}
	l.Call(l.fns[f], v)
	l.Call(l.fns[fnVectorFree], v)
}

func (l *lib) take(a, ids handle, axis int) handle {
	return l.do(fnTake, uintptr(a), uintptr(ids), uintptr(axis))
}

func (l *lib) takeAlong(a, ids handle, axis int) handle {
	return l.do(fnTakeAlong, uintptr(a), uintptr(ids), uintptr(axis))
}

func (l *lib) where(c, a, b handle) handle { return l.do(fnWhere, uintptr(c), uintptr(a), uintptr(b)) }

// reduce is a sum, mean or maximum along an axis that stays with length 1.
func (l *lib) reduce(f fn, a handle, axis int) handle {
	return l.do(f, uintptr(a), uintptr(axis), flag(true))
}

func (l *lib) softmax(a handle, axis int) handle {
	return l.do(fnSoftmax, uintptr(a), uintptr(axis), flag(true))
}

// upload copies numbers in. Only the types that array lists here travel.
func upload[T float32 | int32 | uint32 | uint16 | uint8 | bool](l *lib, x []T, t dtype, shape ...int) handle {
	if l.err != nil {
		return 0
	}
	l.dims(shape...)
	var none T
	p := unsafe.Pointer(&none)
	if len(x) > 0 {
		p = unsafe.Pointer(&x[0])
	}
	*l.res = l.arrayData(p, unsafe.Pointer(&l.ints[0]), int32(len(shape)), int32(t))
	return l.made(0)
}

// download waits for a, and whatever else is wanted, and copies a's numbers out as float32.
func (l *lib) download(a handle, dst []float32, also ...handle) {
	c := l.do(fnContiguous, uintptr(l.cast(a, f32)), flag(false))
	l.eval(false, append(also, c)...)
	if l.err == nil && len(dst) > 0 {
		copy(dst, unsafe.Slice((*float32)(l.data(c)), len(dst)))
	}
}

func (l *lib) downloadInts(a handle, dst []int32, also ...handle) {
	c := l.do(fnContiguous, uintptr(l.cast(a, i32)), flag(false))
	l.eval(false, append(also, c)...)
	if l.err == nil && len(dst) > 0 {
		copy(dst, unsafe.Slice((*int32)(l.data(c)), len(dst)))
	}
}

// bytes appends the n bytes of an array.
func (l *lib) bytes(to []byte, a handle, n int) []byte {
	c := l.do(fnContiguous, uintptr(a), flag(false))
	l.eval(false, c)
	if l.err == nil && n > 0 {
		to = append(to, unsafe.Slice((*byte)(l.data(c)), n)...)
	}
	return to
}

// normed is fast RMSNorm over the last axis.
func (l *lib) normed(x, w handle, eps float32) handle {
	return l.doFloat(fnRMSNorm, eps, uintptr(x), uintptr(w))
}

// attend is fast attention: q [1, heads, rows, width], k and v [1, kv heads, keys, width]. causal: row i sees keys up to that
// as far from the end; else mask, true where a key is seen, or 0.
func (l *lib) attend(q, k, v handle, scale float32, causal bool, mask, sinks handle) handle {
	mode := ""
	switch {
	case causal:
		mode = "causal"
	case mask != 0:
		mode = "array"
	}
	args := [...]uintptr{uintptr(q), uintptr(k), uintptr(v), uintptr(l.cText(mode)), uintptr(mask), uintptr(sinks), flag(false)}
	if l.layout.forceFused {
		return l.doFloat(fnAttention, scale, args[:]...)
	}
	return l.doFloat(fnAttention, scale, args[:6]...)
}

// scheme is how a matrix is quantised, as MLX wants it.
type scheme struct {
	mode        string
	bits, group int
}

func (l *lib) quantised(x handle, w *block) handle {
	return l.do(fnQuantizedMatmul, uintptr(x), uintptr(w.w), uintptr(w.scales), uintptr(w.biases), flag(true),
		some(w.group), some(w.bits), uintptr(l.cText(w.mode)))
}

// gathered multiplies rows with the matrices that ids picks from a stack.
func (l *lib) gathered(x handle, w *block, ids handle) handle {
	if w.mode == "" {
		return l.do(fnGatherMM, uintptr(x), uintptr(w.w), 0, uintptr(ids), flag(false))
	}
	return l.do(fnGatherQMM, uintptr(x), uintptr(w.w), uintptr(w.scales), uintptr(w.biases), 0, uintptr(ids), flag(true),
		some(w.group), some(w.bits), uintptr(l.cText(w.mode)), flag(false))
}

func (l *lib) dequantised(w, scales, biases handle, s scheme, t dtype) handle {
	args := []uintptr{uintptr(w), uintptr(scales), uintptr(biases), some(s.group), some(s.bits), uintptr(l.cText(s.mode))}
	if l.layout.globalScale {
		args = append(args, 0)
	}
	return l.do(fnDequantize, append(args, some(int(t)))...)
}
