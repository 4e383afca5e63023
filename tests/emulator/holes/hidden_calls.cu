// Functions that are called and not named: constructors, operators, conversions, default arguments.
#include "show.h"

__device__ int lane() { return threadIdx.x; }

struct Made {
  int value;
  __device__ Made(int n) { value = n + lane(); }
};

__global__ void by_constructor(int* out) {
  Made made(100);
  out[threadIdx.x] = made.value;
}

CASE(constructor_that_knows_its_thread) {
  Device<int> out(33);
  by_constructor<<<1, 33>>>(out.data);
  show(out);
}

struct Number {
  int value;
};
__device__ Number operator+(Number a, Number b) { return {a.value + b.value + lane()}; }

__global__ void by_operator(int* out) {
  Number a = {100}, b = {1000};
  Number c = a + b;
  out[threadIdx.x] = c.value;
}

CASE(operator_that_knows_its_thread) {
  Device<int> out(33);
  by_operator<<<1, 33>>>(out.data);
  show(out);
}

struct Sum {
  int value;
  __device__ explicit Sum(int n) {
    for (int offset = 16; offset > 0; offset /= 2) n += __shfl_xor_sync(0xffffffff, n, offset);
    value = n;
  }
};

__global__ void warp_sum(int* out) {
  Sum sum(threadIdx.x);
  out[threadIdx.x] = sum.value;
}

CASE(constructor_that_shuffles) {
  Device<int> out(32);
  warp_sum<<<1, 32>>>(out.data);
  show(out);
}

struct Wait {
  __device__ Wait() { all(); }
  __device__ static void all();
};
__device__ void meet() { __syncthreads(); }
struct Meet {
  int n;
  __device__ Meet() : n(0) { meet(); }
};

__global__ void waits(int* out) {
  __shared__ int all[64];
  all[threadIdx.x] = threadIdx.x;
  Meet meet;
  out[threadIdx.x] = all[(threadIdx.x + 1) % blockDim.x] + meet.n;
}

CASE(constructor_that_waits) {
  Device<int> out(33);
  waits<<<1, 33>>>(out.data);
  show(out);
}

template <typename T>
struct Functor {
  T* p;
  __device__ void operator()(int i) const { p[i] = lane(); }
};

template <typename F>
__global__ void apply(F f) {
  f(threadIdx.x);
}

CASE(functor_that_knows_its_thread) {
  Device<int> out(33);
  apply<<<1, 33>>>(Functor<int>{out.data});
  show(out);
}

struct Stream {
  int* out;
  __device__ const Stream& operator<<(int n) const {
    out[lane()] += n;
    return *this;
  }
};

__global__ void by_shift(Stream stream) { stream << 3 << 4; }

CASE(shift_operator_that_knows_its_thread) {
  Device<int> out(std::vector<int>(33));
  by_shift<<<1, 33>>>(Stream{out.data});
  show(out);
}

__device__ auto place() noexcept(true) -> int { return threadIdx.x; }
struct Placed {
  int value = place();
};

__global__ void by_trailing_type(int* out) {
  Placed placed;
  out[threadIdx.x] = placed.value;
}

CASE(function_with_its_type_behind) {
  Device<int> out(33);
  by_trailing_type<<<1, 33>>>(out.data);
  show(out);
}
