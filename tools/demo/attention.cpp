// Causal attention of one micro-batch on the CPU, forward and backward, for attention.py: from the product that makes q, k and
// v to the input of the one that follows, so that norms, rotations and rounding are done where a head is in the cache.
//
// The scores of a head are never in memory as a whole: 16 rows of them at a time stay in the cache, and nothing right of
// the diagonal is computed (Dao et al., FlashAttention, 2022). Products are of bfloat16 and add up in float32, in AMX's
// tiles where the processor has them. All of them have one shape: rows of pairs times pairs side by side, where a pair
// is two neighbours along what is added up.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>
#ifdef __AVX512BF16__
#include <immintrin.h>
#endif
#ifdef __AMX_BF16__
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace {

typedef uint32_t pair;  // two bfloat16, the first one low
constexpr long size = 32, half = size / 2, block = 16, pairs = size / 2;  // numbers of a head, and half of them; rows made at once; pairs of a row

// 16 numbers side by side. Left to the compiler, some of the loops below were not of vectors, and took five times as long.
typedef float lane __attribute__((vector_size(64), aligned(4)));
typedef int32_t ints __attribute__((vector_size(64), aligned(4)));
typedef uint32_t bits __attribute__((vector_size(64), aligned(4)));
typedef uint16_t halves __attribute__((vector_size(32), aligned(2)));

inline lane& at(float* x) { return *(lane*)x; }
inline lane at(const float* x) { return *(const lane*)x; }
inline lane widened(const uint16_t* x) { return (lane)(__builtin_convertvector(*(const halves*)x, bits) << 16); }
inline void round_to(uint16_t* to, lane x) {
#ifdef __AVX512BF16__
  *(halves*)to = (halves)_mm512_cvtneps_pbh((__m512)x);
#else
  bits u = (bits)x;
  *(halves*)to = __builtin_convertvector((u + 0x7fff + (u >> 16 & 1)) >> 16, halves);
#endif
}
inline float sum_of(lane x) {
  float s = 0;
  for (int i = 0; i < 16; i++) s += x[i];
  return s;
}

// e to the x for x up to 0, to 1e-6 of it, and 0 or next to it below -87
inline lane exponential(lane x) {
  x *= 1.44269504f;
  x = x < -126.f ? lane{} - 126.f : x;
  ints whole = __builtin_convertvector(x - 0.5f, ints);  // the nearest, x not being above 0
  lane f = x - __builtin_convertvector(whole, lane);
  lane p = 1 + f * (0.69314718f + f * (0.24022651f + f * (0.05550411f + f * (0.00961813f + f * 0.00133336f))));
  return (lane)((ints)p + (whole << 23));
}

// Room is memory that begins at a cache line: a load across two takes twice as long.
template <class T>
struct Room {
  struct alignas(64) Line { T at[64 / sizeof(T)]; };
  std::vector<Line> lines;
  void resize(long n) { lines.resize(n * sizeof(T) / 64); }
  T* operator+(long i) { return lines.data()->at + i; }
  const T* operator+(long i) const { return lines.data()->at + i; }
};

#ifdef __AMX_BF16__
// Tiles asks the system for the tile registers and gives them their shape; whoever used them before finds his again.
struct Tiles {
  struct alignas(64) Shape { uint8_t palette, row, zero[14]; uint16_t bytes[16]; uint8_t rows[16]; } before{}, mine{};
  Tiles() {
    static long allowed = syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18 /* tile data */);
    (void)allowed;
    _tile_storeconfig(&before);
    mine.palette = 1;
    for (int i = 0; i < 8; i++) mine.bytes[i] = 64, mine.rows[i] = 16;
    _tile_loadconfig(&mine);
  }
  ~Tiles() { before.palette ? _tile_loadconfig(&before) : _tile_release(); }
};

// c[16][32] = sum over count pairs (a multiple of 16) of a[16][count] and b[count][32]; an, bn, cn: what is between two rows
inline void product(const pair* a, long an, const pair* b, long bn, long count, float* c, long cn) {
  asm volatile("" ::: "memory");  // the tile operations do not say which memory they use
  _tile_zero(0);
  _tile_zero(1);
  for (long n = 0; n < count; n += 16) {
    _tile_loadd(2, a + n, an * 4);
    _tile_loadd(3, b + n * bn, bn * 4);
    _tile_loadd(4, b + n * bn + 16, bn * 4);
    _tile_dpbf16ps(0, 2, 3);
    _tile_dpbf16ps(1, 2, 4);
  }
  _tile_stored(0, c, cn * 4);
  _tile_stored(1, c + 16, cn * 4);
  asm volatile("" ::: "memory");
}
#else
struct Tiles {};

