/*!
 * \file loops.h
 * \brief The CPU back end's loops over elements and reductions, on all cores.
 *
 * The work is cut in pieces that do not depend on the number of threads wherever a sum depends on
 * how it is cut.
 */
#ifndef DLSYS_BACKEND_LOOPS_H_
#define DLSYS_BACKEND_LOOPS_H_

#ifdef _OPENMP
#include <omp.h>
#else  // a compiler without it: one thread
inline int omp_get_max_threads() { return 1; }
inline int omp_get_num_threads() { return 1; }
inline int omp_get_thread_num() { return 0; }
#endif

#include <algorithm>
#include <memory>
#include <type_traits>

#include "numbers.h"

namespace dlsys {
namespace backend {

/*! \brief Elements below which a second thread costs more than it does. */
const int64_t kWorthAThread = 16384;

/*! \brief How many threads a loop over `elements` gets. */
inline int threads_for(int64_t elements) {
  const int64_t worth = elements / kWorthAThread;
  return static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(omp_get_max_threads(), worth)));
}

/*! \brief Nested loops, the last axis innermost, and how each operand lies along them. */
struct Axes {
  int rank;
  const int64_t* extents;
  const int64_t* strides;  // rank of the first operand, then of the second ...

  /*! \brief Reads rank, extents and the strides of `operands` at n; n then points behind them. */
  Axes(const int64_t*& n, int operands) : rank(static_cast<int>(n[0])), extents(n + 1) {
    strides = extents + rank;
    n = strides + operands * rank;
  }

  int64_t inner() const { return extents[rank - 1]; }
  int64_t step(int operand) const { return strides[operand * rank + rank - 1]; }

  int64_t size(int axes) const {
    int64_t product = 1;
    for (int i = 0; i < axes; ++i) product *= extents[i];
    return product;
  }
  int64_t size() const { return size(rank); }

  /*! \brief Adds to `at` where iteration `index` of the first `axes` loops finds each operand. */
  void add_offsets(int64_t index, int axes, int operands, int64_t* at) const {
    for (int axis = axes - 1; axis > 0; --axis) {
      const int64_t digit = index % extents[axis];
      index /= extents[axis];
      for (int i = 0; i < operands; ++i) at[i] += digit * strides[i * rank + axis];
    }
    if (axes > 0)
      for (int i = 0; i < operands; ++i) at[i] += index * strides[i * rank];
  }
};

/*!
 * \brief Cuts nested loops into pieces of the innermost one, spread over the threads.
 * \param n the sizes of an element-wise instruction.
 * \param body called with the operands' offsets, their innermost steps, and a number of elements.
 */
template <int operands, class Body>
void for_pieces(const int64_t* n, Body body) {
  const Axes axes(n, operands);
  const int64_t total = axes.size(), inner = axes.inner();
  if (total == 0) return;
  int64_t steps[operands];
  for (int i = 0; i < operands; ++i) steps[i] = axes.step(i);
  const auto pieces = [&](int64_t next, int64_t end) {
    while (next < end) {
      const int64_t column = next % inner;
      const int64_t count = std::min(inner - column, end - next);
      int64_t at[operands];
      for (int i = 0; i < operands; ++i) at[i] = column * steps[i];
      axes.add_offsets(next / inner, axes.rank - 1, operands, at);
      body(at, steps, count);
      next += count;
    }
  };
  const int threads = threads_for(total);
  if (threads == 1) return pieces(0, total);  // a team of one is not free
  const int64_t lines = (total + 63) / 64;
#pragma omp parallel num_threads(threads)
  {
    const int64_t thread = omp_get_thread_num(), count = omp_get_num_threads();
    pieces(lines * thread / count * 64, std::min(total, lines * (thread + 1) / count * 64));
  }
}

/*! \brief Calls body(0) ... body(items - 1), spread over the threads; `elements` is their work. */
template <class Body>
void for_items(int64_t items, int64_t elements, Body body) {
  const int threads = threads_for(elements);
  if (threads == 1) {
    for (int64_t item = 0; item < items; ++item) body(item);
    return;
  }
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t item = 0; item < items; ++item) body(item);
}

/*! \brief How many elements one thread reduces at a time. */
const int64_t kReducedAtOnce = 32768;
/*! \brief Accumulators that are independent, so that the compiler can use whole vectors. */
template <class Way>
struct LanesOf {
  static constexpr int kCount = 32;
};
/*! \brief More where one step, a comparison of two and a look for NaN, takes longer. */
template <class T>
struct LanesOf<Largest<T>> {
  static constexpr int kCount = 64;
};
template <class T>
struct LanesOf<Smallest<T>> : LanesOf<Largest<T>> {};
/*! \brief Bytes of the largest vector. */
const int kVector = 64;
/*! \brief Rows that are summed up one after the other: more would cost digits. */
const int64_t kRowsAtOnce = 1024;
/*! \brief Columns that are reduced side by side. */
const int64_t kColumns = 1024;

