// Kernels that become loops, and kernels that must not. Every case prints what its kernel wrote;
// the tests compare that with what the same threads write one by one.
#include "check.h"

#define IDX (blockIdx.x * blockDim.x + threadIdx.x)
#define TILE 8
#define SQUARE(x) ((x) * (x))

const int N = 4000;

// Runs a kernel on N floats and as many integers, and prints both.
template <typename Launch>
void show(Launch launch) {
  std::vector<float> in(N);
  std::vector<int> numbers(N);
  for (int i = 0; i < N; ++i) in[i] = 1.0f / (1 + i * 7 % 1009) - 0.01f, numbers[i] = i * 31 % 257;
  Device<float> from(in), to(std::vector<float>(N, 0));
  Device<int> whole(numbers);
  launch(from.data, whole.data, to.data);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (float value : to.get()) std::printf("%a\n", value);
  for (int value : whole.get()) std::printf("%d\n", value);
}

// SHOW(kernel, grid, block, arguments) makes a case of a kernel.
#define SHOW(kernel, grid, block, ...)             \
  CASE(show_##kernel) {                            \
    show([](float* in, int* numbers, float* out) { \
      kernel<<<grid, block>>>(__VA_ARGS__);        \
      (void)in;                                    \
      (void)numbers;                               \
      (void)out;                                   \
    });                                            \
  }

__global__ void guard_return(const float* in, float* out, int n) {
  int i = IDX;
  if (i >= n) return;
  out[i] = in[i] * 3;
}
SHOW(guard_return, 17, 96, in, out, 1601)

__global__ void guards_of_two(const float* in, float* out, int rows, int columns) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const unsigned int column = threadIdx.x + blockIdx.x * blockDim.x;
  if (row >= rows || column >= columns) return;
  if ((row + column) % 3 == 0) return;
  out[row * columns + column] = in[row * columns + column] + row;
}
SHOW(guards_of_two, dim3(3, 4), dim3(20, 9), in, out, 31, 53)

__global__ void wide_index(const float* in, float* out, size_t n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] > 0) out[i] = sqrtf(in[i]);
}
SHOW(wide_index, 40, 100, in, out, 3999)

// Beside an unsigned limit, the index below 0 of the first thread is the greatest.
__global__ void below_zero(const float* in, float* out, unsigned int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x - 1;
  if (i < n) out[i + 1] = in[i + 1] * 2;
}
SHOW(below_zero, 17, 96, in, out, 1601)

__global__ void strides(const float* in, float* out, int n) {
  for (int i = IDX; i < n; i += gridDim.x * blockDim.x) {
    if (in[i] < 0) continue;
    if (in[i] > 0.9f) break;
    out[i] = in[i] / 2;
  }
}
SHOW(strides, 3, 50, in, out, N)

__global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < m && col < n) {
    float sum = 0, other[2] = {1, 2};
    // #pragma unroll comes before many a loop
#pragma unroll
    for (int i = 0; i < k; i++) {
      float part = a[row * k + i];
      part *= b[i * n + col];
      sum += part;
      if (i % 2) other[i % 4 / 2] -= part;
    }
    c[row * n + col] = sum + other[0] * other[1];
  }
}
SHOW(product, dim3(3, 5), dim3(20, 10), in, in + 7, out, 45, 43, 50)

__global__ void flat_product(const float* a, const float* b, float* c, int m, int n, int k) {
  int i = IDX;
  if (i >= m * n) return;
  int row = i / n, col = i % n;
  float sum = 0;
  for (int j = 0; j < k; ++j) sum += a[row * k + j] * b[j * n + col];
  c[i] = sum;
}
SHOW(flat_product, 20, 128, in, in + 7, out, 45, 43, 50)

__global__ void convolution(const float* in, const float* filter, float* out, int size, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= size || y >= size) return;
  float sum = 0;
  for (int dy = -width; dy <= width; ++dy)
    for (int dx = -width; dx <= width; ++dx) {
      int yy = y + dy, xx = x + dx;
      if (yy < 0 || xx < 0 || yy >= size || xx >= size) continue;
      sum += in[yy * size + xx] * filter[(dy + width) * (2 * width + 1) + dx + width];
    }
  out[y * size + x] = sum;
}
SHOW(convolution, dim3(4, 8), dim3(16, 8), in, in + 100, out, 60, 2)

// Rows whose threads all enter an if, none, or some; before 0, and with limits without a sign.
__global__ void choices(const float* in, int* numbers, float* out, int n, unsigned int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x - 40, j = threadIdx.x - 3;
  float value = in[threadIdx.x];
  if (i < n && (blockIdx.x % 5 < 3) && 1 + i + 1 < 2 * n)
    value += in[i + 40];
  else
    value = 0;
  if (j < m) {
    numbers[i + 40] = 7;
    value *= 2;
  } else if (i % 2)
    value += 1;
  if (threadIdx.y * 2 + i < m) out[i + 40] = value;
}
SHOW(choices, 60, 52, in, numbers, out, 2000, 49)

