// The two halves of a decoder block on the CPU, forward and backward, for blocks.py.
//
// Rows go through a half a few at a time, so that what is between its products stays in the cache; only what the gradients need is
// kept. Products are of bfloat16 and add up in float32; what goes on from block to block and its gradients are float32.
#include "attention.h"

namespace {

constexpr long panel = 64, chunk = 512;  // rows that go through a half at once, and rows whose part of the gradients of weights is added at once

// RowNorm divides rows by their root mean square and multiplies them by weight (dim).
struct RowNorm {
  const float* weight;
  long dim;
  static constexpr float epsilon = 1e-6f;  // Config.eps

  float inverse(const float* x) const {
    lane s = {};
    for (long d = 0; d < dim; d += 16) s += ::at(x + d) * ::at(x + d);
    return 1 / std::sqrt(sum_of(s) / dim + epsilon);
  }
  // dx = dy + the gradient of x, dn being that of what apply() gave; that of weight is added to dweight
  void back(const float* x, const float* dn, const float* dy, float* dx, float* dweight) const {
    float r = inverse(x);
    lane along = {};
    for (long d = 0; d < dim; d += 16) {
      lane g = ::at(dn + d), v = ::at(x + d);
      ::at(dweight + d) += g * v * r;
      along += g * ::at(weight + d) * v;
    }
    float a = sum_of(along) * r * r / dim;
    for (long d = 0; d < dim; d += 16) ::at(dx + d) = ::at(dy + d) + (::at(dn + d) * ::at(weight + d) - ::at(x + d) * a) * r;
  }
  // Rows of x in to, the first as its first.
  void apply(const float* x, long count, Strips to) const {
    for (long i = 0; i < count; i++) {
      float r = inverse(x + i * dim);
      for (long d = 0; d < dim; d += 16) round_to(to.at(i, d), ::at(x + i * dim + d) * ::at(weight + d) * r);
    }
  }
};

// Buffer is rows of bfloat16 in the cache.
struct Buffer {
  Room<uint16_t> room;
  Strips of(long rows, long width) {
    room.resize(Strips::room(rows, width));
    return {room + 0, rows};
  }
};

void round_rows(const float* x, long rows, long width, Strips to) {
  for (long i = 0; i < rows; i++)
    for (long d = 0; d < width; d += 16) round_to(to.at(i, d), ::at(x + i * width + d));
}

// The gradient of weights, out rows of in numbers, is added: that of what the product gave, count rows of dy, times what was multiplied.
void add_weights(Strips dy, long count, long out, Right& x, long in, float* dw) {
  static thread_local Room<pair> columns;
  alignas(64) pair some[tile];
  columns.resize(2 * x.steps * tile);
  for (long o = 0; o < out; o += 32) {
    for (long d = 0; d < 32; d += 16)
      for (long s = 0; s < x.steps; s++) Right::merge(dy, count, o + d, s, some), turn(some, 16, columns + (d / 16 * x.steps + s) * tile, 16);
    for (long i = 0; i < in; i += 32) {
      for (long r = 0; r < 32; r++) __builtin_prefetch(dw + (o + r) * in + i + 32, 1), __builtin_prefetch(dw + (o + r) * in + i + 48, 1);  // of the next product
      product(Left(columns + 0, x.steps), 0, x, i / 16, x.steps, dw + o * in + i, in, true);
    }
  }
}

struct Attend {
  long batch, t, heads, guided, dim;
  const float *x, *n1, *wqkv, *qn, *kn, *wo, *cos, *sin;
  uint16_t *qkv, *out;  // Strips of 3 * heads * 32 columns, and of heads * 32
  float* sum;           // batch, heads, t: the logarithm of a row's sum
  float *gq, *gk, *gv;  // batch, t, guided, 32: see Guided; of backward() the gradients

  long rows() const { return batch * t; }
  long width() const { return heads * size; }
  Strips strips(uint16_t* x) const { return {x, rows()}; }
  // of conversation b the head h, of q, k or v if n is 0, 1 or 2
  Head head(uint16_t* x, long b, long h, long n = 0) const { return {strips(x).at(b * t, (n * heads + h) * size), t}; }
  Guided extra(long b, long h) const {
    long from = (b * t * guided + h) * size;
    return h < guided && gq ? Guided{gq + from, gk + from, gv + from, guided * size} : Guided{};
  }

