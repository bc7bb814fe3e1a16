// Numbers side by side, and products of bfloat16 that add up in float32: in AMX's tiles where the processor has them, else in
// AVX-512's vectors. A matrix that is multiplied is in tiles of 16 rows of 16 pairs, a pair being two neighbours along what is added up.
#pragma once
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>
#ifdef __AMX_BF16__
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace {

typedef uint32_t pair;  // two bfloat16, the first one low

// 16 numbers side by side. Left to the compiler, some loops were not of vectors, and took five times as long.
typedef float lane __attribute__((vector_size(64), aligned(4)));
typedef int32_t ints __attribute__((vector_size(64), aligned(4)));
typedef uint32_t bits __attribute__((vector_size(64), aligned(4)));
typedef uint16_t halves __attribute__((vector_size(32), aligned(2)));

inline lane& at(float* x) { return *(lane*)x; }
inline lane at(const float* x) { return *(const lane*)x; }
inline lane widened(const uint16_t* x) { return (lane)(__builtin_convertvector(*(const halves*)x, bits) << 16); }
inline halves rounded(lane x) { return (halves)_mm512_cvtneps_pbh((__m512)x); }
inline void round_to(uint16_t* to, lane x) { *(halves*)to = rounded(x); }
inline bits paired(halves low, halves high) { return __builtin_convertvector(low, bits) | __builtin_convertvector(high, bits) << 16; }
inline lane larger(lane a, lane b) { return a > b ? a : b; }
inline float sum_of(lane x) { return _mm512_reduce_add_ps((__m512)x); }
inline float most_of(lane x) { return _mm512_reduce_max_ps((__m512)x); }

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
  void resize(long n) { lines.resize((n * sizeof(T) + 63) / 64); }
  T* operator+(long i) { return lines.data()->at + i; }
  const T* operator+(long i) const { return lines.data()->at + i; }
};

inline long up(long n, long to) { return (n + to - 1) / to * to; }

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
#else
struct Tiles {};

// c[8][32] (+)= 8 rows of a tile times two tiles
inline void dots(const pair* a, const pair* b, const pair* b2, float* c, long cn, bool add) {
  __m512 s[8][2] = {};
  for (int k = 0; add && k < 8; k++) s[k][0] = (__m512)at(c + k * cn), s[k][1] = (__m512)at(c + k * cn + 16);
  for (long n = 0; n < 16; n++) {
    __m512bh x = (__m512bh)*(const bits*)(b + n * 16), y = (__m512bh)*(const bits*)(b2 + n * 16);
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {
      __m512bh both = (__m512bh)(bits{} + a[k * 16 + n]);
      s[k][0] = _mm512_dpbf16_ps(s[k][0], both, x), s[k][1] = _mm512_dpbf16_ps(s[k][1], both, y);
    }
  }
  for (int k = 0; k < 8; k++) at(c + k * cn) = (lane)s[k][0], at(c + k * cn + 16) = (lane)s[k][1];
}
#endif

constexpr long tile = 256;  // pairs of a tile

// The rows of a tile become its columns; from and to have rows of step numbers.
inline void turn(const pair* from, long from_step, pair* to, long to_step) {
  for (long q = 0; q < 16; q += 4) {  // of four columns; rows 4 apart are in one register, and four by four change places there
    __m512i x[4];
    for (long i = 0; i < 4; i++) {
      auto at = [&](long row) { return _mm_loadu_si128((const __m128i*)(from + row * from_step + q)); };
      x[i] = _mm512_castsi128_si512(at(i));
      x[i] = _mm512_mask_broadcast_i32x4(x[i], 0x00f0, at(i + 4));
      x[i] = _mm512_mask_broadcast_i32x4(x[i], 0x0f00, at(i + 8));
      x[i] = _mm512_mask_broadcast_i32x4(x[i], 0xf000, at(i + 12));
    }
    __m512i a = _mm512_unpacklo_epi32(x[0], x[1]), b = _mm512_unpackhi_epi32(x[0], x[1]), c = _mm512_unpacklo_epi32(x[2], x[3]), d = _mm512_unpackhi_epi32(x[2], x[3]);
    __m512i y[] = {_mm512_unpacklo_epi64(a, c), _mm512_unpackhi_epi64(a, c), _mm512_unpacklo_epi64(b, d), _mm512_unpackhi_epi64(b, d)};
    for (long i = 0; i < 4; i++) _mm512_storeu_si512(to + (q + i) * to_step, y[i]);
  }
}

// Strips is a matrix of bfloat16 in strips of 32 columns: the rows of the first 32 columns, then those of the next. After them is room
// for 32 rows: a product may read, and forget, that many rows too many.
struct Strips {
  uint16_t* data;
  long rows;
  static long room(long rows, long width) { return (width / 32 * rows + 32) * 32; }
  uint16_t* at(long row, long column) const { return data + (column / 32 * rows + row) * 32 + column % 32; }
  Strips from(long row) const { return {data + row * 32, rows}; }
};