// Threads of a recursion run one by one.
__device__ int depth(int n) { return n < 2 ? n : 1 + depth(n % 2 ? 3 * n + 1 : n / 2); }
__global__ void recursion(int* numbers, float* out) {
  int i = IDX, sum = 0;
  for (int j = 0; j < 3; ++j) sum += depth(numbers[i] + j);
  numbers[i] = sum;
  out[i] = sum;
}
SHOW(recursion, 4, 100, numbers, out)

__global__ void all_choose(const float* in, int* numbers, float* out, unsigned int m) {
  int j = threadIdx.x - 3;
  if (j < m) numbers[blockIdx.x * blockDim.x + threadIdx.x] = 7;
  out[blockIdx.x * blockDim.x + threadIdx.x] = in[threadIdx.x];
}
SHOW(all_choose, 6, 50, in, numbers, out, 0xffffffffu)

__global__ void shared_tile(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float left[TILE][TILE], right[TILE][TILE + 1];
  const int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
  float sum = 0.f;
  for (int t = 0; t < (k + TILE - 1) / TILE; ++t) {
    int from = t * TILE;
    left[ty][tx] = row < m && from + tx < k ? a[row * k + from + tx] : 0;
    right[ty][tx] = col < n && from + ty < k ? b[(from + ty) * n + col] : 0;
    __syncthreads();  // __syncthreads() in a comment
    for (int i = 0; i < TILE; ++i) sum += left[ty][i] * right[i][tx];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}
SHOW(shared_tile, dim3(6, 6), dim3(TILE, TILE), in, in + 7, out, 45, 43, 50)

__global__ void pointers_move(const float* a, const float* b, float* c, int n, int k) {
  __shared__ float left[16 * 16], right[16 * 16];
  const int column = threadIdx.x % 16, row = threadIdx.x / 16;
  a += blockIdx.y * 16 * k;
  b += blockIdx.x * 16;
  c += blockIdx.y * 16 * n + blockIdx.x * 16;
  float sums[4] = {0};
  for (int i = 0; i < k; i += 16) {
    for (int r = 0; r < 16; r += 4) {
      left[(row + r) * 16 + column] = a[(row + r) * k + column];
      right[(row + r) * 16 + column] = b[(row + r) * n + column];
    }
    __syncthreads();
    a += 16;
    b += 16 * n;
    for (int j = 0; j < 16; ++j) {
      float value = right[j * 16 + column];
      for (int r = 0; r < 4; ++r) sums[r] += left[(row * 4 + r) * 16 + j] * value;
    }
    __syncthreads();
  }
  for (int r = 0; r < 4; ++r) c[(row * 4 + r) * n + column] = sums[r];
}
SHOW(pointers_move, dim3(3, 2), 64, in, in + 100, out, 48, 32)

__global__ void tree(const float* in, float* out) {
  extern __shared__ float cache[];
  unsigned int tid = threadIdx.x;
  cache[tid] = in[IDX];
  __syncthreads();
  for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) {
      cache[tid] += cache[tid + s];
    }
    __syncthreads();
  }
  if (tid == 0) out[blockIdx.x] = cache[0];
}
CASE(show_tree) {
  show([](float* in, int*, float* out) { tree<<<15, 256, 256 * 4>>>(in, out); });
}

__global__ void tree_of_while(const float* in, float* out, int n) {
  __shared__ float cache[128];
  int tid = threadIdx.x + blockIdx.x * blockDim.x, place = threadIdx.x;
  float sum = 0;
  while (tid < n) {
    sum += in[tid];
    tid += blockDim.x * gridDim.x;
  }
  cache[place] = sum;
  __syncthreads();
  int i = blockDim.x / 2;
  while (i != 0) {
    if (place < i) cache[place] += cache[place + i];
    __syncthreads();
    i /= 2;
  }
  if (place == 0) out[blockIdx.x] = cache[0];
}
SHOW(tree_of_while, 7, 128, in, out, 3500)

__global__ void scan(float* out, const float* in, int n) {
  __shared__ float two[2 * 200];
  int t = threadIdx.x, last = 0, first = 1;
  two[t] = t > 0 ? in[t - 1] : 0;
  __syncthreads();
  for (int offset = 1; offset < n; offset *= 2) {
    last = 1 - last;
    first = 1 - last;
    if (t >= offset)
      two[last * n + t] = two[first * n + t] + two[first * n + t - offset];
    else
      two[last * n + t] = two[first * n + t];
    __syncthreads();
  }
  out[t] = two[last * n + t];
}
SHOW(scan, 1, 200, out, in, 200)

