// Causal attention of one head, forward and backward, for blocks.cpp: from the product that makes q, k and v to the input of the
// one that follows, so that norms, rotations and rounding are done where a head is in the cache.
//
// The scores of a head are never in memory as a whole: 32 rows of them at a time stay in the cache, and nothing right of
// the diagonal is computed but for what a tile has too much (Dao et al., FlashAttention, 2022).
#pragma once
#include <tuple>

#include "tiles.h"

namespace {

constexpr long size = 32, half = size / 2, block = 32;  // numbers of a head, and half of them; rows made at once

// Head is one head of one conversation: t rows of 32 numbers of bfloat16.
struct Head {
  uint16_t* at;
  long t;
  uint16_t* row(long i) const { return at + i * size; }
  void put(long i, lane a, lane b) const { round_to(row(i), a), round_to(row(i) + half, b); }
  Strips strips() const { return {at, t}; }
};

// Norm is what is done to a head of q or k: its rows are divided by their root mean square, multiplied by weight (32), and turned by
// the angles of their places (t times 16 cosines and sines).
struct Norm {
  const float *weight, *cos, *sin;
  static constexpr float epsilon = 1e-6f;  // Config.eps
  static float inverse(lane a, lane b) { return 1 / std::sqrt(sum_of(a * a + b * b) / size + epsilon); }

