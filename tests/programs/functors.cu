// Shows: templates with functors in kernels, and lambdas and standard algorithms on the host.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include <cuda_runtime.h>

#define CUDA_CHECK(expr) \
  ([](cudaError_t e) { if (e != cudaSuccess) { std::printf("%s\n", cudaGetErrorString(e)); std::exit(1); } }(expr))

template <typename T>
struct Saxpy {
  T a;
  explicit Saxpy(T a) : a(a) {}
  __host__ __device__ T operator()(T x, T y) const { return a * x + y; }
};

struct Maximum {
  template <typename T>
  __host__ __device__ T operator()(const T &x, const T &y) const { return x < y ? y : x; }
};

template <typename First, typename Second>
struct Compose {
  First first;
  Second second;
  template <typename T>
  __host__ __device__ T operator()(T x, T y) const { return second(first(x, y), y); }
};

template <typename First, typename Second>
Compose<First, Second> compose(First f, Second s) { return {f, s}; }

template <typename Op, typename T, int PER_THREAD = 2>
__global__ void transform(const T *x, const T *y, T *out, int n, Op op) {
  const int base = (blockIdx.x * blockDim.x + threadIdx.x) * PER_THREAD;
#pragma unroll
  for (int k = 0; k < PER_THREAD; ++k)
    if (base + k < n) out[base + k] = op(x[base + k], y[base + k]);
}

template <typename T>
class DeviceVector {
 public:
  explicit DeviceVector(const std::vector<T> &v) : size_(v.size()) {
    CUDA_CHECK(cudaMalloc(&data_, size_ * sizeof(T)));
    CUDA_CHECK(cudaMemcpy(data_, v.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  DeviceVector(const DeviceVector &) = delete;
  DeviceVector &operator=(const DeviceVector &) = delete;
  DeviceVector(DeviceVector &&other) noexcept : data_(other.data_), size_(other.size_) { other.data_ = nullptr; }
  ~DeviceVector() { if (data_) cudaFree(data_); }
  std::vector<T> host() const {
    std::vector<T> v(size_);
    CUDA_CHECK(cudaMemcpy(v.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return v;
  }
  T *get() { return data_; }

 private:
  T *data_ = nullptr;
  size_t size_;
};

template <typename T, typename Op>
bool test(const std::string &name, Op op) {
  static_assert(std::is_arithmetic<T>::value, "numbers only");
  const int n = 777;
  std::vector<T> x(n), y(n), gold(n);
  std::iota(x.begin(), x.end(), T(1));
  std::generate(y.begin(), y.end(), [k = 0]() mutable { return T((k++ * 37) % 100); });
  std::transform(x.begin(), x.end(), y.begin(), gold.begin(), op);
  DeviceVector<T> dx(x), dy(y), out(std::vector<T>(n, T()));
  DeviceVector<T> moved = std::move(out);
  transform<<<(n + 127) / 128, 64>>>(dx.get(), dy.get(), moved.get(), n, op);
  CUDA_CHECK(cudaGetLastError());
  const auto result = moved.host();
  const bool same = std::equal(result.begin(), result.end(), gold.begin());
  std::printf("%s: %s\n", name.c_str(), same ? "same" : "different");
  return same;
}

int main() {
  std::vector<std::function<bool()>> tests = {
      [] { return test<float>("saxpy of floats", Saxpy<float>(2)); },
      [] { return test<long long>("saxpy of integers", Saxpy<long long>(-3)); },
      [] { return test<short>("maximum of shorts", Maximum()); },
      [] { return test<double>("composed", compose(Saxpy<double>(0.5), Maximum())); },
  };
  return std::all_of(tests.begin(), tests.end(), [](auto &t) { return t(); }) ? 0 : 1;
}
