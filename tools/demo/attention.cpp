// Causal attention of one micro-batch on the CPU, forward and backward, for attention.py.
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
#ifdef __AMX_BF16__
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace {

typedef uint32_t pair;  // two bfloat16, the first one low
constexpr long size = 32, block = 16, pairs = size / 2;  // numbers of a head; rows made at once; pairs of a row

uint16_t rounded(float f) {
  uint32_t u;
  std::memcpy(&u, &f, 4);
  return (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

// e to the x for x up to 0, to 1e-6 of it, and 0 or next to it below -87; a loop of it needs no library
inline float exponential(float x) {
  x = std::max(x * 1.44269504f, -126.f);
  float whole = std::nearbyint(x), f = x - whole;
  float p = 1 + f * (0.69314718f + f * (0.24022651f + f * (0.05550411f + f * (0.00961813f + f * 0.00133336f))));
  int32_t u;
  std::memcpy(&u, &p, 4);
  u += int32_t(whole) * (1 << 23);
  std::memcpy(&p, &u, 4);
  return p;
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
  typedef float lane __attribute__((vector_size(64), aligned(4)));
  typedef uint32_t bits __attribute__((vector_size(64), aligned(4)));
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

// Head is the q, k, v or output of one head of one conversation, or its gradient: t rows of 32 numbers, a row every step numbers.
struct Head {
  float* at;
  long t, step;
};

// Rows is a head in bfloat16, with zeros up to a multiple of 32 rows.
struct Rows {
  Room<pair> rows;    // padded rows of 16 pairs
  Room<pair> turned;  // 16 rows, one for each pair, of padded
  Room<pair> merged;  // pairs of two rows: padded / 2 rows of 32
  long padded;

  void resize(long n) { padded = n, rows.resize(n * pairs), turned.resize(n * pairs), merged.resize(n * pairs); }
  void take(Head h, float scale = 1) {
    uint16_t* to = (uint16_t*)(rows + 0);
    for (long i = 0; i < h.t; i++)
      for (long d = 0; d < size; d++) to[i * size + d] = rounded(h.at[i * h.step + d] * scale);
    std::memset(to + h.t * size, 0, (padded - h.t) * size * 2);
  }
  void turn() {
    const pair* from = rows + 0;
    for (long i = 0; i < padded; i += 16)
      for (long p = 0; p < pairs; p++)
        for (long k = 0; k < 16; k++) (turned + p * padded + i)[k] = from[(i + k) * pairs + p];
  }
  void merge() {
    const uint16_t* from = (const uint16_t*)(rows + 0);
    for (long i = 0; i < padded; i += 2)
      for (long d = 0; d < size; d++) (merged + i * pairs)[d] = from[i * size + d] | uint32_t(from[(i + 1) * size + d]) << 16;
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
};

void put(const Room<float>& from, long first, Head to, float scale = 1) {
  for (long i = 0; i < std::min(block, to.t - first); i++)
    for (long d = 0; d < size; d++) to.at[(first + i) * to.step + d] = (from + i * size)[d] * scale;
}

void forward(Head q, Head k, Head v, Head out, float* sum, Scratch& s) {
  s.q.take(q, 1 / std::sqrt(float(size))), s.k.take(k), s.k.turn(), s.v.take(v), s.v.merge();
  for (long first = 0; first < q.t; first += block) {
    long seen = up(first + block);
    float share[block];
    s.against(s.q, first, s.k, 0, seen, s.scores);
    for (long i = 0; i < block; i++) {
      float *x = s.scores + i * s.padded, most = -1e30f, all = 0;
      uint16_t* p = (uint16_t*)(s.p + i * s.padded / 2);
      for (long j = first + i + 1; j < seen; j++) x[j] = -1e30f;
      for (long j = 0; j < seen; j++) most = std::max(most, x[j]);
      for (long j = 0; j < seen; j++) {
        float e = exponential(x[j] - most);
        all += e, p[j] = rounded(e);
      }
      if (first + i < q.t) sum[first + i] = most + std::log(all);
      share[i] = 1 / all;
    }
    product(s.p + 0, s.padded / 2, s.v.merged + 0, size, seen / 2, s.out + 0, size);
    for (long i = 0; i < block; i++)
      for (long d = 0; d < size; d++) (s.out + i * size)[d] *= share[i];
    put(s.out, first, out);
  }
}

void backward(Head q, Head k, Head v, Head out, const float* sum, Head dout, Head dq, Head dk, Head dv, Scratch& s) {
  float scale = 1 / std::sqrt(float(size));
  s.q.take(q, scale), s.q.turn(), s.q.merge(), s.k.take(k), s.k.turn(), s.k.merge(), s.v.take(v), s.v.turn(), s.dout.take(dout), s.dout.turn(), s.dout.merge();
  float *total = s.sum + 0, *mean = s.mean + 0;
  for (long i = 0; i < s.padded; i++) total[i] = i < q.t ? sum[i] : 0, mean[i] = 0;
  for (long i = 0; i < q.t; i++)
    for (long d = 0; d < size; d++) mean[i] += dout.at[i * dout.step + d] * out.at[i * out.step + d];
  // by rows of queries, for theirs
  for (long first = 0; first < q.t; first += block) {
    long seen = up(first + block);
    s.against(s.q, first, s.k, 0, seen, s.scores), s.against(s.dout, first, s.v, 0, seen, s.grads);
    for (long i = 0; i < block; i++) {
      float *x = s.scores + i * s.padded, *g = s.grads + i * s.padded, m = mean[first + i], l = total[first + i];
      uint16_t* ds = (uint16_t*)(s.ds + i * s.padded / 2);
      for (long j = 0; j < seen; j++) x[j] = exponential(std::min(x[j] - l, 0.f)) * (g[j] - m);
      for (long j = first + i + 1; j < seen; j++) x[j] = 0;
      for (long j = 0; j < seen; j++) ds[j] = rounded(x[j]);
    }
    product(s.ds + 0, s.padded / 2, s.k.merged + 0, size, seen / 2, s.out + 0, size);
    put(s.out, first, dq, scale);
  }
  // by rows of keys, for theirs and those of the values
  for (long first = 0; first < k.t; first += block) {
    long from = first / size * size;
    s.against(s.k, first, s.q, from, s.padded, s.scores), s.against(s.v, first, s.dout, from, s.padded, s.grads);
    for (long j = 0; j < block; j++) {
      float *x = s.scores + j * s.padded, *g = s.grads + j * s.padded;
      uint16_t *p = (uint16_t*)(s.p + j * s.padded / 2), *ds = (uint16_t*)(s.ds + j * s.padded / 2);
      for (long i = from; i < s.padded; i++) x[i] = exponential(std::min(x[i] - total[i], 0.f));
      for (long i = from; i < first + j; i++) x[i] = 0;
      for (long i = from; i < s.padded; i++) p[i] = rounded(x[i]), ds[i] = rounded(x[i] * (g[i] - mean[i]));
    }
    product(s.p + from / 2, s.padded / 2, s.dout.merged + from * pairs, size, (s.padded - from) / 2, s.out + 0, size);
    put(s.out, first, dv);
    product(s.ds + from / 2, s.padded / 2, s.q.merged + from * pairs, size, (s.padded - from) / 2, s.out + 0, size);
    put(s.out, first, dk);
  }
}

}  // namespace

// All tensors are batch, t, heads, 32, one number after the other; sum (the logarithm of a row's sum) is batch, heads, t.
extern "C" void attention_forward(long batch, long t, long heads, float* q, float* k, float* v, float* out, float* sum) {
  Scratch s(t);
  Tiles tiles;
  for (long b = 0; b < batch; b++)
    for (long h = 0; h < heads; h++) {
      auto head = [&](float* x) { return Head{x + (b * t * heads + h) * size, t, heads * size}; };
      forward(head(q), head(k), head(v), head(out), sum + (b * heads + h) * t, s);
    }
}

extern "C" void attention_backward(long batch, long t, long heads, float* q, float* k, float* v, float* out, float* sum, float* dout, float* dq, float* dk, float* dv) {
  Scratch s(t);
  Tiles tiles;
  for (long b = 0; b < batch; b++)
    for (long h = 0; h < heads; h++) {
      auto head = [&](float* x) { return Head{x + (b * t * heads + h) * size, t, heads * size}; };
      backward(head(q), head(k), head(v), head(out), sum + (b * heads + h) * t, head(dout), head(dq), head(dk), head(dv), s);
    }
}
