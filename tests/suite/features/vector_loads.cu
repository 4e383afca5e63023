// feature: loads and stores of float4, int2, double2 and char4, and the elements left over
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void scale(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 4) {
    float4 v = reinterpret_cast<const float4*>(in)[i];
    reinterpret_cast<float4*>(out)[i] = make_float4(2 * v.x, 3 * v.y, 4 * v.z, 5 * v.w);
  } else if (i - n / 4 < n % 4) {
    int j = n / 4 * 4 + i - n / 4;
    out[j] = -in[j];
  }
}

__global__ void mix(const int2* pairs, const char4* bytes, double2* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  int2 p = pairs[i];
  char4 b = bytes[i];
  out[i] = make_double2(p.x + 0.5 * b.x + b.y, p.y - b.z * b.w);
}

int main() {
  const int n = 103, m = 20;
  std::vector<float> host(n);
  std::vector<int2> pairs(m);
  std::vector<char4> bytes(m);
  std::vector<double2> mixed(m);
  for (int i = 0; i < n; ++i) host[i] = i;
  for (int i = 0; i < m; ++i) {
    pairs[i] = make_int2(i, i * i);
    bytes[i] = make_char4(i, -i, 2, i % 3);
  }
  float *in, *out;
  int2* device_pairs;
  char4* device_bytes;
  double2* device_mixed;
  check(cudaMalloc(&in, n * sizeof(float)));
  check(cudaMalloc(&out, n * sizeof(float)));
  check(cudaMalloc(&device_pairs, m * sizeof(int2)));
  check(cudaMalloc(&device_bytes, m * sizeof(char4)));
  check(cudaMalloc(&device_mixed, m * sizeof(double2)));
  check(cudaMemcpy(in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  check(cudaMemcpy(device_pairs, pairs.data(), m * sizeof(int2), cudaMemcpyHostToDevice));
  check(cudaMemcpy(device_bytes, bytes.data(), m * sizeof(char4), cudaMemcpyHostToDevice));
  scale<<<1, 64>>>(in, out, n);
  check(cudaGetLastError());
  mix<<<1, 32>>>(device_pairs, device_bytes, device_mixed, m);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
  check(cudaMemcpy(mixed.data(), device_mixed, m * sizeof(double2), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 6) std::printf("%.9g\n", host[i]);
  for (int i = 0; i < m; i += 3) std::printf("%.9g %.9g\n", mixed[i].x, mixed[i].y);
  check(cudaFree(in));
  check(cudaFree(out));
  check(cudaFree(device_pairs));
  check(cudaFree(device_bytes));
  check(cudaFree(device_mixed));
}