inline void product(const pair* a, long an, const pair* b, long bn, long count, float* c, long cn) {
  for (long i = 0; i < block; i += 4) {
    lane s[4][2] = {};
    for (long n = 0; n < count; n++)
      for (int j = 0; j < 2; j++) {
        bits two = *(const bits*)(b + n * bn + 16 * j);
        lane low = (lane)(two << 16), high = (lane)(two & 0xffff0000u);
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) {
          bits x = bits{} + a[(i + k) * an + n];
          s[k][j] += (lane)(x << 16) * low + (lane)(x & 0xffff0000u) * high;
        }
      }
    for (int k = 0; k < 4; k++)
      for (int j = 0; j < 2; j++) *(lane*)(c + (i + k) * cn + 16 * j) = s[k][j];
  }
}
#endif

// Head is one head of one conversation in a tensor of bfloat16: t rows of 32 numbers, a row every step numbers.
struct Head {
  uint16_t* at;
  long t, step;
  uint16_t* row(long i) const { return at + i * step; }
};

// Norm is what is done to a head of q or k: its rows are divided by their root mean square, multiplied by weight (32), and turned by
// the angles of their places (t times 16 cosines and sines).
struct Norm {
  const float *weight, *cos, *sin;
  static constexpr float epsilon = 1e-6f;  // Config.eps
  static float inverse(lane a, lane b) { return 1 / std::sqrt(sum_of(a * a + b * b) / size + epsilon); }

  void turn(lane& a, lane& b, long i) const {
    lane c = at(cos + i * half), s = at(sin + i * half), x = a;
    a = x * c - b * s, b = b * c + x * s;
  }
  // from the gradient of a row, in two halves, to that of what it was made from, which is x; that of weight is added to dweight
  void back(lane& a, lane& b, long i, const uint16_t* x, float* dweight) const {
    lane c = at(cos + i * half), s = at(sin + i * half), y = a;
    a = y * c + b * s, b = b * c - y * s;
    lane u = widened(x), v = widened(x + half);
    float r = inverse(u, v);
    at(dweight) += a * u * r, at(dweight + half) += b * v * r;
    a *= at(weight), b *= at(weight + half);
    float along = sum_of(a * u + b * v) * r * r / size;
    a = (a - u * along) * r, b = (b - v * along) * r;
  }
};

// Rows is a head as it is multiplied, with zeros up to a multiple of 32 rows.
struct Rows {
  Room<pair> rows;    // padded rows of 16 pairs
  Room<pair> turned;  // 16 rows, one for each pair, of padded
  Room<pair> merged;  // pairs of two rows: padded / 2 rows of 32
  long padded;

  void resize(long n) { padded = n, rows.resize(n * pairs), turned.resize(n * pairs), merged.resize(n * pairs); }
  uint16_t* row(long i) { return (uint16_t*)(rows + i * pairs); }
  void pad(long t) { std::memset(row(t), 0, (padded - t) * size * 2); }
  void take(Head h) {
    for (long i = 0; i < h.t; i++) std::memcpy(row(i), h.row(i), size * 2);
    pad(h.t);
  }
  void take(Head h, const Norm& n, float scale) {
    for (long i = 0; i < h.t; i++) {
      lane a = widened(h.row(i)), b = widened(h.row(i) + half);
      float r = Norm::inverse(a, b) * scale;
      a *= at(n.weight) * r, b *= at(n.weight + half) * r;
      n.turn(a, b, i);
      round_to(row(i), a), round_to(row(i) + half, b);
    }
    pad(h.t);
  }
  void turn() {
    for (long i = 0; i < padded; i += 16) {
      bits x[16], y[16];
      std::memcpy(x, rows + i * pairs, sizeof x);
      for (int step = 8; step; step /= 2) {  // blocks of 8, 4, 2 and 1 change places across the diagonal
        bits low, high;
        for (int k = 0; k < 16; k++) low[k] = k & step ? 16 + k - step : k, high[k] = k & step ? 16 + k : k + step;
        for (int k = 0; k < 16; k++)
          if (!(k & step)) y[k] = __builtin_shuffle(x[k], x[k + step], low), y[k + step] = __builtin_shuffle(x[k], x[k + step], high);
        std::memcpy(x, y, sizeof x);
      }
      for (long p = 0; p < pairs; p++) std::memcpy(turned + p * padded + i, x + p, sizeof *x);
    }
  }
  void merge() {
    const uint16_t* from = (const uint16_t*)(rows + 0);
    for (long i = 0; i < padded; i += 2)
      for (long d = 0; d < size; d += 16) {
        bits low = __builtin_convertvector(*(const halves*)(from + i * size + d), bits), high = __builtin_convertvector(*(const halves*)(from + (i + 1) * size + d), bits);
        *(bits*)(merged + i * pairs + d) = low | high << 16;
      }
  }
};