__global__ void leaves_before_a_barrier(const float* in, float* out, int n) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x;
  s[threadIdx.x] = 5;
  if (i >= n) return;
  float mine = in[i];
  if (mine < 0) {
    out[i] = -1;
    return;
  }
  s[threadIdx.x] = mine;
  __syncthreads();
  float twice = mine + s[threadIdx.x ^ 1];
  __syncthreads();
  out[i] = twice;
}
SHOW(leaves_before_a_barrier, 30, 64, in, out, 1777)

__global__ void whole_blocks_leave(const float* in, float* out, int n) {
  __shared__ float s[32];
  if (blockIdx.x % 2 == 1) return;
  if (n > 10) {
    s[threadIdx.x] = in[IDX];
    __syncthreads();
  } else {
    s[threadIdx.x] = 1;
  }
  __syncthreads();
  out[IDX] = s[31 - threadIdx.x];
}
SHOW(whole_blocks_leave, 9, 32, in, out, 20)

struct Pair {
  float a;
  int b;
  __host__ __device__ float sum() const { return a + b; }
};

__global__ void structs_and_arrays(const float* in, float* out, int* numbers) {
  __shared__ int s[4][3][5];
  Pair pair = {in[IDX], static_cast<int>(threadIdx.z)};
  float4 four = make_float4(1, 2, 3, in[threadIdx.x]);
  int list[3] = {1, 2};
  int const *ahead = numbers + threadIdx.x, many = 7;
  s[threadIdx.x][threadIdx.y][threadIdx.z] = threadIdx.z;
  list[2] = threadIdx.y;
  __syncthreads();
  pair.b += s[3 - threadIdx.x][2 - threadIdx.y][4 - threadIdx.z];
  four.x += pair.sum();
  list[threadIdx.z % 3] += 10;
  __syncthreads();
  int flat = (blockIdx.x * 5 + threadIdx.z) * 12 + threadIdx.y * 4 + threadIdx.x;
  out[flat] =
      pair.a + pair.b + four.x + four.w + list[0] * 100 + list[1] * 10 + list[2] + *ahead + many;
}
SHOW(structs_and_arrays, 5, dim3(4, 3, 5), in, out, numbers)

// What a thread may have on a GPU, times all threads of a row.
__global__ void large_arrays(const float* in, float* out) {
  float list[40][40], sum = 0;
  for (int i = 0; i < 40; i++)
    for (int j = 0; j < 40; j++) list[i][j] = in[i] * j + threadIdx.x;
  __syncthreads();
  for (int q = 0; q < 2; q++) {
    float row[40];
    for (int i = 0; i < 40; i++) row[i] = list[i][q] + q;
    __syncthreads();
    sum += row[threadIdx.x % 40];
  }
  out[IDX] = sum + list[threadIdx.x % 37][threadIdx.x % 31];
}
CASE(show_large_arrays) {
  show([](float* in, int*, float* out) {
    for (int width : {1, 16, 32, 1000}) large_arrays<<<1, width>>>(in, out + width);
  });
}

__global__ void largest_array(const float* in, float* out) {
  float list[500 * 256];
  for (int i = 0; i < 500 * 256; i++) list[i] = in[i % 1000] + i;
  out[IDX] = list[threadIdx.x * 1000 % (500 * 256)];
}
SHOW(largest_array, 1, 64, in, out)

__device__ int flat_index() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ float scaled(const float* in, int offset, float by = 2) {
  return in[flat_index() + offset] * by;
}
template <typename T>
__device__ T twice(T x) {
  return x + x;
}
__device__ void add_to(float& value, float more) { value += more; }

template <typename T, int n>
__global__ void helpers(const T* in, T* out) {
  __shared__ T s[n];
  T value = scaled(in, 3) + twice(T(1)) + twice<float>(2) + SQUARE(threadIdx.x);
  add_to(value, 4);
  s[threadIdx.x] = value;
  __syncthreads();
  add_to(value, s[n - 1 - threadIdx.x]);
  __syncthreads();
  out[flat_index()] = value;
}
CASE(show_helpers) {
  show([](float* in, int*, float* out) { helpers<float, 48><<<11, 48>>>(in, out); });
}

