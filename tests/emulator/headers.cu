// Headers that programs include though cuda_runtime.h has all of it, and small ones beside it.
#include <builtin_types.h>
#include <channel_descriptor.h>
#include <common_functions.h>
#include <crt/device_functions.h>
#include <crt/host_defines.h>
#include <crt/math_functions.h>
#include <cuComplex.h>
#include <cuda.h>
#include <cudaProfiler.h>
#include <cuda_device_runtime_api.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <cuda_runtime_api.h>
#include <cuda_surface_types.h>
#include <cuda_texture_types.h>
#include <device_atomic_functions.h>
#include <device_double_functions.h>
#include <device_functions.h>
#include <device_launch_parameters.h>
#include <device_types.h>
#include <driver_functions.h>
#include <driver_types.h>
#include <host_config.h>
#include <host_defines.h>
#include <library_types.h>
#include <math_functions.h>
#include <nvToolsExt.h>
#include <nvtx3/nvToolsExt.h>
#include <sm_20_atomic_functions.h>
#include <sm_30_intrinsics.h>
#include <sm_35_intrinsics.h>
#include <sm_60_atomic_functions.h>
#include <texture_types.h>
#include <vector_functions.h>
#include <vector_types.h>

#include <cmath>
#include <complex>
#include <nvtx3/nvtx3.hpp>

#include "check.h"

template <typename T>
static bool near(T x, T y, std::complex<double> z, double tolerance) {
  return std::abs(std::complex<double>(x, y) - z) <= tolerance * std::abs(z);
}

__global__ void escape(const cuFloatComplex* points, int* steps, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  cuFloatComplex z = make_cuFloatComplex(0, 0);
  int step = 0;
  while (step < 50 && cuCabsf(z) <= 2) {
    z = cuCaddf(cuCmulf(z, z), points[i]);
    ++step;
  }
  steps[i] = step;
}

CASE(complex_numbers_are_those_of_the_library) {
  const std::complex<double> numbers[] = {{3, 4}, {-1, 0.5}, {0, 2}, {1e30, -1e30}, {1e-30, 1e-31}};
  for (auto x : numbers)
    for (auto y : numbers) {
      cuDoubleComplex a = make_cuDoubleComplex(x.real(), x.imag());
      cuDoubleComplex b = make_cuDoubleComplex(y.real(), y.imag());
      cuDoubleComplex sum = cuCadd(a, b), product = cuCmul(a, b), ratio = cuCdiv(a, b);
      CHECK(near(sum.x, sum.y, x + y, 1e-15));
      CHECK(near(product.x, product.y, x * y, 1e-15));
      CHECK(near(ratio.x, ratio.y, x / y, 1e-14));
      cuDoubleComplex fma = cuCfma(a, b, a);
      CHECK(near(fma.x, fma.y, x * y + x, 1e-14) || std::abs(x * y + x) < 1e-40);
      CHECK(std::fabs(cuCabs(a) - std::abs(x)) <= 1e-15 * std::abs(x));
      CHECK(cuCimag(cuConj(a)) == -x.imag() && cuCreal(cuCsub(a, a)) == 0);
    }
  cuFloatComplex f = cuComplexDoubleToFloat(make_cuDoubleComplex(1, 2));
  CHECK(cuCrealf(f) == 1 && cuCimagf(make_cuComplex(1, 2)) == 2 && cuCabsf(cuCsubf(f, f)) == 0);
}

CASE(kernels_compute_with_complex_numbers) {
  std::vector<cuFloatComplex> points = {{0, 0}, {2, 2}, {-1, 0}, {0.5f, 0.5f}, {1, 0}};
  Device<cuFloatComplex> in(points);
  Device<int> steps(points.size());
  escape<<<1, 32>>>(in.data, steps.data, points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    std::complex<float> z = 0, c(points[i].x, points[i].y);
    int step = 0;
    for (; step < 50 && std::abs(z) <= 2; ++step) z = z * z + c;
    CHECK(steps.get()[i] == step);
  }
}

CASE(marks_for_a_profiler_are_nothing) {
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.colorType = NVTX_COLOR_ARGB;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = "step";
  nvtxRangePushEx(&attributes);
  nvtxRangePush("inner");
  nvtxMark("here");
  nvtxRangePop();
  nvtxRangePop();
  nvtxRangeEnd(nvtxRangeStart("whole"));
  nvtx3::scoped_range range("scope");
  NVTX3_FUNC_RANGE();
  cudaProfilerStart();
  cudaProfilerStop();
  CHECK(cuProfilerStart() == CUDA_ERROR_NOT_INITIALIZED);
}
