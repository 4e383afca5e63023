// Declarations that a parser may take for expressions, so that a name means something else behind
// a barrier, or in a loop that threads take together.
#include <type_traits>

#include "show.h"

typedef int Index;
typedef float Real;

const int step = 50;
__constant__ Real shift[32];

// The type begins with `::`.
__global__ void of_the_file(int* out) {
  ::Index step = threadIdx.x;
  out[threadIdx.x] = step;
  __syncthreads();
  out[threadIdx.x] += step;
}

CASE(named_from_the_file_on) {
  Device<int> out(std::vector<int>(32));
  of_the_file<<<1, 32>>>(out.data);
  show(out);
}

__global__ void of_the_file_in_a_loop(int* out, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int sum = 0;
    for (int j = 0; j < m; ++j) {
      ::Index step = j;
      for (int k = 0; k < m; ++k) sum += step * k;
      sum += step;
    }
    out[i] = sum;
  }
}

CASE(named_from_the_file_on_in_a_loop) {
  Device<int> out(std::vector<int>(64));
  of_the_file_in_a_loop<<<2, 32>>>(out.data, 64, 5);
  show(out);
}

// An = that is none of a value.
template <int n>
__global__ void of_a_choice(int* out) {
  std::enable_if_t<n == 4, int> step = threadIdx.x;
  out[threadIdx.x] = step;
  __syncthreads();
  out[threadIdx.x] += step;
}

CASE(of_a_type_with_a_comparison) {
  Device<int> out(std::vector<int>(32));
  of_a_choice<4><<<1, 32>>>(out.data);
  show(out);
}

// A product of a type and a name.
__global__ void in_brackets(const Real* a, Real* out) {
  const Real*(shift) = a + threadIdx.x;
  out[threadIdx.x] = shift[0];
  __syncthreads();
  out[threadIdx.x] += shift[1];
}

CASE(pointer_in_brackets) {
  Device<Real> a(counted<Real>(33)), out(32);
  in_brackets<<<1, 32>>>(a.data, out.data);
  show(out);
}

__global__ void itself_volatile(Real* a, Real* out) {
  Real* volatile shift = a + threadIdx.x;
  out[threadIdx.x] = shift[0];
  __syncthreads();
  out[threadIdx.x] += shift[1];
}

CASE(pointer_that_is_volatile_itself) {
  Device<Real> a(counted<Real>(33)), out(32);
  itself_volatile<<<1, 32>>>(a.data, out.data);
  show(out);
}

// Names of the second versions' own.
const int emulator_n = 3;

__global__ void of_the_emulator(int* out, int m) {
  int emulator_t = 7, i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
  for (int j = 0; j < m; ++j) sum += j * emulator_t + emulator_n;
  out[i] = sum;
}

CASE(names_that_the_emulated_gpu_has) {
  Device<int> out(std::vector<int>(64));
  of_the_emulator<<<2, 32>>>(out.data, 9);
  show(out);
}
