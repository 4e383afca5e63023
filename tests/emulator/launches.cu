// Ways to write a launch: which kernel, and with what.
#include "check.h"

#include <algorithm>

using namespace std;

typedef void (*Fn)(float*);
__global__ void one(float* out) { out[threadIdx.x] = 1; }
__global__ void two(float* out) { out[threadIdx.x] = 2; }
template <typename T>
Fn choose() {
  return two;
}

static bool holds(const Device<float>& out, float value) {
  const std::vector<float> all = out.get();
  return std::all_of(all.begin(), all.end(), [value](float x) { return x == value; });
}

static int asked = 0;
static Fn next_kernel() { return asked++ % 2 ? two : one; }

CASE(which_kernel_is_asked_once) {
  Device<float> out(64);
  next_kernel()<<<1, 64>>>(out.data);
  CHECK(asked == 1 && holds(out, 1));
  std::map<std::string, Fn> kernels = {{"one", one}, {"two", two}};
  kernels["two"]<<<1, 64>>>(out.data);
  CHECK(holds(out, 2));
  Fn all[] = {one, two};
  int which = 0;
  all[which++]<<<1, 64>>>(out.data);
  CHECK(which == 1 && holds(out, 1));
}

CASE(casts_and_templates_give_kernels) {
  Device<float> out(64);
  choose<float>()<<<1, 64>>>(out.data);
  CHECK(holds(out, 2));
  static_cast<Fn>(one)<<<1, 64>>>(out.data);
  CHECK(holds(out, 1));
  Fn pointer = two;
  (*pointer)<<<1, 64>>>(out.data);
  CHECK(holds(out, 2));
  (one)<<<1, 64>>>(out.data);
  CHECK(holds(out, 1));
}

struct Pair {
  float x, y;
};
__global__ void of_pair(Pair pair, float* out) { out[threadIdx.x] = pair.x + pair.y; }
template <typename T>
__device__ T thrice(T x) {
  return 3 * x;
}
__global__ void of_function(float* out, float (*f)(float)) { out[threadIdx.x] = f(2); }

CASE(arguments_may_mean_something_in_the_call_alone) {
  Device<float> out(64);
  const float x = 1;
  of_pair<<<1, 64>>>({x, 2}, out.data);
  CHECK(holds(out, 3));
  of_function<<<1, 64>>>(out.data, thrice);
  CHECK(holds(out, 6));
}

struct Buffer {
  float* data;
  explicit Buffer(size_t count) { cudaMalloc(&data, count * sizeof(float)); }
  Buffer(const Buffer&) = delete;
  ~Buffer() { cudaFree(data); }
  operator float*() const { return data; }
};

enum { kTwo = 2 };
struct Sizes {
  static const int kThree = 3;  // declared, and never defined
  unsigned four : 4;
  void launch(float* out) const;
};
__global__ void of_numbers(float* out, int a, int b, int c, const int* none, int e) {
  out[threadIdx.x] = none == nullptr ? a + b + c + e : 0;
}
template <int n>
static void with_numbers(float* out, Sizes sizes) {
  constexpr int one_more = 1;
  of_numbers<<<1, 64>>>(out, kTwo, Sizes::kThree, sizes.four, nullptr, n);
  of_numbers<<<1, 64>>>(out, n, one_more, sizes.four, NULL, kTwo);
}

void Sizes::launch(float* out) const {
  of_numbers<<<1, 64>>>(out, four, kThree, 0, nullptr, four);
}

CASE(numbers_need_no_address) {
  Device<float> out(64);
  with_numbers<5>(out.data, Sizes{4});
  CHECK(holds(out, 12));
  Sizes{4}.launch(out.data);
  CHECK(holds(out, 11));
  constexpr int six = 6;
  float* const data = out.data;
  auto launch = [data] { of_numbers<<<1, 64>>>(data, six, six, 0, nullptr, six); };
  launch();
  CHECK(holds(out, 18));
}

CASE(an_object_is_converted_and_never_copied) {
  Buffer buffer(64);
  for (int turn = 0; turn < 2; ++turn) two<<<1, 64>>>(buffer);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  std::vector<float> got(64);
  CHECK(cudaMemcpy(got.data(), buffer, 256, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(got[0] == 2 && got[63] == 2);
}

// A kernel may have the name of a function of the host, or of std.
void sort(const std::vector<float>& from, std::vector<float>& to);
__global__ void sort(float* values, int n) {
  __shared__ float kept[64];
  kept[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  int rank = 0;
  for (int i = 0; i < n; ++i) rank += kept[i] < kept[threadIdx.x];
  values[rank] = kept[threadIdx.x];
}
void sort(const std::vector<float>& from, std::vector<float>& to) {
  Device<float> values(from);
  sort<<<1, static_cast<int>(from.size())>>>(values.data, static_cast<int>(from.size()));
  to = values.get();
}

CASE(a_kernel_shares_its_name) {
  std::vector<float> sorted, plain = {3, 1, 2};
  sort(plain, sorted);
  sort(plain.begin(), plain.end());
  CHECK(sorted == plain && plain[0] == 1);
}

const int kThreads = 256;
constexpr int limit = 64;
template <typename T>
__global__ void __launch_bounds__(sizeof(T) == 4 ? 128 : 64) by_size(T* out) {
  out[threadIdx.x] = 1;
}
__global__ void __launch_bounds__(kThreads >> 1) by_shift(int* out) {
  __shared__ int kept[kThreads >> 5];
  kept[threadIdx.x & 7] = 3;
  __syncthreads();
  out[threadIdx.x] = kept[0];
}
__global__ void __launch_bounds__(limit) with_parameter(int* out, int limit) { *out = limit; }

CASE(bounds_may_be_computed) {
  Device<int> out(std::vector<int>(256, 0));
  by_size<<<1, 128>>>(out.data);
  CHECK(cudaGetLastError() == cudaSuccess);
  by_size<<<1, 129>>>(out.data);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  by_shift<<<1, 129>>>(out.data);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  with_parameter<<<1, 64>>>(out.data, 3);
  CHECK(cudaGetLastError() == cudaSuccess && out.get()[0] == 3);
  int blocks, threads;
  CHECK(cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, by_shift) == cudaSuccess);
  CHECK(threads == 128);
}

__global__ void changes_bits(float* out) {
  float kept[4];
  int* bits = reinterpret_cast<int*>(kept);
  for (int j = 0; j < 4; ++j) kept[j] = threadIdx.x + j;
  for (int j = 0; j < 4; ++j) bits[j] += 1 << 23;  // doubles each
  float sum = 0;
  for (int j = 0; j < 4; ++j) sum += kept[j];
  out[threadIdx.x] = sum;
}

CASE(floats_may_be_seen_as_integers) {
  Device<float> out(32);
  changes_bits<<<1, 32>>>(out.data);
  CHECK(out.get()[2] == 28);
}
