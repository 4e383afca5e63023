// Ways to write a launch: which kernel, and with what.
#include <algorithm>
#include <memory>

#include "check.h"

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
__global__ void of_functions(float (*f[2])(float), int (*(*g)(float))(int), float* out) {
  out[threadIdx.x] = f == nullptr && g == nullptr ? 9 : 0;
}

CASE(arguments_may_mean_something_in_the_call_alone) {
  Device<float> out(64);
  const float x = 1;
  of_pair<<<1, 64>>>({x, 2}, out.data);
  CHECK(holds(out, 3));
  of_function<<<1, 64>>>(out.data, thrice);
  CHECK(holds(out, 6));
  of_functions<<<1, 64>>>(nullptr, nullptr, out.data);
  CHECK(holds(out, 9));
}

struct Buffer {
  float* data;
  explicit Buffer(size_t count) { cudaMalloc(&data, count * sizeof(float)); }
  Buffer(const Buffer&) = delete;
  ~Buffer() { cudaFree(data); }
  operator float*() const { return data; }
};

struct Owner {
  Buffer own;
  Owner() : own(64) {}
  void run() {
    two<<<1, 64>>>(own);
    two<<<1, 64>>>(this->own);
  }
};
struct Derived : Buffer {
  Derived() : Buffer(64) {}
};
struct View {
  const float* data;
  View(const std::unique_ptr<float[]>& from) : data(from.get()) {}
};
__global__ void of_view(View view, float* out) { out[threadIdx.x] = view.data != nullptr; }
template <typename T>
static void with_owner(T& owner) {
  two<<<1, 64>>>(owner);
}

CASE(owners_may_be_members_elements_and_derived) {
  Owner owner;
  owner.run();
  auto made = Buffer(64);
  Buffer all[2] = {Buffer(64), Buffer(64)};
  two<<<1, 64>>>(made);
  two<<<1, 64>>>(all[1]);
  Derived derived;
  with_owner(derived);
  with_owner(derived);
  const std::unique_ptr<float[]> host(new float[3]);
  Device<float> out(64);
  of_view<<<1, 64>>>(host, out.data);
  CHECK(cudaDeviceSynchronize() == cudaSuccess && holds(out, 1));
}

static int counted = 0;
static int count_up() { return ++counted; }
struct Counter {
  operator int() const { return ++counted; }
  operator int() { return -1; }
};
struct Ticket {
  int number;
  Ticket(const char*) : number(++counted) {}
};
__global__ void of_default(float* out, int n = count_up()) { out[threadIdx.x] = n; }
__global__ void of_ticket(Ticket ticket, float* out) { out[threadIdx.x] = ticket.number; }

CASE(arguments_become_parameters_once_and_on_the_host) {
  Device<float> out(64);
  of_default<<<1, 64>>>(out.data);
  CHECK(counted == 1 && holds(out, 1));
  const Counter constant{};
  of_default<<<1, 64>>>(out.data, constant);
  CHECK(counted == 2 && holds(out, 2));
  Counter other;
  of_default<<<1, 64>>>(out.data, other);
  CHECK(counted == 2 && holds(out, -1));
  of_ticket<<<1, 64>>>("a", out.data);
  CHECK(counted == 3 && holds(out, 3));
}

template <typename A, typename B>
struct Couple {
  A a;
  B b;
  operator int() const { return 2; }
};
#define NOTHING (NULL)
__global__ void of_all(const float* none, Pair pair, int n, float* out) {
  out[threadIdx.x] = none == nullptr ? pair.x + pair.y + n : 0;
}

CASE(braces_and_nulls_stand_beside_templates) {
  Device<float> out(64);
  const long n = 2;
  of_all<<<1, 64>>>(NULL, {1, 2}, static_cast<int>(n), out.data);
  CHECK(holds(out, 5));
  of_all<<<1, 64>>>(NOTHING, {1, 2}, Couple<int, int>{}, out.data);
  CHECK(holds(out, 5));
  of_all<<<1, 64>>>(0x0, {1, 2}, n < 3, out.data);
  CHECK(holds(out, 4));
}

