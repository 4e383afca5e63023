/*!
 * \file gpu_reduce.cuh
 * \brief The GPU back end's reductions over axes, see the instructions Reduce and FusedReduce.
 *
 * A kernel has a Body, which reduce_gpu.py writes: what is read of an element, the values made of
 * it, how those of many are gathered in a State (one kernel may have several sums), and what is
 * stored of a State in the end. Partial states are combined in an order that sizes alone decide:
 * no atomics, so that each run gives the same bits.
 */
#ifndef DLSYS_BACKEND_GPU_REDUCE_CUH_
#define DLSYS_BACKEND_GPU_REDUCE_CUH_

#include "gpu_loops.cuh"

namespace dlsys {
namespace backend {

/*! \brief Elements that one thread reduces before those of a team are combined. */
const int64_t kReducedByAThread = 16;
/*! \brief The same where each thread has columns. */
const int64_t kColumnOfAThread = 8;
/*! \brief Elements up to which one thread has an output alone: neighbours read neighbouring lines.
 */
const int64_t kAloneByAThread = 32;
/*! \brief Blocks that a reduction is cut in chunks for: all that 132 multiprocessors run at once.
 *  MOST_PARTIAL of gpu.py is for these. Where threads have columns, two run on one. */
const int64_t kBlocksOfACut = 1024, kBlocksOfColumns = 264;

/*! \brief How the values of a Way are gathered: the state is a value. */
template <class Way, class T>
struct Gathered {
  typedef T State;
  DLSYS_INLINE static State start() { return Way::start(); }
  DLSYS_INLINE static State of(T value) { return value; }
  DLSYS_INLINE static State of_moments(const MomentState<T>& found) {
    static_assert(std::is_same<Way, Sum<T>>::value, "moments tell a sum alone");
    return found.count * found.mean;
  }
  template <int count>
  DLSYS_INLINE static State of_some(T (&values)[count]) {
    for (int apart = 1; apart < count; apart *= 2)
      for (int i = 0; i + apart < count; i += 2 * apart)
        values[i] = Way::both(values[i], values[i + apart]);
    return values[0];
  }
  DLSYS_INLINE static State both(State a, State b) { return Way::both(a, b); }
  DLSYS_INLINE static T result(State state) { return state; }
};

/*!
 * \brief The sum of squared distances from the mean, by one look at each value.
 *
 * States are joined as Chan, Golub and LeVeque (1979) do: no large numbers are subtracted, so that
 * digits are not lost where the mean is far from 0.
 */
template <class T>
struct Moment {
  typedef MomentState<T> State;
  DLSYS_INLINE static State start() { return {T(0), T(0), T(0)}; }
  DLSYS_INLINE static State of(T value) { return {T(1), value, T(0)}; }
  DLSYS_INLINE static State of_moments(const MomentState<T>& found) { return found; }
  template <int count>
  DLSYS_INLINE static State of_some(const T (&values)[count]) {
    T sums[count], squares = T(0);
    for (int i = 0; i < count; ++i) sums[i] = values[i];
    // Two by two, so that the mean of equal ones is what they are.
    const T mean = Gathered<Sum<T>, T>::of_some(sums) * (T(1) / T(count));
    for (int i = 0; i < count; ++i) squares += (values[i] - mean) * (values[i] - mean);
    return {T(count), mean, squares};
  }
  DLSYS_INLINE static State both(State a, State b) {
    const T count = a.count + b.count;
    if (a.count == T(0)) return b;  // whose mean need not be squared
    if (b.count == T(0)) return a;
    // Most are of as many values, and need no division.
    const T apart = b.mean - a.mean, part = a.count == b.count ? T(0.5) : b.count / count;
    return {count, a.mean + apart * part, a.squares + b.squares + apart * apart * a.count * part};
  }
  DLSYS_INLINE static T result(State state) { return state.squares; }
};

/*! \brief How a reduction is cut, and whether its operands are read and written in packs. */
struct Cut {
  int64_t chunks;
  int64_t length;  // of a chunk
  bool packed;
};

/*! \brief Chunks of at least `least` elements, no more than make `most` of so many blocks; all but
 * the last of whole `steps`. */
inline Cut cut(int64_t blocks, int64_t most, int64_t length, int64_t least, int64_t steps,
               bool packed) {
  const int64_t wanted = std::max<int64_t>(1, most / blocks);
  const int64_t chunks = std::max<int64_t>(1, std::min(wanted, length / least));
  const int64_t each = ((length + chunks - 1) / chunks + steps - 1) / steps * steps;
  return {length > 0 ? (length + each - 1) / each : 1, each, packed};
}

/*! \brief The loops of a Body: all operands along the kept axes, all but results along reduced. */
template <class Body>
struct Nest {
  static constexpr int kMoving = Body::kOperands - Body::kResults;
  static constexpr int kRoom = kMoving > 0 ? kMoving : 1;  // of an array of so many
  Loops<Body::kOperands> kept;
  Loops<kMoving> reduced;
  int64_t outer, length;