long up(long n) { return (n + size - 1) / size * size; }

// Scratch is what the work on one head needs; padded is t as a multiple of 32.
struct Scratch {
  long padded;
  Rows q, k, v, dout;
  Room<float> scores, grads;  // 16 rows of padded: of queries times keys, of the output's gradient times values
  Room<pair> p, ds;           // what becomes of them: the shares, and the gradients of the scores
  Room<float> out, sum, mean;
  explicit Scratch(long t) : padded(up(t)) {
    for (auto* x : {&q, &k, &v, &dout}) x->resize(padded);
    for (auto* x : {&scores, &grads}) x->resize(block * padded);
    out.resize(block * size), sum.resize(padded), mean.resize(padded);
    p.resize(block * padded / 2), ds.resize(block * padded / 2);
  }
  // to[16][from..until] = products of 16 rows of a, from first, with the rows from..until of b
  void against(const Rows& a, long first, const Rows& b, long from, long until, Room<float>& to) {
    for (long j = from; j < until; j += size) product(a.rows + first * pairs, pairs, b.turned + j, padded, pairs, to + j, padded);
  }
  // the 16 rows of out, from first, one at a time: f(i, first half, second half)
  template <class F>
  void rows_of(long first, long t, F f) {
    for (long i = 0; i < std::min(block, t - first); i++) f(first + i, at(out + i * size), at(out + i * size + half));
  }
};

void put(Head to, long i, lane a, lane b) { round_to(to.row(i), a), round_to(to.row(i) + half, b); }

void forward(Head q, Head k, Head v, const Norm& qn, const Norm& kn, Head out, float* sum, Scratch& s) {
  s.q.take(q, qn, 1 / std::sqrt(float(size))), s.k.take(k, kn, 1), s.k.turn(), s.v.take(v), s.v.merge();
  for (long first = 0; first < q.t; first += block) {
    long seen = up(first + block);
    float share[block];
    s.against(s.q, first, s.k, 0, seen, s.scores);
    for (long i = 0; i < block; i++) {
      float* x = s.scores + i * s.padded;
      uint16_t* p = (uint16_t*)(s.p + i * s.padded / 2);
      for (long j = first + i + 1; j < seen; j++) x[j] = -1e30f;
      lane most = at(x), all = {};
      for (long j = 16; j < seen; j += 16) most = most > at(x + j) ? most : at(x + j);
      float m = most[0];
      for (int j = 1; j < 16; j++) m = std::max(m, most[j]);
      for (long j = 0; j < seen; j += 16) {
        lane e = exponential(at(x + j) - m);
        all += e, round_to(p + j, e);
      }
      float a = sum_of(all);
      if (first + i < q.t) sum[first + i] = m + std::log(a);
      share[i] = 1 / a;
    }
    product(s.p + 0, s.padded / 2, s.v.merged + 0, size, seen / 2, s.out + 0, size);
    s.rows_of(first, q.t, [&](long i, lane a, lane b) { put(out, i, a * share[i - first], b * share[i - first]); });
  }
}

