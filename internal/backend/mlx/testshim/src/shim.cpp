// The functions of mlx-c that package mlx calls, over the C++ headers that come with MLX's Python package: enough to run the
// backend on real MLX where nobody ships libmlxc. MLXC_LAYOUT picks the release whose signatures it has: 5, 6 or 7.
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "mlx/mlx.h"
#include "mlx/version.h"

#ifndef MLXC_LAYOUT
#define MLXC_LAYOUT 7
#endif

namespace mx = mlx::core;

// Every type of mlx-c is a struct of one pointer; an optional is a value and a flag.
struct Handle { void* ctx; };
struct Optional { int value; bool has; };
struct OptionalFloat { float value; bool has; };

using Vector = std::vector<mx::array>;

static void (*handler)(const char*, void*) = nullptr;
static void* handler_data = nullptr;

static int fail(const char* message) {
  if (handler) handler(message, handler_data);
  return 1;
}

#define TRY(...) \
  try { __VA_ARGS__; return 0; } catch (const std::exception& e) { return fail(e.what()); }

static mx::array& arr(Handle h) {
  if (!h.ctx) throw std::runtime_error("expected a non-empty array");
  return *static_cast<mx::array*>(h.ctx);
}
static std::optional<mx::array> maybe(Handle h) {
  return h.ctx ? std::optional<mx::array>(arr(h)) : std::nullopt;
}
static std::optional<int> maybe(Optional o) { return o.has ? std::optional<int>(o.value) : std::nullopt; }
static mx::Stream stream(Handle h) { return *static_cast<mx::Stream*>(h.ctx); }
static Vector& vec(Handle h) { return *static_cast<Vector*>(h.ctx); }
static void put(Handle* r, mx::array a) {
  if (r->ctx) arr(*r) = std::move(a);
  else r->ctx = new mx::array(std::move(a));
}
static mx::Shape dims(const int* p, size_t n) { return mx::Shape(p, p + n); }

static const mx::Dtype types[] = {mx::bool_, mx::uint8, mx::uint16, mx::uint32, mx::uint64, mx::int8, mx::int16, mx::int32,
    mx::int64, mx::float16, mx::float32, mx::float64, mx::bfloat16, mx::complex64};

#define UNARY(name) \
  int mlx_##name(Handle* r, Handle a, Handle s) { TRY(put(r, mx::name(arr(a), stream(s)))) }
#define BINARY(name) \
  int mlx_##name(Handle* r, Handle a, Handle b, Handle s) { TRY(put(r, mx::name(arr(a), arr(b), stream(s)))) }
#define REDUCE(name) \
  int mlx_##name##_axis(Handle* r, Handle a, int axis, bool keep, Handle s) { TRY(put(r, mx::name(arr(a), axis, keep, stream(s)))) }
#define MEMORY(name) \
  int mlx_##name(size_t* r) { TRY(*r = mx::name()) }