/*! \brief The Way of `count` numbers; vectors are folded in registers, since memory would wait. */
template <class Way, int count, class T>
inline T folded(const T* lanes) {
  if constexpr (count == 1) {
    return lanes[0];
  } else {
    constexpr int half = count / 2;
    T halves[half];
    if constexpr (std::is_same<T, bool>::value || half * sizeof(T) > kVector) {
#pragma omp simd
      for (int l = 0; l < half; ++l) halves[l] = Way::both(lanes[l], lanes[l + half]);
    } else {
      typedef T Vector __attribute__((vector_size(sizeof(halves))));
      Vector first, second;
      memcpy(&first, lanes, sizeof(first));
      memcpy(&second, lanes + half, sizeof(second));
      first = Way::both(first, second);
      memcpy(halves, &first, sizeof(first));
    }
    return folded<Way, half>(halves);
  }
}

/*! \brief The Way of many elements, in an order that their number alone decides. */
template <class Way, class T>
struct Lanes {
  static constexpr int kLanes = LanesOf<Way>::kCount;
  T lanes[kLanes], few = Way::start();

  Lanes() {
    for (int l = 0; l < kLanes; ++l) lanes[l] = Way::start();
  }

  /*! \brief Takes in value(0) ... value(count - 1). */
  template <class Value>
  void add(int64_t count, Value value) {
    int64_t i = 0;
    T own[kLanes];  // no other pointer reaches these, so that they stay in registers
    memcpy(own, lanes, sizeof(own));
    for (; i + kLanes <= count; i += kLanes) {
#pragma omp simd
      for (int l = 0; l < kLanes; ++l) own[l] = Way::both(own[l], value(i + l));
      asm volatile("");  // or GCC takes two steps at once, and keeps the sums in memory between
    }
    memcpy(lanes, own, sizeof(own));
    if (count - i >= kLanes / 2) i = add_part<kLanes / 2>(i, value);
    if (count - i >= kLanes / 4) i = add_part<kLanes / 4>(i, value);
    if (count - i >= kLanes / 8) i = add_part<kLanes / 8>(i, value);
    if (count - i >= kLanes / 16) i = add_part<kLanes / 16>(i, value);
    for (; i < count; ++i) few = Way::both(few, value(i));
  }

  T total() const { return Way::both(folded<Way, kLanes>(lanes), few); }

 private:
  template <int size, class Value>
  int64_t add_part(int64_t i, Value value) {
    T part[size];
#pragma omp simd
    for (int l = 0; l < size; ++l) part[l] = value(i + l);
    few = Way::both(few, folded<Way, size>(part));
    return i + size;
  }
};

/*! \brief Partial results; a vector would keep truth values as bits. */
template <class T>
using Partial = std::unique_ptr<T[]>;

/*! \brief Combines partial results, `chunks` of each of `count` elements, in their order. */
template <class Way, class T, class Store>
void combine(const T* partial, int64_t count, int64_t chunks, Store store) {
  for (int64_t i = 0; i < count; ++i) {
    T total = partial[i * chunks];
    for (int64_t c = 1; c < chunks; ++c) total = Way::both(total, partial[i * chunks + c]);
    store(i, total);
  }
}

/*!
 * \brief A reduction whose innermost loop runs along a reduced axis.
 * \param load (offsets of the inputs, their steps, i) -> element i of the innermost loop.
 * \param store (offset in the output, value).
 */