  void forward(float* y) const {
    static thread_local Right w;
    static thread_local Buffer some;
    RowNorm norm{n1, dim};
    Strips x1 = some.of(panel, dim);
    w.weights(wqkv, 3 * width(), dim);
    for (long first = 0; first < rows(); first += panel) {
      long count = std::min(panel, rows() - first);
      Strips to = strips(qkv).from(first);
      norm.apply(x + first * dim, count, x1);
      multiply(x1, count, w, 3 * width(), [&](long i, long j, lane v) { round_to(to.at(i, j), v); });
    }
    Scratch s(t);
    Norm q{qn, cos, sin}, k{kn, cos, sin};
    for (long b = 0; b < batch; b++)
      for (long h = 0; h < heads; h++) {
        Head of[] = {head(qkv, b, h, 0), head(qkv, b, h, 1), head(qkv, b, h, 2)};
        ::forward(of[0], of[1], of[2], q, k, head(out, b, h), sum + (b * heads + h) * t, s);
        extra(b, h).take(of[0], of[1], of[2], q, k);
      }
    w.weights(wo, dim, width());
    for (long first = 0; first < rows(); first += panel) {
      const float* from = x + first * dim;
      float* to = y + first * dim;
      multiply(strips(out).from(first), std::min(panel, rows() - first), w, dim, [&](long i, long j, lane v) { at(to + i * dim + j) = at(from + i * dim + j) + v; });
    }
  }

  void backward(const float* dy, float* dx, float* dn1, float* dwqkv, float* dqn, float* dkn, float* dwo) const {
    static thread_local Right w, right;
    static thread_local Buffer some, of_qkv, of_out;
    static thread_local Room<float> sums;
    Strips dout = of_out.of(rows(), width()), dqkv = of_qkv.of(rows(), 3 * width()), part = some.of(chunk, dim);
    w.weights_back(wo, dim, width());
    for (long from = 0; from < rows(); from += chunk) {
      long all = std::min(chunk, rows() - from);
      round_rows(dy + from * dim, all, dim, part);
      Strips to = dout.from(from);
      multiply(part, all, w, width(), [&](long i, long j, lane v) { round_to(to.at(i, j), v); });
      right.take(strips(out).from(from), all, width());
      add_weights(part, all, dim, right, width(), dwo);
    }
    Scratch s(t);
    Norm q{qn, cos, sin}, k{kn, cos, sin};
    for (long b = 0; b < batch; b++)
      for (long h = 0; h < heads; h++) {
        auto of = [&](uint16_t* x, long n) { return head(x, b, h, n); };
        ::backward(of(qkv, 0), of(qkv, 1), of(qkv, 2), q, k, head(out, b, h), sum + (b * heads + h) * t, head(dout.data, b, h), extra(b, h), of(dqkv.data, 0), of(dqkv.data, 1), of(dqkv.data, 2), dqn, dkn, s);
      }
    RowNorm norm{n1, dim};
    w.weights_back(wqkv, 3 * width(), dim);
    sums.resize(panel * dim);
    for (long from = 0; from < rows(); from += chunk) {
      long all = std::min(chunk, rows() - from);
      for (long first = from; first < from + all; first += panel) {
        long count = std::min(panel, from + all - first);
        multiply(dqkv.from(first), count, w, dim, [&](long i, long j, lane v) { at(sums + i * dim + j) = v; });
        norm.apply(x + first * dim, count, part.from(first - from));
        for (long i = 0; i < count; i++) norm.back(x + (first + i) * dim, sums + i * dim, dy + (first + i) * dim, dx + (first + i) * dim, dn1);
      }
      right.take(part, all, dim);
      add_weights(dqkv.from(from), all, 3 * width(), right, dim, dwqkv);
    }
  }
};

struct Think {
  long rows, dim, ffn;
  const float *x, *n2, *wgu, *wdown;
  uint16_t* gu;  // for every panel Strips of 2 * ffn columns: the gate, and what it lets through