namespace named {
template <int n>
__global__ void number(float* number) {
  number[threadIdx.x] = n;
}
template <>
__global__ void number<3>(float* out) {
  out[threadIdx.x] = 33;
}
template <typename... Ts>
__global__ void total(float* out, Ts... values) {
  out[threadIdx.x] = (0 + ... + values);
}
template <typename T, int>
__global__ void unnamed(T* out, int, const struct Pair* = nullptr) {
  out[threadIdx.x] = 7;
}
}  // namespace named
CASE(kernels_have_all_kinds_of_names) {
  Device<float> out(64);
  named::template number<2><<<1, 64>>>(out.data);
  CHECK(holds(out, 2));
  named::number<3><<<1, 64>>>(out.data);
  CHECK(holds(out, 33));
  named::total<<<1, 64>>>(out.data, 1, 2.0, 3);
  CHECK(holds(out, 6));
  named::unnamed<float, 3><<<1, 64>>>(out.data, 1);
  CHECK(holds(out, 7));
  Fn kernel;
  (kernel = two)<<<1, 64>>>(out.data);
  CHECK(holds(out, 2));
  int which = 0;
  (which++ == 0 ? one : two)<<<1, 64>>>(out.data);
  CHECK(which == 1 && holds(out, 1));
}

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

void Sizes::launch(float* out) const { of_numbers<<<1, 64>>>(out, four, kThree, 0, nullptr, four); }

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

// Functions of the host whose names are kernels', too.
__global__ void swap(float* from, float* to) { to[threadIdx.x] = from[threadIdx.x]; }
__global__ void clear(float* out) { out[threadIdx.x] = 0; }
struct List : std::vector<float> {
  void drop() { clear(); }
};