// Left is the left side of products: tiles of 16 rows of 32 numbers each.
struct Left {
  const pair* at;
  long below, along;  // from a tile to the one of the next 16 rows, and to that of the next 32 columns
  Left(Strips s) : at((const pair*)s.data), below(tile), along(s.rows * 16) {}
  Left(const pair* at, long steps) : at(at), below(steps * tile), along(tile) {}
};

// Right is the right side: tiles of 16 pairs of rows by 16 columns, those along what is added up one after the other.
struct Right {
  Room<pair> room;
  long steps;  // tiles along what is added up
  void resize(long outer, long inner) { steps = up(inner, 32) / 32, room.resize(up(outer, 32) / 16 * steps * tile); }
  pair* at(long outer, long step) { return room + (outer * steps + step) * tile; }

  // a tile of count rows of m, from row 32 times step on, as pairs of rows
  static void merge(Strips m, long count, long column, long step, pair* to) {
    const uint16_t* from = m.at(32 * step, column);
    count -= 32 * step;
    for (long p = 0; p < 16; p++) {
      halves a = 2 * p < count ? *(const halves*)(from + 64 * p) : halves{}, b = 2 * p + 1 < count ? *(const halves*)(from + 64 * p + 32) : halves{};
      *(bits*)(to + 16 * p) = paired(a, b);
    }
  }
  // count rows of m, which are what is added up
  void take(Strips m, long count, long width) {
    resize(width, count);
    for (long j = 0; j < width / 16; j++)
      for (long s = 0; s < steps; s++) merge(m, count, 16 * j, s, at(j, s));
  }
  // weights, out rows of in numbers: the rows are the columns
  void weights(const float* w, long out, long in) {
    resize(out, in);
    alignas(64) pair some[tile];
    for (long j = 0; j < out / 16; j++)
      for (long s = 0; s < steps; s++) {
        for (long i = 0; i < 16; i++)
          for (long d = 0; d < 32; d += 16) round_to((uint16_t*)(some + 16 * i) + d, ::at(w + (16 * j + i) * in + 32 * s + d));
        turn(some, 16, at(j, s), 16);
      }
  }
  // the same weights, whose rows are what is added up
  void weights_back(const float* w, long out, long in) {
    resize(in, out);
    for (long s = 0; s < steps; s++)
      for (long j = 0; j < in / 16; j++)
        for (long p = 0; p < 16; p++) {
          const float* x = w + (32 * s + 2 * p) * in + 16 * j;
          *(bits*)(at(j, s) + 16 * p) = paired(rounded(::at(x)), rounded(::at(x + in)));
        }
  }
};

// c[32][32] (+)= 32 rows of the left side, from tile i on, times the right side's columns of tiles j and j+1, both as far as steps tiles
inline void product(const Left& left, long i, Right& right, long j, long steps, float* c, long cn, bool add) {
  const pair *a = left.at + i * left.below, *a2 = a + left.below, *b = right.at(j, 0), *b2 = right.at(j + 1, 0);
#ifdef __AMX_BF16__
  asm volatile("" ::: "memory");  // the tile operations do not say which memory they use
  if (add) {
    _tile_loadd(0, c, cn * 4);
    _tile_loadd(1, c + 16, cn * 4);
    _tile_loadd(2, c + 16 * cn, cn * 4);
    _tile_loadd(3, c + 16 * cn + 16, cn * 4);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (long s = 0; s < steps; s++, a += left.along, a2 += left.along) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b + s * tile, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b2 + s * tile, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a2, 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, cn * 4);
  _tile_stored(1, c + 16, cn * 4);
  _tile_stored(2, c + 16 * cn, cn * 4);
  _tile_stored(3, c + 16 * cn + 16, cn * 4);
  asm volatile("" ::: "memory");
#else
  for (long s = 0; s < steps; s++, a += left.along, a2 += left.along)
    for (long k = 0; k < 32; k += 8) dots((k < 16 ? a : a2) + k % 16 * 16, b + s * tile, b2 + s * tile, c + k * cn, cn, add || s);
#endif
}

// All products of left, of count rows, and right, of width columns, in blocks of 32 by 32: f(row, column, 16 numbers)
template <class F>
void multiply(const Left& left, long count, Right& right, long width, F f) {
  alignas(64) float block[32 * 32];
  for (long j = 0; j < width; j += 32)
    for (long i = 0; i < count; i += 32) {
      product(left, i / 16, right, j / 16, right.steps, block, 32, false);
      for (long r = 0; r < std::min(32L, count - i); r++)
        for (long d = 0; d < 32; d += 16) f(i + r, j + d, at(block + 32 * r + d));
    }
}

}  // namespace