  Strips kept(long first) const { return {gu + first * 2 * ffn, std::min(panel, rows - first)}; }
  static lane sigmoid(lane g) {
    lane e = exponential(g < 0.f ? g : -g);  // of what is not above 0
    return (g < 0.f ? e : lane{} + 1.f) / (1 + e);
  }

  void forward(float* y) const {
    static thread_local Right up, down;
    static thread_local Buffer some, inner;
    RowNorm norm{n2, dim};
    Strips x2 = some.of(panel, dim), h = inner.of(panel, ffn);
    up.weights(wgu, 2 * ffn, dim), down.weights(wdown, dim, ffn);
    for (long first = 0; first < rows; first += panel) {
      long count = std::min(panel, rows - first);
      const float* from = x + first * dim;
      float* to = y + first * dim;
      Strips g = kept(first);
      norm.apply(from, count, x2);
      multiply(x2, count, up, 2 * ffn, [&](long i, long j, lane v) { round_to(g.at(i, j), v); });
      for (long j = 0; j < ffn; j += 16)
        for (long i = 0; i < count; i++) {
          lane v = widened(g.at(i, j));
          round_to(h.at(i, j), v * sigmoid(v) * widened(g.at(i, ffn + j)));
        }
      multiply(h, count, down, dim, [&](long i, long j, lane v) { at(to + i * dim + j) = at(from + i * dim + j) + v; });
    }
  }

  void backward(const float* dy, float* dx, float* dn2, float* dwgu, float* dwdown) const {
    static thread_local Right up, down, right;
    static thread_local Buffer of_gu, of_h, inputs, outputs;
    static thread_local Room<float> sums;
    RowNorm norm{n2, dim};
    up.weights_back(wgu, 2 * ffn, dim), down.weights_back(wdown, dim, ffn);
    sums.resize(panel * dim);
    Strips dgu = of_gu.of(chunk, 2 * ffn), h = of_h.of(chunk, ffn), x2 = inputs.of(chunk, dim), d = outputs.of(chunk, dim);
    for (long from = 0; from < rows; from += chunk) {
      long all = std::min(chunk, rows - from);
      round_rows(dy + from * dim, all, dim, d);
      for (long first = 0; first < all; first += panel) {
        long count = std::min(panel, all - first), row = from + first;
        Strips was = kept(row), again = h.from(first), to = dgu.from(first);
        multiply(d.from(first), count, down, ffn, [&](long i, long j, lane dh) {
          lane g = widened(was.at(i, j)), u = widened(was.at(i, ffn + j)), s = sigmoid(g);
          round_to(again.at(i, j), g * s * u);
          round_to(to.at(i, j), dh * u * s * (1 + g * (1 - s))), round_to(to.at(i, ffn + j), dh * g * s);
        });
        multiply(to, count, up, dim, [&](long i, long j, lane v) { at(sums + i * dim + j) = v; });
        norm.apply(x + row * dim, count, x2.from(first));
        for (long i = 0; i < count; i++) norm.back(x + (row + i) * dim, sums + i * dim, dy + (row + i) * dim, dx + (row + i) * dim, dn2);
      }
      right.take(h, all, ffn);
      add_weights(d, all, dim, right, ffn, dwdown);
      right.take(x2, all, dim);
      add_weights(dgu, all, 2 * ffn, right, dim, dwgu);
    }
  }
};

}  // namespace

// As the methods; all tensors are one number after the other. To the gradients of weights is added, dx is set.
extern "C" void attend_forward(const Attend* a, float* y) {
  Tiles tiles;
  a->forward(y);
}
extern "C" void attend_backward(const Attend* a, const float* dy, float* dx, float* dn1, float* dwqkv, float* dqn, float* dkn, float* dwo) {
  Tiles tiles;
  a->backward(dy, dx, dn1, dwqkv, dqn, dkn, dwo);
}
extern "C" void think_forward(const Think* a, float* y) {
  Tiles tiles;
  a->forward(y);
}
extern "C" void think_backward(const Think* a, const float* dy, float* dx, float* dn2, float* dwgu, float* dwdown) {
  Tiles tiles;
  a->backward(dy, dx, dn2, dwgu, dwdown);
}