template <int inputs, class T, class Way, class Load, class Store>
void reduce_rows(const int64_t* n, Load load, Store store) {
  const Axes kept(n, inputs + 1), reduced(n, inputs);
  const int64_t outer = kept.size(), length = reduced.size(), inner = reduced.inner();
  const int64_t chunks = std::max<int64_t>(1, (length + kReducedAtOnce - 1) / kReducedAtOnce);
  int64_t steps[inputs];
  for (int i = 0; i < inputs; ++i) steps[i] = reduced.step(i);
  const Partial<T> partial(new T[chunks > 1 ? outer * chunks : 0]);
  for_items(outer * chunks, outer * length, [&](int64_t item) {
    const int64_t output = chunks == 1 ? item : item / chunks;  // a division takes its time
    int64_t at[inputs + 1] = {}, next = (item - output * chunks) * kReducedAtOnce;
    kept.add_offsets(output, kept.rank, inputs + 1, at);
    Lanes<Way, T> lanes;
    const int64_t end = std::min(length, next + kReducedAtOnce);
    while (next < end) {
      const int64_t row = reduced.rank == 1 ? 0 : next / inner, column = next - row * inner;
      const int64_t count = std::min(inner - column, end - next);
      int64_t from[inputs];
      for (int i = 0; i < inputs; ++i) from[i] = at[i + 1] + column * steps[i];
      reduced.add_offsets(row, reduced.rank - 1, inputs, from);
      lanes.add(count, [=](int64_t i) { return load(from, steps, i); });
      next += count;
    }
    const T total = lanes.total();
    if (chunks > 1)
      partial[item] = total;
    else
      store(at[0], total);
  });
  if (chunks == 1) return;
  combine<Way>(partial.get(), outer, chunks, [&](int64_t i, T value) {
    int64_t at[inputs + 1] = {};
    kept.add_offsets(i, kept.rank, inputs + 1, at);
    store(at[0], value);
  });
}

/*! \brief A reduction whose innermost loop runs along a kept axis; as reduce_rows. */
template <int inputs, class T, class Way, class Load, class Store>
void reduce_columns(const int64_t* n, Load load, Store store) {
  const Axes kept(n, inputs + 1), reduced(n, inputs);
  const int64_t outer = kept.size(kept.rank - 1), width = kept.inner(), length = reduced.size();
  if (outer == 0 || width == 0) return;
  const int64_t tiles = (width + kColumns - 1) / kColumns;
  const int64_t span = std::min(width, kColumns);
  const int64_t rows = std::min(kRowsAtOnce, std::max<int64_t>(1, 4 * kReducedAtOnce / span));
  const int64_t chunks = std::max<int64_t>(1, (length + rows - 1) / rows);
  int64_t steps[inputs];
  for (int i = 0; i < inputs; ++i) steps[i] = kept.step(i + 1);
  // Of each tile and chunk `span` elements, side by side.
  const Partial<T> partial(new T[chunks > 1 ? outer * tiles * chunks * span : 0]);
  for_items(outer * tiles * chunks, outer * width * length, [&](int64_t item) {
    const int64_t tile = item / chunks % tiles, chunk = item % chunks;
    const int64_t columns = std::min(kColumns, width - tile * kColumns);
    int64_t at[inputs + 1] = {};
    kept.add_offsets(item / chunks / tiles, kept.rank - 1, inputs + 1, at);
    T own[kColumns];
    T* const total = chunks > 1 ? &partial[item * span] : own;
    for (int64_t i = 0; i < columns; ++i) total[i] = Way::start();
    const int64_t end = std::min(length, (chunk + 1) * rows);
    const auto offsets = [&](int64_t row, int64_t* from) {
      for (int i = 0; i < inputs; ++i) from[i] = at[i + 1] + tile * kColumns * steps[i];
      reduced.add_offsets(row, reduced.rank, inputs, from);
    };
    int64_t row = chunk * rows;
    for (; row + 4 <= end; row += 4) {  // one pass over the sums takes in four rows
      int64_t from[4][inputs];
      for (int r = 0; r < 4; ++r) offsets(row + r, from[r]);
#pragma omp simd
      for (int64_t i = 0; i < columns; ++i) {
        const T first = Way::both(load(from[0], steps, i), load(from[1], steps, i));
        const T second = Way::both(load(from[2], steps, i), load(from[3], steps, i));
        total[i] = Way::both(total[i], Way::both(first, second));
      }
    }
    for (; row < end; ++row) {
      int64_t from[inputs];
      offsets(row, from);
#pragma omp simd
      for (int64_t i = 0; i < columns; ++i) total[i] = Way::both(total[i], load(from, steps, i));
    }
    if (chunks > 1) return;
    for (int64_t i = 0; i < columns; ++i)
      store(at[0] + (tile * kColumns + i) * kept.step(0), total[i]);
  });
  if (chunks == 1) return;
  for_items(outer * tiles, outer * width * chunks, [&](int64_t item) {
    const int64_t tile = item % tiles, columns = std::min(kColumns, width - tile * kColumns);
    int64_t at[inputs + 1] = {};
    kept.add_offsets(item / tiles, kept.rank - 1, inputs + 1, at);
    T* const total = &partial[item * chunks * span];
    for (int64_t c = 1; c < chunks; ++c)
#pragma omp simd
      for (int64_t i = 0; i < columns; ++i) total[i] = Way::both(total[i], total[c * span + i]);
    for (int64_t i = 0; i < columns; ++i)
      store(at[0] + (tile * kColumns + i) * kept.step(0), total[i]);
  });
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_LOOPS_H_
