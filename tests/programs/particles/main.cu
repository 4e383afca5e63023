// Shows: a class with device methods, in headers that also a plain C++ file includes.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#include "particle.h"

#define CHECK(call)                                                                       \
  do {                                                                                    \
    cudaError_t e = (call);                                                               \
    if (e != cudaSuccess) {                                                               \
      std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e));      \
      std::exit(1);                                                                       \
    }                                                                                     \
  } while (0)

__global__ void advanceParticles(int steps, int box, Particle* pArray, int nParticles) {
  int idx = threadIdx.x + blockIdx.x * blockDim.x;
  if (idx >= nParticles) return;
  Particle p = pArray[idx];
  for (int s = 0; s < steps; ++s) p.advance(box);
  pArray[idx] = p;
}

__global__ void total(const Particle* pArray, int nParticles, Vec3* sum, unsigned long long* travelled) {
  __shared__ Vec3 part[128];
  int idx = threadIdx.x;
  Vec3 mine(0, 0, 0);
  for (int i = idx; i < nParticles; i += blockDim.x) {
    mine = mine + pArray[i].position();
    atomicAdd(travelled, (unsigned long long)pArray[i].travelled());
  }
  part[idx] = mine;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (idx < half) part[idx] += part[idx + half];
    __syncthreads();
  }
  if (idx == 0) *sum = -part[0] * -1;
}

int main() {
  const int n = 700, box = 1000, steps = 25;
  std::vector<Particle> particles;
  for (int i = 0; i < n; ++i)
    particles.push_back(Particle(Vec3(i % box, i * 7 % box, i * 31 % box), Vec3(i % 23 - 11, i % 41 - 20, i % 7)));
  Particle* devPArray = nullptr;
  Vec3* d_sum;
  unsigned long long *d_travelled, travelled = 0, goldTravelled = 0;
  CHECK(cudaMalloc(&devPArray, n * sizeof(Particle)));
  CHECK(cudaMalloc(&d_sum, sizeof(Vec3)));
  CHECK(cudaMalloc(&d_travelled, sizeof(travelled)));
  CHECK(cudaMemset(d_travelled, 0, sizeof(travelled)));
  CHECK(cudaMemcpy(devPArray, particles.data(), n * sizeof(Particle), cudaMemcpyHostToDevice));
  advanceParticles<<<(n + 255) / 256, 256>>>(steps, box, devPArray, n);
  CHECK(cudaGetLastError());
  total<<<1, 128>>>(devPArray, n, d_sum, d_travelled);
  CHECK(cudaGetLastError());
  std::vector<Particle> result(n);
  Vec3 sum, gold(0, 0, 0);
  CHECK(cudaMemcpy(result.data(), devPArray, n * sizeof(Particle), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(&sum, d_sum, sizeof(sum), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(&travelled, d_travelled, sizeof(travelled), cudaMemcpyDeviceToHost));

  advanceOnHost(particles.data(), n, steps, box);
  int wrong = 0;
  for (int i = 0; i < n; ++i) {
    wrong += !(particles[i].position() == result[i].position());
    gold += particles[i].position();
    goldTravelled += particles[i].travelled();
  }
  std::printf("sum (%d, %d, %d), %llu travelled, %d wrong\n", sum.x, sum.y, sum.z, travelled, wrong);
  CHECK(cudaFree(devPArray));
  CHECK(cudaFree(d_sum));
  CHECK(cudaFree(d_travelled));
  return wrong != 0 || !(sum == gold) || travelled != goldTravelled;
}