  void apply(lane& a, lane& b, long i, float scale) const {
    float r = inverse(a, b) * scale;
    lane c = at(cos + i * half), s = at(sin + i * half), x = a * at(weight) * r, y = b * at(weight + half) * r;
    a = x * c - y * s, b = y * c + x * s;
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

// Guided is what else is asked of a head: its q and k, normed and turned, and its v, t rows of 32 numbers, a row every step numbers;
// or what the gradients of these are. There is none for most heads.
struct Guided {
  float *q = nullptr, *k = nullptr, *v = nullptr;
  long step = 0;

  static void add(const float* from, long step, long i, lane& a, lane& b) {
    if (from) a += at(from + i * step), b += at(from + i * step + half);
  }
  void take(Head hq, Head hk, Head hv, const Norm& qn, const Norm& kn) const {
    auto put = [&](float* to, long i, lane a, lane b) { at(to + i * step) = a, at(to + i * step + half) = b; };
    for (long i = 0; q && i < hq.t; i++) {
      lane a = widened(hq.row(i)), b = widened(hq.row(i) + half), c = widened(hk.row(i)), d = widened(hk.row(i) + half);
      qn.apply(a, b, i, 1), kn.apply(c, d, i, 1);
      put(q, i, a, b), put(k, i, c, d), put(v, i, widened(hv.row(i)), widened(hv.row(i) + half));
    }
  }
};

// Rows is a head as it is multiplied, with zeros up to a multiple of 32 rows.
struct Rows {
  Room<uint16_t> room;
  long padded;
  void resize(long n) { padded = n, room.resize(Strips::room(n, size)); }
  Strips strips() { return {room + 0, padded}; }
  void take(Head h) {
    std::memcpy(room + 0, h.at, h.t * size * 2);
    std::memset(room + h.t * size, 0, (padded - h.t) * size * 2);
  }
  void take(Head h, const Norm& n, float scale) {
    Head to{room + 0, padded};
    for (long i = 0; i < h.t; i++) {
      lane a = widened(h.row(i)), b = widened(h.row(i) + half);
      n.apply(a, b, i, scale), to.put(i, a, b);
    }
    std::memset(to.row(h.t), 0, (padded - h.t) * size * 2);
  }
  // the rows as columns of the right side
  void columns(Right& to) {
    to.resize(padded, size);
    for (long j = 0; j < padded / 16; j++) turn((const pair*)(room + j * 16 * size), 16, to.at(j, 0), 16);
  }
};

// Scratch is what the work on one head needs; padded is t as a multiple of 32.
struct Scratch {
  long padded;
  Rows q, k, v, dout;
  Right k_columns, v_columns, k_rows, v_rows;
  Room<float> scores, grads;           // 32 rows of padded: of queries times keys, of the output's gradient times values
  Room<uint16_t> p;                    // what becomes of a block of them, as the left side of a product: the shares, and, of backward(), the gradients
  Right p_pairs, ds_pairs;             // and, its rows in pairs, as the right side
  Room<float> out, sum, mean, dk, dv;  // dk and dv are 32 rows, of the numbers of a head, of padded
  explicit Scratch(long t) : padded(up(t, block)) {
    for (auto* x : {&q, &k, &v, &dout}) x->resize(padded);
    for (auto* x : {&scores, &grads, &dk, &dv}) x->resize(block * padded);
    for (auto* x : {&p_pairs, &ds_pairs}) x->resize(padded, block);
    for (auto* x : {&sum, &mean}) x->resize(padded);
    p.resize(Strips::room(block, padded)), out.resize(block * size);
  }
  Strips shares() { return {p + 0, block}; }
  // the rows of a, from first, times all columns of b up to their own
  void against(Rows& a, long first, Right& b, Room<float>& to) {
    for (long j = 0; j < first + block; j += 32) product(Left(a.strips()), first / 16, b, j / 16, 1, to + j, padded, false);
  }
  // The block of shares() times the rows of b, and of what that gives a row at a time: f(i, first half, second half)
  template <class F>
  void through(Right& b, long first, long t, F f) {
    product(Left(shares()), 0, b, 0, first / 32 + 1, out + 0, size, false);
    for (long i = 0; i < std::min(block, t - first); i++) f(first + i, at(out + i * size), at(out + i * size + half));
  }
};

constexpr bits places = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
// of 16 scores, of which the one at place i is on the diagonal
inline lane causal(lane x, uint32_t i) { return places > i ? lane{} - 1e30f : x; }

void forward(Head q, Head k, Head v, const Norm& qn, const Norm& kn, Head out, float* sum, Scratch& s) {
  s.q.take(q, qn, 1 / std::sqrt(float(size))), s.k.take(k, kn, 1), s.k.columns(s.k_columns), s.v_rows.take(v.strips(), v.t, size);
  for (long first = 0; first < q.t; first += block) {
    float share[block];
    s.against(s.q, first, s.k_columns, s.scores);
    for (long i = 0; i < block; i++) {
      float* x = s.scores + i * s.padded;
      long last = first + i / 16 * 16;  // where the lane with the diagonal is
      lane most = at(x + last) = causal(at(x + last), i % 16), all = {};
      for (long j = 0; j < last; j += 16) most = larger(most, at(x + j));
      float m = most_of(most);
      for (long j = 0; j <= last; j += 16) {
        lane e = exponential(at(x + j) - m);
        all += e, round_to(s.shares().at(i, j), e);
      }
      if (i < 16) round_to(s.shares().at(i, last + 16), lane{});
      float a = sum_of(all);
      if (first + i < q.t) sum[first + i] = m + std::log(a);
      share[i] = 1 / a;
    }
    s.through(s.v_rows, first, q.t, [&](long i, lane a, lane b) { out.put(i, a * share[i - first], b * share[i - first]); });
  }
}

// extra: gradients of what Guided::take() gave
void backward(Head q, Head k, Head v, const Norm& qn, const Norm& kn, Head out, const float* sum, Head dout, Guided extra, Head dq, Head dk, Head dv, float* dqn, float* dkn, Scratch& s) {
  float scale = 1 / std::sqrt(float(size)), *total = s.sum + 0, *mean = s.mean + 0;
  s.q.take(q, qn, scale), s.k.take(k, kn, 1), s.v.take(v), s.dout.take(dout), s.k.columns(s.k_columns), s.v.columns(s.v_columns), s.k_rows.take(s.k.strips(), s.padded, size);
  for (long i = 0; i < s.padded; i++) total[i] = i < q.t ? sum[i] : 0, mean[i] = 0;
  for (long i = 0; i < q.t; i++) mean[i] = sum_of(widened(dout.row(i)) * widened(out.row(i)) + widened(dout.row(i) + half) * widened(out.row(i) + half));
  for (long first = 0; first < q.t; first += block) {
    s.against(s.q, first, s.k_columns, s.scores), s.against(s.dout, first, s.v_columns, s.grads);
    for (long i = 0; i < block; i += 2) {
      long last = first + i / 16 * 16;
      for (long j = 0; j <= last; j += 16) {
        lane e[2], ds[2];
        for (long n = 0; n < 2; n++) {
          lane y = at(s.scores + (i + n) * s.padded + j) - total[first + i + n];
          if (j == last) y = causal(y, (i + n) % 16);
          e[n] = exponential(y < 0.f ? y : lane{}), ds[n] = e[n] * (at(s.grads + (i + n) * s.padded + j) - mean[first + i + n]);
          round_to(s.shares().at(i + n, j), ds[n]);
        }
        *(bits*)(s.p_pairs.at(j / 16, 0) + i / 2 * 16) = paired(rounded(e[0]), rounded(e[1]));
        *(bits*)(s.ds_pairs.at(j / 16, 0) + i / 2 * 16) = paired(rounded(ds[0]), rounded(ds[1]));
      }
      if (i < 16) {
        for (long n = 0; n < 2; n++) round_to(s.shares().at(i + n, last + 16), lane{});
        for (auto* x : {&s.p_pairs, &s.ds_pairs}) *(bits*)(x->at(last / 16 + 1, 0) + i / 2 * 16) = bits{};
      }
    }
    s.through(s.k_rows, first, q.t, [&](long i, lane a, lane b) {
      a *= scale, b *= scale;
      Guided::add(extra.q, extra.step, i, a, b), qn.back(a, b, i, q.row(i), dqn), dq.put(i, a, b);
    });
    for (auto [rows, shares, to] : {std::tuple{&s.q, &s.ds_pairs, &s.dk}, {&s.dout, &s.p_pairs, &s.dv}}) {
      alignas(64) pair some[tile], columns[2 * tile];
      for (long d = 0; d < size; d += 16) Right::merge(rows->strips().from(first), block, d, 0, some), turn(some, 16, columns + d * 16, 16);
      for (long j = 0; j <= first; j += 32) product(Left(columns, 1), 0, *shares, j / 16, 1, *to + j, s.padded, j < first);
    }
  }
  for (long first = 0; first < k.t; first += 16) {
    alignas(64) float of_k[16 * size], of_v[16 * size];
    for (long d = 0; d < size; d += 16) turn((pair*)(s.dk + d * s.padded + first), s.padded, (pair*)of_k + d, size), turn((pair*)(s.dv + d * s.padded + first), s.padded, (pair*)of_v + d, size);
    for (long i = first; i < std::min(first + 16, k.t); i++) {
      float *x = of_k + (i - first) * size, *y = of_v + (i - first) * size;
      lane a = at(x), b = at(x + half), c = at(y), d = at(y + half);
      Guided::add(extra.k, extra.step, i, a, b), kn.back(a, b, i, k.row(i), dkn), dk.put(i, a, b);
      Guided::add(extra.v, extra.step, i, c, d), dv.put(i, c, d);
    }
  }
}

}  // namespace