  explicit Nest(const int64_t* n)
      : kept(n), reduced(n), outer(kept.size()), length(reduced.size()) {}

  /*! \brief Where a thread finds the operands in iteration i of the reduced loops. */
  __device__ void find(int64_t i, const int64_t* at, int64_t* from) const {
    for (int k = 0; k < kMoving; ++k) from[k] = at[k + Body::kResults];
    if (reduced.rank == 1)
      for (int k = 0; k < kMoving; ++k) from[k] += i * reduced.strides[k][0];
    else
      reduced.add_offsets(i, from);
  }
};

/*! \brief The State of a thread's part of begin .. end - 1, if its team reads it in packs. */
template <class Body>
__device__ typename Body::State reduced_in_packs(const Nest<Body>& nest, const int64_t* at,
                                                 int64_t begin, int64_t end, const Body& body) {
  typename Body::State total = Body::start();
  const int64_t step = static_cast<int64_t>(blockDim.x) * kPack;
  int64_t i = begin + static_cast<int64_t>(threadIdx.x) * kPack;
  const typename Body::Still still = body.still(at + Body::kResults);
  for (; i + (Body::kAtOnce - 1) * step + kPack <= end; i += Body::kAtOnce * step) {
    typename Body::Read read[Body::kAtOnce];
    typename Body::Value values[Body::kAtOnce * kPack];
    int64_t from[Body::kAtOnce][Nest<Body>::kRoom];
#pragma unroll
    for (int u = 0; u < Body::kAtOnce; ++u) {
      nest.find(i + u * step, at, from[u]);
      read[u] = body.read(from[u]);
    }
#pragma unroll
    for (int u = 0; u < Body::kAtOnce; ++u) body.each(read[u], still, from[u], values + u * kPack);
    total = Body::both(total, Body::template of_some<Body::kAtOnce * kPack, 1>(values));
  }
  int64_t from[Nest<Body>::kRoom];
  for (; i + kPack <= end; i += step) {
    typename Body::Value values[kPack];
    nest.find(i, at, from);
    body.each(body.read(from), still, from, values);
    total = Body::both(total, Body::template of_some<kPack, 1>(values));
  }
  for (i = begin + (end - begin) / kPack * kPack + threadIdx.x; i < end; i += blockDim.x) {
    nest.find(i, at, from);
    total = Body::both(total, Body::of(body.one(from)));
  }
  return total;
}

/*! \brief Each team reduces one chunk for one output; its threads lie along the reduced axes. */
template <class Body>
__global__ void reduce_rows_kernel(Nest<Body> nest, Cut cut, Body body,
                                   typename Body::State* partial) {
  wait_for_predecessor();
  const int64_t items = nest.outer * cut.chunks;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; item < items;
       item += static_cast<int64_t>(gridDim.x) * blockDim.y) {
    const int64_t output = cut.chunks == 1 ? item : item / cut.chunks;
    int64_t at[Body::kOperands] = {};
    nest.kept.add_offsets(output, at);
    const int64_t begin = (item - output * cut.chunks) * cut.length;
    const int64_t end = begin + cut.length < nest.length ? begin + cut.length : nest.length;
    typename Body::State total = Body::start();
    if (cut.packed) {
      total = reduced_in_packs<Body>(nest, at, begin, end, body);
    } else {
      int64_t from[Nest<Body>::kRoom];
      for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        nest.find(i, at, from);
        total = Body::both(total, Body::of(body.one(from)));
      }
    }
    total = of_team<Body>(total);
    if (threadIdx.x == 0) {
      if (cut.chunks > 1)
        partial[item] = total;
      else
        body.store(at, total);
    }
  }
}

/*! \brief Threads that lie along the columns of a block, a pack for each: few where the columns
 * are few, so that none is idle. */
inline int threads_across(int64_t columns) {
  int threads = kWarp;
  while (threads > 4 && threads / 2 * kPack >= columns) threads /= 2;
  return threads;
}

