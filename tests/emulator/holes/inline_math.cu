// Functions that a compiler takes for several threads at once: they give the same bits as one.
#include <cstdint>
#include <cstring>

#include "show.h"

template <typename To, typename From>
static To bits_of(From from) {
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

__global__ void exponentials(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = expf(x[i]);
}

// In units of the last place of the float that is next to it.
static double error_of(float y, double exact) {
  const double unit = exact < 0x1p-126 ? 0x1p-149 : std::ldexp(1.0, std::ilogb(exact) - 23);
  return std::fabs(y - exact) / unit;
}

// Each 499th float, and all around the ends.
static std::vector<float> many_floats() {
  std::vector<float> found;
  for (uint64_t bits = 0; bits < 1ull << 32; bits += 499)
    found.push_back(bits_of<float>(static_cast<uint32_t>(bits)));
  for (float end : {0.0f, -0.0f, 88.722839f, -87.336548f, -103.97208f, -103.27893f, 100.0f, -110.0f,
                    INFINITY, -INFINITY})
    for (int k = -50; k <= 50; ++k) found.push_back(bits_of<float>(bits_of<uint32_t>(end) + k));
  return found;
}

CASE(exponentials_of_many_floats) {
  const std::vector<float> x = many_floats();
  const int n = static_cast<int>(x.size());
  Device<float> in(x), out(n);
  exponentials<<<(n + 255) / 256, 256>>>(in.data, out.data, n);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  const std::vector<float> y = out.get();
  double worst = 0;
  uint32_t all = 0;
  for (int i = 0; i < n; ++i) {
    const double exact = std::exp(static_cast<double>(x[i]));
    if (x[i] != x[i]) {
      CHECK(y[i] != y[i]);
      continue;
    }
    all = all * 16777619u ^ bits_of<uint32_t>(y[i]);
    if (std::isinf(static_cast<float>(exact)) || exact < 0x1p-151)
      CHECK(y[i] == static_cast<float>(exact) && !std::signbit(y[i]));
    else
      worst = std::max(worst, error_of(y[i], exact));
  }
  CHECK(worst < 0.501);  // CUDA's own: at most 2
  std::printf("%u %g\n", all, worst);
}

__global__ void extremes(const float* a, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * n) return;
  const float x = a[i / n], y = a[i % n];
  out[i] = fmaxf(x, y);
  out[n * n + i] = fminf(x, y);
  out[2 * n * n + i] = max(x, y);
  out[3 * n * n + i] = static_cast<float>(fmax(static_cast<double>(x), static_cast<double>(y)));
  out[4 * n * n + i] = static_cast<float>(min(static_cast<double>(x), static_cast<double>(y)));
}

CASE(extremes_of_all_kinds) {
  const std::vector<float> kinds = {0.0f, -0.0f, 1, -1, INFINITY, -INFINITY, NAN, 1e-45f, -1e-45f};
  const int n = static_cast<int>(kinds.size());
  Device<float> in(kinds), out(5 * n * n);
  extremes<<<1, 96>>>(in.data, out.data, n);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  const std::vector<float> got = out.get();
  for (int i = 0; i < n * n; ++i) {
    const float x = kinds[i / n], y = kinds[i % n];
    const bool is_more = x > y || y != y || (x == y && std::signbit(y));
    const float most = is_more ? x : y, least = (is_more && y == y) || x != x ? y : x;
    for (int k : {0, 2, 3}) CHECK(bits_of<int>(got[k * n * n + i]) == bits_of<int>(most));
    for (int k : {1, 4}) CHECK(bits_of<int>(got[k * n * n + i]) == bits_of<int>(least));
  }
  show(out);
}