CASE(a_call_may_mean_another_function) {
  std::vector<float> a = {1}, b;
  swap(a, b);
  List list;
  list.push_back(1);
  list.drop();
  CHECK(a.empty() && b.size() == 1 && list.empty());
  Device<float> out(64);
  clear<<<1, 64>>>(out.data);
  CHECK(holds(out, 0));
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

struct Limits {
  static constexpr int threads = 64;
};
template <int n>
__global__ void __launch_bounds__(Limits::threads) hidden(int* out, int threads) {
  *out = threads + n;
}
template <int n>
__global__ void __launch_bounds__(n < 64 ? 64 : n, 1) compared(int* out) {
  *out = n;
}
__global__ void __launch_bounds__(64) declared_before(int* out, int n);
__global__ void declared_before(int* out, int n) { *out = n; }

CASE(bounds_hold_wherever_they_stand) {
  Device<int> out(std::vector<int>(1, 0));
  for (int threads = 64; threads < 66; ++threads) {
    const cudaError_t expected = threads > 64 ? cudaErrorInvalidValue : cudaSuccess;
    hidden<3><<<1, threads>>>(out.data, 4);
    CHECK(cudaGetLastError() == expected);
    compared<5><<<1, threads>>>(out.data);
    CHECK(cudaGetLastError() == expected);
    declared_before<<<1, threads>>>(out.data, 6);
    CHECK(cudaGetLastError() == expected);
  }
  CHECK(out.get()[0] == 6);
}

__global__ void in_brackets(float* out) {
  const int(count) = 64;
  __shared__ float kept[count];
  kept[threadIdx.x] = 5;
  out[threadIdx.x] = kept[threadIdx.x];
}

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

CASE(a_variable_may_be_declared_in_brackets) {
  Device<float> out(64);
  in_brackets<<<1, 64>>>(out.data);
  CHECK(holds(out, 5));
}

CASE(floats_may_be_seen_as_integers) {
  Device<float> out(32);
  changes_bits<<<1, 32>>>(out.data);
  CHECK(out.get()[2] == 28);
}

// Kernels of one name: one as loops, the other with threads that leave a loop at a barrier.
__global__ void fill_up(float* out, float value) { out[threadIdx.x] = value + 0.5f; }
__device__ int most = 100;
__global__ void fill_up(float* out, int n) {
  for (int j = 0; j < n; ++j) {
    if (*&most < j) break;
    __syncthreads();
    out[threadIdx.x] += 1;
  }
}
struct Shorter {
  int value;
};
struct Longer : Shorter {
  int more[2];
};
__global__ void of_object(float* out, Shorter object) { out[threadIdx.x] = object.value; }
__global__ void of_object(float* out, Longer object) {
  for (int j = 0; j < 2; ++j) {
    if (object.more[j] > 8) break;
    __syncthreads();
    out[threadIdx.x] = object.more[j];
  }
}
namespace elsewhere {
__global__ void scaled(float* out, float by) { out[threadIdx.x] = by; }
}  // namespace elsewhere
using namespace elsewhere;
__global__ void scaled(float* out, int by) {
  auto three = [&] { return 3 * by; };
  out[threadIdx.x] = three();
}

CASE(a_kernel_runs_no_other_of_its_name) {
  Device<float> out(std::vector<float>(64, 0));
  fill_up<<<1, 64>>>(out.data, 3);
  CHECK(holds(out, 3));
  fill_up<<<1, 64>>>(out.data, 3.0f);
  CHECK(holds(out, 3.5));
  Longer derived;
  derived.value = 1;
  derived.more[0] = derived.more[1] = 7;
  of_object<<<1, 64>>>(out.data, derived);
  CHECK(holds(out, 7));
  of_object<<<1, 64>>>(out.data, Shorter{5});
  CHECK(holds(out, 5));
  scaled<<<1, 64>>>(out.data, 2);
  CHECK(holds(out, 6));
}

// The host copies and destroys what it passes; threads have its bytes.
struct Counted {
  float* data;
  int* copies;
  Counted(float* data, int* copies) : data(data), copies(copies) {}
  Counted(const Counted& other) : data(other.data), copies(other.copies) { copies[0] += 1; }
  ~Counted() { copies[1] += 1; }
};
__global__ void of_counted(Counted by_value, int n) {
  by_value.data += threadIdx.x;  // each thread's own
  if (n > 0) *by_value.data = n;
}
template <typename... Objects>
__global__ void of_many(float* __restrict__ out, Objects... objects) {
  out[threadIdx.x] = (... + (objects.data != nullptr));
}

CASE(threads_copy_no_objects) {
  Device<float> out(64);
  int copies[2] = {0, 0};
  {
    Counted counted(out.data, copies);
    of_counted<<<4, 64>>>(counted, 3);
    of_many<<<1, 64>>>(out.data, counted, counted);
  }
  CHECK(copies[0] == 3 && copies[1] == 4);
  CHECK(holds(out, 2));
}

// Types that are written with brackets of all kinds.
template <class T>
__global__ std::enable_if_t<sizeof(T) == 4> of_size(T* out) {
  out[threadIdx.x] = 4;
}
template <class T>
__global__ std::enable_if_t<!std::is_integral<T>{} && (sizeof(T) > 4)> of_size(T* out) {
  out[threadIdx.x] = 8;
}
template <int n>
__global__ typename std::enable_if<n == 4 && sizeof(int) <= 4, void>::type of_four(float* out) {
  out[threadIdx.x] = n;
}
template <class T>
__global__ auto trailing(T* out)
    -> std::enable_if_t<std::is_floating_point<T>{} && sizeof(T) == 4> {
  out[threadIdx.x] = 5;
}
template <int... numbers>
__global__ void of_sequence(std::integer_sequence<int, numbers...>, float* out) {
  out[threadIdx.x] = (... + numbers);
}
__device__ float both(float a, float b) { return a + b; }
template <class R, class... A>
__global__ void of_function(R (*function)(A...), R* out, A... values) {
  out[threadIdx.x] = function != nullptr ? (... + values) : 0;
}
template <class T>
__global__ void of_rows(T (*__restrict__ rows)[8], T value) {
  rows[threadIdx.x / 8][threadIdx.x % 8] = value;
}
struct Holder {
  void (*kernel)(float*) = trailing<float>;
};

CASE(types_and_names_may_have_any_brackets) {
  Device<float> out(64);
  Device<double> wide(64);
  of_size<<<1, 64>>>(out.data);
  CHECK(holds(out, 4));
  of_size<<<1, 64>>>(wide.data);
  CHECK(wide.get()[63] == 8);
  trailing<<<1, 64>>>(out.data);
  CHECK(holds(out, 5));
  of_four<std::integral_constant<int, 4>{}><<<1, 64>>>(out.data);
  CHECK(holds(out, 4));
  of_sequence<<<1, 64>>>(std::integer_sequence<int, 1, 2, 3>{}, out.data);
  CHECK(holds(out, 6));
  of_function<<<1, 64>>>(both, out.data, 3.0f, 4.0f);
  CHECK(holds(out, 7));
  of_rows<<<1, 64>>>(reinterpret_cast<float (*)[8]>(out.data), 8.0f);
  CHECK(holds(out, 8));
  Holder{}.kernel<<<1, 64>>>(out.data);
  CHECK(holds(out, 5));
  [] { return Holder(); }().kernel<<<1, 64>>>(out.data);
  CHECK(holds(out, 5));
}