/*! \brief A thread's states of a pack of columns, over each `step`-th row of begin .. end - 1. */
template <class Body>
__device__ void reduce_columns_in_packs(const Nest<Body>& nest, const int64_t* at, int64_t begin,
                                        int64_t end, int64_t step, const Body& body,
                                        typename Body::State* totals) {
  const typename Body::Still still = body.still(at + Body::kResults);
  int64_t i = begin;
  for (; i + (Body::kAtOnce - 1) * step < end; i += Body::kAtOnce * step) {
    typename Body::Read read[Body::kAtOnce];
    typename Body::Value values[Body::kAtOnce * kPack];
    int64_t from[Body::kAtOnce][Nest<Body>::kRoom];
#pragma unroll
    for (int u = 0; u < Body::kAtOnce; ++u) {
      nest.find(i + u * step, at, from[u]);
      read[u] = body.read(from[u]);
    }
#pragma unroll
    for (int u = 0; u < Body::kAtOnce; ++u) body.each(read[u], still, from[u], values + u * kPack);
#pragma unroll
    for (int j = 0; j < kPack; ++j)
      totals[j] = Body::both(totals[j], Body::template of_some<Body::kAtOnce, kPack>(values + j));
  }
  for (; i < end; i += step) {
    typename Body::Value values[kPack];
    int64_t from[Nest<Body>::kRoom];
    nest.find(i, at, from);
    body.each(body.read(from), still, from, values);
    for (int j = 0; j < kPack; ++j) totals[j] = Body::both(totals[j], Body::of(values[j]));
  }
}

/*! \brief The same of one column. */
template <class Body>
__device__ typename Body::State reduced_column(const Nest<Body>& nest, const int64_t* at,
                                               int64_t begin, int64_t end, int64_t step,
                                               const Body& body) {
  typename Body::State total = Body::start();
  for (int64_t i = begin; i < end; i += step) {
    int64_t from[Nest<Body>::kRoom];
    nest.find(i, at, from);
    total = Body::both(total, Body::of(body.one(from)));
  }
  return total;
}

/*! \brief Each block reduces one chunk for 4 outputs of each thread across: a pack, or such as are
 * apart, so that neighbouring threads read neighbours. */
template <class Body>
__global__ void __launch_bounds__(kThreads, 2)
    reduce_columns_kernel(Nest<Body> nest, Cut cut, Body body, typename Body::State* partial,
                          int across) {
  __shared__ typename Body::State all[kThreads * kPack];
  wait_for_predecessor();
  const int64_t outer = nest.outer;
  const int wide = across * kPack, rows = kThreads / across;
  const int64_t tiles = (outer + wide - 1) / wide;
  const int lane = threadIdx.x % across, row = threadIdx.x / across;
  for (int64_t item = blockIdx.x; item < tiles * cut.chunks; item += gridDim.x) {
    const int64_t tile = cut.chunks == 1 ? item : item / cut.chunks;
    const int64_t chunk = item - tile * cut.chunks, begin = chunk * cut.length;
    const int64_t end = begin + cut.length < nest.length ? begin + cut.length : nest.length;
    typename Body::State* const own = all + row * wide;
    if (cut.packed) {
      const int64_t output = tile * wide + lane * kPack;
      typename Body::State totals[kPack];
      for (int j = 0; j < kPack; ++j) totals[j] = Body::start();
      if (output < outer) {
        int64_t at[Body::kOperands] = {};
        nest.kept.add_offsets(output, at);
        reduce_columns_in_packs<Body>(nest, at, begin + row, end, rows, body, totals);
      }
      for (int j = 0; j < kPack; ++j) own[lane * kPack + j] = totals[j];
    } else {
#pragma unroll 1
      for (int column = lane; column < wide; column += across) {
        int64_t at[Body::kOperands] = {};
        own[column] = Body::start();
        if (tile * wide + column >= outer) continue;
        nest.kept.add_offsets(tile * wide + column, at);
        own[column] = reduced_column<Body>(nest, at, begin + row, end, rows, body);
      }
    }
    for (int apart = rows / 2; apart > 0; apart /= 2) {
      __syncthreads();
      for (int column = lane; row < apart && column < wide; column += across)
        own[column] = Body::both(own[column], own[apart * wide + column]);
    }
    __syncthreads();
    const int column = threadIdx.x;
    const int64_t mine = tile * wide + column;
    if (column < wide && mine < outer) {
      const typename Body::State total = all[column];
      if (cut.chunks > 1) {
        partial[mine * cut.chunks + chunk] = total;
      } else {
        int64_t to[Body::kOperands] = {};
        nest.kept.add_offsets(mine, to);
        body.store(to, total);
      }
    }
    __syncthreads();
  }
}

/*! \brief What was gathered of a chunk, as a state: it is one, or moments, of which a Body that has
 * `of_moments` makes one. */
template <class Body>
__device__ const typename Body::State& state_of(const typename Body::State& found) {
  return found;
}
template <class Body>
__device__ typename Body::State state_of(const MomentState<float>& found) {
  return Body::of_moments(found);
}

