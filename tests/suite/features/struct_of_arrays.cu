// feature: a struct of pointers as an argument, and the same data as an array of structs
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

struct Particles {
  float *x, *v;
  int* steps;
};

struct Particle {
  float x, v;
  int steps;
};

__global__ void move(Particles p, int n, float dt) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  p.x[i] += p.v[i] * dt;
  ++p.steps[i];
}

__global__ void gather(Particles p, Particle* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = Particle{p.x[i], p.v[i], p.steps[i]};
}

int main() {
  const int n = 90;
  std::vector<float> numbers(n);
  std::vector<Particle> host(n);
  for (int i = 0; i < n; ++i) numbers[i] = i;
  Particles p;
  Particle* out;
  check(cudaMalloc(&p.x, n * sizeof(float)));
  check(cudaMalloc(&p.v, n * sizeof(float)));
  check(cudaMalloc(&p.steps, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(Particle)));
  check(cudaMemset(p.x, 0, n * sizeof(float)));
  check(cudaMemset(p.steps, 0, n * sizeof(int)));
  check(cudaMemcpy(p.v, numbers.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  for (int round = 0; round < 3; ++round) move<<<3, 32>>>(p, n, 0.25f);
  check(cudaGetLastError());
  gather<<<3, 32>>>(p, out, n);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(Particle), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 11)
    std::printf("%.9g %.9g %d\n", host[i].x, host[i].v, host[i].steps);
  check(cudaFree(p.x));
  check(cudaFree(p.v));
  check(cudaFree(p.steps));
  check(cudaFree(out));
}