namespace outer {
namespace inner {
__global__ void of_namespace(float* out, float value = 3) { out[IDX] = value; }
__global__ void overloaded(float* out, float value) { out[IDX] = value; }
__global__ void overloaded(float* out, int value) { out[IDX] = value + 0.5f; }
}  // namespace inner
}  // namespace outer
CASE(show_of_namespace) {
  show([](float*, int*, float* out) {
    outer::inner::of_namespace<<<3, 10>>>(out, 7.0f);
    using namespace outer;
    ::outer::inner::of_namespace<<<1, 10>>>(out + 100, 8.0f);
    inner::overloaded<<<1, 10>>>(out + 200, 8.0f);
    inner::overloaded<<<1, 10>>>(out + 300, 8);
  });
}

__global__ void shadows(const float* in, float* out, int n) {
  int i = IDX;
  float value = in[i];
  {
    float value = 2;
    for (int i = 0; i < n; ++i) value += in[i];
    out[i] = value;
  }
  for (int i = 0; i < 2; ++i) value += i;
  out[i] += value;
}
SHOW(shadows, 10, 100, in, out, 50)

__global__ void parameters_change(float* out, const float* in, int n) {
  in += threadIdx.x;
  n -= threadIdx.x;
  while (n-- > 0) out[IDX] += in[n];
}
SHOW(parameters_change, 3, 64, out, in, 70)

__global__ void changes_places(float* out, int* numbers) {
  int i = IDX, next = i + 1;
  if (i < 1000) out[i] = numbers[next++], out[i] += next;
  unsigned small = threadIdx.x - 3;  // wraps around
  if (small < 5) out[1000 + blockIdx.x * 8 + small] = small;
}
SHOW(changes_places, 20, 64, out, numbers)

__global__ void counts(int* numbers, const float* in) {
  __shared__ int bins[16];
  if (threadIdx.x < 16) bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = 0; i < 4; ++i) atomicAdd(&bins[numbers[1000 + IDX * 4 + i] % 16], 1);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&numbers[threadIdx.x], bins[threadIdx.x]);
}
SHOW(counts, 4, 64, numbers, in)

// These stay on fibers.

__global__ void may_differ(float* out) {
  __shared__ float s[64];
  s[threadIdx.x] = threadIdx.x;
  for (int i = 0; i < (threadIdx.x < 100 ? 3 : 2); ++i) {
    __syncthreads();
    s[threadIdx.x] += s[63 - threadIdx.x] * 0;
    __syncthreads();
  }
  out[threadIdx.x] = s[threadIdx.x];
}
SHOW(may_differ, 1, 64, out)

__global__ void lacks_a_barrier(const float* in, float* out, int n) {
  __shared__ float s[64];
  float sum = 0;
  for (int i = 0; i < n; ++i) {
    s[threadIdx.x] = in[i * 64 + threadIdx.x];
    __syncthreads();
    sum += s[63 - threadIdx.x];
  }
  out[threadIdx.x] = sum;
}
SHOW(lacks_a_barrier, 1, 64, in, out, 6)

__global__ void breaks_out(float* out, int n) {
  __shared__ float s[64];
  for (int i = 0; i < n; ++i) {
    s[threadIdx.x] = i;
    __syncthreads();
    if (i == 3) break;
  }
  out[threadIdx.x] = s[63 - threadIdx.x];
}
SHOW(breaks_out, 1, 64, out, 6)

__global__ void takes_a_lambda(float* out) {
  auto f = [&](int k) { return k + threadIdx.x; };
  out[IDX] = f(3);
}
SHOW(takes_a_lambda, 2, 64, out)

__global__ void votes(float* out) {
  int all = __syncthreads_count(threadIdx.x % 3 == 0);
  out[IDX] = all;
}
SHOW(votes, 2, 64, out)

__global__ void switches(float* out) {
  switch (threadIdx.x % 3) {
    case 0:
      out[IDX] = 1;
      break;
    case 1:
      out[IDX] = 2;
      return;
    default:
      out[IDX] = 3;
  }
  out[IDX] += 10;
}
SHOW(switches, 2, 64, out)

#define BARRIER __syncthreads()
__global__ void hides_a_barrier(float* out) {
  __shared__ float s[64];
  s[threadIdx.x] = threadIdx.x;
  BARRIER;
  out[IDX] = s[63 - threadIdx.x];
}
SHOW(hides_a_barrier, 2, 64, out)

template <typename T>
__global__ void specialised(T* out) {
  out[IDX] = 1;
}
template <>
__global__ void specialised<float>(float* out) {
  out[IDX] = 2;
}
SHOW(specialised, 2, 64, out)

__global__ void as_a_value(float* out) { out[IDX] = 1; }
CASE(show_as_a_value) {
  show([](float*, int*, float* out) {
    auto kernel = as_a_value;
    kernel<<<2, 64>>>(out);
  });
}

__global__ void conditional(float* out) {
#if TILE == 8
  out[IDX] = 8;
#else
  out[IDX] = 9;
#endif
}
SHOW(conditional, 2, 64, out)