/*! \brief The second part of a reduction that was cut: a team for the chunks of each output. */
template <class Body, class Partial>
__global__ void combine_kernel(Nest<Body> nest, int64_t chunks, Body body, const Partial* partial) {
  wait_for_predecessor();
  for (int64_t output = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
       output < nest.outer; output += static_cast<int64_t>(gridDim.x) * blockDim.y) {
    typename Body::State total = Body::start();
#pragma unroll 4
    for (int64_t c = threadIdx.x; c < chunks; c += blockDim.x)
      total = Body::both(total, state_of<Body>(partial[output * chunks + c]));
    total = of_team<Body>(total);
    if (threadIdx.x == 0) {
      int64_t at[Body::kOperands] = {};
      nest.kept.add_offsets(output, at);
      body.store(at, total);
    }
  }
}

template <class Body, class Partial>
void combine(const Nest<Body>& nest, int64_t chunks, const Body& body, const Partial* partial,
             cudaStream_t on) {
  const dim3 team = teams_of(chunks <= 2 * kWarp ? kWarp : kThreads);
  const int grid = grid_of((nest.outer + team.y - 1) / team.y);
  launch_early(combine_kernel<Body, Partial>, grid, team, 0, on, nest, chunks, body, partial);
}

/*!
 * \brief A reduction of what others have gathered: moments, (outputs, chunks).
 * \param n chunks, then as `reduce` has it.
 */
template <class Body>
int combine_moments(char* const* data, const int64_t* n, const Body& body, const char* moments,
                    cudaStream_t on) {
  const Nest<Body> nest(n + 1);
  if (nest.outer > 0)
    combine(nest, n[0], body, reinterpret_cast<const MomentState<float>*>(moments), on);
  return launched();
}

/*!
 * \brief Whether operands may be read and written in packs along the last of one group of loops.
 * \param along the loops that have that axis, `across` the others; each has the operands that move
 *              behind `before_along` and `before_across` results.
 */
template <class Body, class Along, class Across>
bool are_packed(char* const* data, const Along& along, int before_along, const Across& across,
                int before_across) {
  for (int k = 0; k < Nest<Body>::kMoving; ++k) {
    const int64_t step = along.step(k + before_along);
    if (step == 0) continue;
    if (step != 1 || !is_aligned(data[k + Body::kResults])) return false;
    if (!along.keeps_packs(k + before_along, along.rank - 1)) return false;
    if (!across.keeps_packs(k + before_across, across.rank)) return false;
  }
  return true;
}

/*!
 * \brief A reduction by its Body.
 * \tparam by_rows whether threads lie along the reduced axes, or along the kept ones.
 * \param partial room for the partial states.
 */
template <class Body, bool by_rows>
int reduce(char* const* data, const int64_t* n, const Body& body, char* partial, cudaStream_t on) {
  typedef typename Body::State State;
  const Nest<Body> nest(n);
  if (nest.outer == 0) return 0;
  State* const states = reinterpret_cast<State*>(partial);
  Cut parts;
  if constexpr (by_rows) {
    // A pack does not cross from one row of the innermost loop to the next.
    const bool packed = Body::kPacks &&
                        are_packed<Body>(data, nest.reduced, 0, nest.kept, Body::kResults) &&
                        (nest.reduced.rank == 1 || nest.reduced.inner() % kPack == 0);
    parts =
        cut(nest.outer, kBlocksOfACut, nest.length, kThreads * kReducedByAThread, kPack, packed);
    const dim3 team = nest.length <= kAloneByAThread
                          ? dim3(1, kThreads)
                          : teams_of(nest.length <= kWarp * kReducedByAThread ? kWarp : kThreads);
    const int64_t blocks = (nest.outer * parts.chunks + team.y - 1) / team.y;
    launch_early(reduce_rows_kernel<Body>, grid_of(blocks), team, 0, on, nest, parts, body, states);
  } else {
    const bool packed = Body::kPacks &&
                        are_packed<Body>(data, nest.kept, Body::kResults, nest.reduced, 0) &&
                        nest.kept.inner() % kPack == 0;
    const int across = threads_across(nest.outer), wide = across * kPack;
    const int64_t tiles = (nest.outer + wide - 1) / wide;
    const int64_t rows = kThreads / across;
    parts = cut(tiles, kBlocksOfColumns, nest.length, rows * kColumnOfAThread,
                packed ? rows * Body::kAtOnce : 1, packed);
    const int grid = grid_of(tiles * parts.chunks);
    launch_early(reduce_columns_kernel<Body>, grid, kThreads, 0, on, nest, parts, body, states,
                 across);
  }
  if (parts.chunks > 1) combine<Body, State>(nest, parts.chunks, body, states, on);
  return launched();
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_GPU_REDUCE_CUH_