extern "C" {

void mlx_set_error_handler(void (*h)(const char*, void*), void* data, void (*)(void*)) {
  handler = h;
  handler_data = data;
}
Handle mlx_string_new(void) { return {new std::string()}; }
const char* mlx_string_data(Handle h) { return static_cast<std::string*>(h.ctx)->c_str(); }
int mlx_string_free(Handle h) {
  delete static_cast<std::string*>(h.ctx);
  return 0;
}
int mlx_version(Handle* r) { TRY(*static_cast<std::string*>(r->ctx) = mx::version()) }
int mlx_metal_is_available(bool* r) { TRY(*r = mx::metal::is_available()) }
Handle mlx_default_cpu_stream_new(void) { return {new mx::Stream(mx::default_stream(mx::Device::cpu))}; }
Handle mlx_default_gpu_stream_new(void) { return {new mx::Stream(mx::default_stream(mx::Device::gpu))}; }
MEMORY(get_active_memory) MEMORY(get_peak_memory) MEMORY(get_cache_memory)
int mlx_clear_cache(void) { TRY(mx::clear_cache()) }
int mlx_reset_peak_memory(void) { TRY(mx::reset_peak_memory()) }
int mlx_set_cache_limit(size_t* r, size_t n) { TRY(*r = mx::set_cache_limit(n)) }
int mlx_set_memory_limit(size_t* r, size_t n) { TRY(*r = mx::set_memory_limit(n)) }
int mlx_set_wired_limit(size_t* r, size_t n) { TRY(*r = mx::set_wired_limit(n)) }

Handle mlx_array_new_float32(float f) { return {new mx::array(f)}; }
Handle mlx_array_new_data(const void* data, const int* shape, int n, int type) {
  try {
    auto s = dims(shape, n);
    size_t bytes = mx::size_of(types[type]);
    for (auto d : s) bytes *= d;
    void* p = std::malloc(bytes ? bytes : 1);
    std::memcpy(p, data, bytes);
    return {new mx::array(p, s, types[type], [](void* q) { std::free(q); })};
  } catch (const std::exception& e) {
    fail(e.what());
    return {nullptr};
  }
}
int mlx_array_free(Handle h) {
  delete static_cast<mx::array*>(h.ctx);
  return 0;
}
int mlx_array_set(Handle* r, Handle a) { TRY(put(r, arr(a))) }
size_t mlx_array_ndim(Handle a) { return arr(a).ndim(); }
int mlx_array_dim(Handle a, int i) { return arr(a).shape(i); }
int mlx_array_dtype(Handle a) { return static_cast<int>(arr(a).dtype().val()); }
const uint8_t* mlx_array_data_uint8(Handle a) { return arr(a).data<uint8_t>(); }

Handle mlx_vector_array_new(void) { return {new Vector()}; }
Handle mlx_vector_array_new_data(const Handle* data, size_t n) {
  auto* v = new Vector();
  v->reserve(n);
  for (size_t i = 0; i < n; i++) v->push_back(arr(data[i]));
  return {v};
}
int mlx_vector_array_free(Handle h) {
  delete static_cast<Vector*>(h.ctx);
  return 0;
}
int mlx_vector_array_append_value(Handle h, Handle a) { TRY(vec(h).push_back(arr(a))) }
int mlx_vector_array_get(Handle* r, Handle h, size_t i) { TRY(put(r, vec(h).at(i))) }

using Function = std::function<Vector(const Vector&)>;
Handle mlx_closure_new_func_payload(int (*fun)(Handle*, Handle, void*), void* payload, void (*)(void*)) {
  return {new Function([=](const Vector& in) {
    Handle args{new Vector(in)}, res{new Vector()};
    int failed = fun(&res, args, payload);
    Vector out = vec(res);
    delete &vec(args);
    delete &vec(res);
    if (failed) throw std::runtime_error("a traced function failed");
    return out;
  })};
}
int mlx_closure_free(Handle h) {
  delete static_cast<Function*>(h.ctx);
  return 0;
}
int mlx_compile(Handle* r, Handle f, bool shapeless) { TRY(r->ctx = new Function(mx::compile(*static_cast<Function*>(f.ctx), shapeless))) }
int mlx_closure_apply(Handle* r, Handle f, Handle in) {
  TRY({
    Vector out = (*static_cast<Function*>(f.ctx))(vec(in));
    if (r->ctx) vec(*r) = std::move(out);
    else r->ctx = new Vector(std::move(out));
  })
}

int mlx_eval(Handle h) { TRY(mx::eval(vec(h))) }
int mlx_async_eval(Handle h) { TRY(mx::async_eval(vec(h))) }

BINARY(add) BINARY(subtract) BINARY(multiply) BINARY(divide) BINARY(maximum) BINARY(minimum) BINARY(matmul) BINARY(less) BINARY(greater)
UNARY(sigmoid) UNARY(tanh) UNARY(erf) UNARY(exp) UNARY(expm1) UNARY(log1p) UNARY(sqrt) UNARY(rsqrt) UNARY(square) UNARY(abs) UNARY(negative)
REDUCE(sum) REDUCE(mean) REDUCE(max) REDUCE(min) REDUCE(argmax)
int mlx_round(Handle* r, Handle a, int decimals, Handle s) { TRY(put(r, mx::round(arr(a), decimals, stream(s)))) }

int mlx_astype(Handle* r, Handle a, int type, Handle s) { TRY(put(r, mx::astype(arr(a), types[type], stream(s)))) }
int mlx_contiguous(Handle* r, Handle a, bool col, Handle s) { TRY(put(r, mx::contiguous(arr(a), col, stream(s)))) }
int mlx_reshape(Handle* r, Handle a, const int* p, size_t n, Handle s) { TRY(put(r, mx::reshape(arr(a), dims(p, n), stream(s)))) }
int mlx_transpose_axes(Handle* r, Handle a, const int* p, size_t n, Handle s) {
  TRY(put(r, mx::transpose(arr(a), std::vector<int>(p, p + n), stream(s))))
}
int mlx_slice(Handle* r, Handle a, const int* b, size_t nb, const int* e, size_t ne, const int* t, size_t nt, Handle s) {
  TRY(put(r, mx::slice(arr(a), dims(b, nb), dims(e, ne), dims(t, nt), stream(s))))
}
int mlx_slice_update(Handle* r, Handle a, Handle u, const int* b, size_t nb, const int* e, size_t ne, const int* t, size_t nt, Handle s) {
  TRY(put(r, mx::slice_update(arr(a), arr(u), dims(b, nb), dims(e, ne), dims(t, nt), stream(s))))
}
int mlx_concatenate_axis(Handle* r, Handle v, int axis, Handle s) { TRY(put(r, mx::concatenate(vec(v), axis, stream(s)))) }
int mlx_take_axis(Handle* r, Handle a, Handle i, int axis, Handle s) { TRY(put(r, mx::take(arr(a), arr(i), axis, stream(s)))) }
int mlx_take_along_axis(Handle* r, Handle a, Handle i, int axis, Handle s) { TRY(put(r, mx::take_along_axis(arr(a), arr(i), axis, stream(s)))) }
int mlx_where(Handle* r, Handle c, Handle a, Handle b, Handle s) { TRY(put(r, mx::where(arr(c), arr(a), arr(b), stream(s)))) }
int mlx_softmax_axis(Handle* r, Handle a, int axis, bool precise, Handle s) { TRY(put(r, mx::softmax(arr(a), axis, precise, stream(s)))) }
int mlx_sort_axis(Handle* r, Handle a, int axis, Handle s) { TRY(put(r, mx::sort(arr(a), axis, stream(s)))) }
int mlx_argsort_axis(Handle* r, Handle a, int axis, Handle s) { TRY(put(r, mx::argsort(arr(a), axis, stream(s)))) }
int mlx_zeros(Handle* r, const int* p, size_t n, int type, Handle s) { TRY(put(r, mx::zeros(dims(p, n), types[type], stream(s)))) }

int mlx_quantized_matmul(Handle* r, Handle x, Handle w, Handle sc, Handle bi, bool t, Optional group, Optional bits, const char* mode, Handle s) {
  TRY(put(r, mx::quantized_matmul(arr(x), arr(w), arr(sc), maybe(bi), t, maybe(group), maybe(bits), mode, stream(s))))
}
int mlx_gather_qmm(Handle* r, Handle x, Handle w, Handle sc, Handle bi, Handle lhs, Handle rhs, bool t, Optional group, Optional bits,
    const char* mode, bool sorted, Handle s) {
  TRY(put(r, mx::gather_qmm(arr(x), arr(w), arr(sc), maybe(bi), maybe(lhs), maybe(rhs), t, maybe(group), maybe(bits), mode,
      std::nullopt, sorted, stream(s))))
}
int mlx_gather_mm(Handle* r, Handle a, Handle b, Handle lhs, Handle rhs, bool sorted, Handle s) {
  TRY(put(r, mx::gather_mm(arr(a), arr(b), maybe(lhs), maybe(rhs), sorted, stream(s))))
}
int mlx_dequantize(Handle* r, Handle w, Handle sc, Handle bi, Optional group, Optional bits, const char* mode,
#if MLXC_LAYOUT >= 6
    Handle global,
#endif
    Optional type, Handle s) {
  TRY(put(r, mx::dequantize(arr(w), arr(sc), maybe(bi), maybe(group), maybe(bits), mode,
#if MLXC_LAYOUT >= 6
      maybe(global),
#else
      std::nullopt,
#endif
      type.has ? std::optional<mx::Dtype>(types[type.value]) : std::nullopt, stream(s))))
}

int mlx_fast_rms_norm(Handle* r, Handle x, Handle w, float eps, Handle s) { TRY(put(r, mx::fast::rms_norm(arr(x), maybe(w), eps, stream(s)))) }
int mlx_fast_layer_norm(Handle* r, Handle x, Handle w, Handle b, float eps, Handle s) {
  TRY(put(r, mx::fast::layer_norm(arr(x), maybe(w), maybe(b), eps, stream(s))))
}
int mlx_fast_rope(Handle* r, Handle x, int d, bool traditional, OptionalFloat base, float scale, int offset, Handle freqs, Handle s) {
  TRY(put(r, mx::fast::rope(arr(x), d, traditional, base.has ? std::optional<float>(base.value) : std::nullopt, scale, offset,
      maybe(freqs), stream(s))))
}
int mlx_fast_scaled_dot_product_attention(Handle* r, Handle q, Handle k, Handle v, float scale, const char* mode, Handle mask, Handle sinks,
#if MLXC_LAYOUT >= 7
    bool,
#endif
    Handle s) {
  TRY(put(r, mx::fast::scaled_dot_product_attention(arr(q), arr(k), arr(v), scale, mode, maybe(mask), maybe(sinks), false, stream(s))))
}

// What the device is: mlx-c can tell from 0.5 on.
Handle mlx_device_new_type(int type, int) { return {new mx::Device(type ? mx::Device::gpu : mx::Device::cpu)}; }
int mlx_device_free(Handle h) {
  delete static_cast<mx::Device*>(h.ctx);
  return 0;
}
Handle mlx_device_info_new(void) { return {nullptr}; }
int mlx_device_info_free(Handle) { return 0; }
int mlx_device_info_get(Handle* r, Handle d) { TRY(r->ctx = (void*)&mx::device_info(*static_cast<mx::Device*>(d.ctx))) }
int mlx_device_info_get_size(size_t* r, Handle h, const char* key) {
  using Info = std::unordered_map<std::string, std::variant<std::string, size_t>>;
  TRY({
    auto& info = *static_cast<const Info*>(h.ctx);
    auto at = info.find(key);
    if (at == info.end() || !std::holds_alternative<size_t>(at->second)) return 2;
    *r = std::get<size_t>(at->second);
  })
}

// Ranks. Releases differ in how a group is made.
using Group = mx::distributed::Group;
#if MLXC_LAYOUT >= 7
int mlx_distributed_init(Handle* r, bool strict, const char* kind) { TRY(r->ctx = new Group(mx::distributed::init(strict, kind))) }
#else
Handle mlx_distributed_init(bool strict, const char* kind) {
  try {
    return {new Group(mx::distributed::init(strict, kind))};
  } catch (const std::exception& e) {
    fail(e.what());
    return {nullptr};
  }
}
#endif
int mlx_distributed_all_sum(Handle* r, Handle x, Handle g, Handle s) {
  TRY(put(r, mx::distributed::all_sum(arr(x), *static_cast<Group*>(g.ctx), stream(s))))
}

// The names that tell releases apart.
#if MLXC_LAYOUT >= 6
int mlx_bartlett(Handle*, int, Handle) { return fail("not here"); }
#endif
#if MLXC_LAYOUT >= 7
int mlx_cumsum_axis(Handle* r, Handle a, int axis, bool reverse, bool inclusive, Handle s) {
  TRY(put(r, mx::cumsum(arr(a), axis, reverse, inclusive, stream(s))))
}
#else
int mlx_cumsum(Handle* r, Handle a, int axis, bool reverse, bool inclusive, Handle s) {
  TRY(put(r, mx::cumsum(arr(a), axis, reverse, inclusive, stream(s))))
}
#endif
}