void backward(Head q, Head k, Head v, const Norm& qn, const Norm& kn, Head out, const float* sum, Head dout, Head dq, Head dk, Head dv, float* dqn, float* dkn, Scratch& s) {
  float scale = 1 / std::sqrt(float(size));
  s.q.take(q, qn, scale), s.q.turn(), s.q.merge(), s.k.take(k, kn, 1), s.k.turn(), s.k.merge(), s.v.take(v), s.v.turn(), s.dout.take(dout), s.dout.turn(), s.dout.merge();
  float *total = s.sum + 0, *mean = s.mean + 0;
  for (long i = 0; i < s.padded; i++) total[i] = i < q.t ? sum[i] : 0, mean[i] = 0;
  for (long i = 0; i < q.t; i++) mean[i] = sum_of(widened(dout.row(i)) * widened(out.row(i)) + widened(dout.row(i) + half) * widened(out.row(i) + half));
  // by rows of queries, for theirs
  for (long first = 0; first < q.t; first += block) {
    long seen = up(first + block);
    s.against(s.q, first, s.k, 0, seen, s.scores), s.against(s.dout, first, s.v, 0, seen, s.grads);
    for (long i = 0; i < block; i++) {
      float *x = s.scores + i * s.padded, *g = s.grads + i * s.padded, m = mean[first + i], l = total[first + i];
      uint16_t* ds = (uint16_t*)(s.ds + i * s.padded / 2);
      for (long j = first + i + 1; j < seen; j++) x[j] = -1e30f;
      for (long j = 0; j < seen; j += 16) {
        lane y = at(x + j) - l;
        round_to(ds + j, exponential(y < 0.f ? y : lane{}) * (at(g + j) - m));
      }
    }
    product(s.ds + 0, s.padded / 2, s.k.merged + 0, size, seen / 2, s.out + 0, size);
    s.rows_of(first, q.t, [&](long i, lane a, lane b) {
      a *= scale, b *= scale;
      qn.back(a, b, i, q.row(i), dqn), put(dq, i, a, b);
    });
  }
  // by rows of keys, for theirs and those of the values
  for (long first = 0; first < k.t; first += block) {
    long from = first / size * size;
    s.against(s.k, first, s.q, from, s.padded, s.scores), s.against(s.v, first, s.dout, from, s.padded, s.grads);
    for (long j = 0; j < block; j++) {
      float *x = s.scores + j * s.padded, *g = s.grads + j * s.padded;
      uint16_t *p = (uint16_t*)(s.p + j * s.padded / 2), *ds = (uint16_t*)(s.ds + j * s.padded / 2);
      for (long i = from; i < first + j; i++) x[i] = -1e30f;
      for (long i = from; i < s.padded; i += 16) {
        lane y = at(x + i) - at(total + i), e = exponential(y < 0.f ? y : lane{});
        round_to(p + i, e), round_to(ds + i, e * (at(g + i) - at(mean + i)));
      }
    }
    product(s.p + from / 2, s.padded / 2, s.dout.merged + from * pairs, size, (s.padded - from) / 2, s.out + 0, size);
    s.rows_of(first, k.t, [&](long i, lane a, lane b) { put(dv, i, a, b); });
    product(s.ds + from / 2, s.padded / 2, s.q.merged + from * pairs, size, (s.padded - from) / 2, s.out + 0, size);
    s.rows_of(first, k.t, [&](long i, lane a, lane b) { kn.back(a, b, i, k.row(i), dkn), put(dk, i, a, b); });
  }
}

}  // namespace

// qkv and its gradient are batch, t, 3 times heads, 32 of bfloat16, the output and its gradient batch, t, heads, 32, one number after
// the other. qn and kn are the weights of the norms, 32 each, and sum (the logarithm of a row's sum) is batch, heads, t; to the
// gradients of qn and kn is added.
extern "C" void attention_forward(long batch, long t, long heads, uint16_t* qkv, float* qn, float* kn, float* cos, float* sin, uint16_t* out, float* sum) {
  Scratch s(t);
  Tiles tiles;
  Norm q{qn, cos, sin}, k{kn, cos, sin};
  for (long b = 0; b < batch; b++)
    for (long h = 0; h < heads; h++) {
      auto head = [&](uint16_t* x, long many, long n) { return Head{x + ((b * t * many + n) * heads + h) * size, t, many * heads * size}; };
      forward(head(qkv, 3, 0), head(qkv, 3, 1), head(qkv, 3, 2), q, k, head(out, 1, 0), sum + (b * heads + h) * t, s);
    }
}

extern "C" void attention_backward(long batch, long t, long heads, uint16_t* qkv, float* qn, float* kn, float* cos, float* sin, uint16_t* out, float* sum, uint16_t* dout, uint16_t* dqkv, float* dqn, float* dkn) {
  Scratch s(t);
  Tiles tiles;
  Norm q{qn, cos, sin}, k{kn, cos, sin};
  for (long b = 0; b < batch; b++)
    for (long h = 0; h < heads; h++) {
      auto head = [&](uint16_t* x, long many, long n) { return Head{x + ((b * t * many + n) * heads + h) * size, t, many * heads * size}; };
      backward(head(qkv, 3, 0), head(qkv, 3, 1), head(qkv, 3, 2), q, k, head(out, 1, 0), sum + (b * heads + h) * t, head(dout, 1, 0), head(dqkv, 3, 0), head(dqkv, 3, 1), head(dqkv, 3, 2), dqn, dkn, s);
    }
}
