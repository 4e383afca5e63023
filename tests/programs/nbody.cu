// Shows: bodies that attract each other, with float4 positions in tiles of shared memory.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>
#include "headers/error_check.h"

#define SOFTENING 1e-2f
#define BLOCK_SIZE 64

typedef struct { float4 *pos, *vel; } BodySystem;

__global__ void bodyForce(float4 *p, float4 *v, float dt, int n) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) {
    float Fx = 0.0f; float Fy = 0.0f; float Fz = 0.0f;

    for (int tile = 0; tile < gridDim.x; tile++) {
      __shared__ float3 spos[BLOCK_SIZE];
      float4 tpos = p[tile * blockDim.x + threadIdx.x];
      spos[threadIdx.x] = make_float3(tpos.x, tpos.y, tpos.z);
      __syncthreads();

      #pragma unroll
      for (int j = 0; j < BLOCK_SIZE; j++) {
        float dx = spos[j].x - p[i].x;
        float dy = spos[j].y - p[i].y;
        float dz = spos[j].z - p[i].z;
        float distSqr = dx*dx + dy*dy + dz*dz + SOFTENING;
        float invDist = rsqrtf(distSqr);
        float invDist3 = invDist * invDist * invDist;
        Fx += dx * invDist3; Fy += dy * invDist3; Fz += dz * invDist3;
      }
      __syncthreads();
    }
    v[i].x += dt*Fx; v[i].y += dt*Fy; v[i].z += dt*Fz;
  }
}

__global__ void integrate(float4 *p, const float4 *v, float dt, int n) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i >= n) return;
  p[i].x += v[i].x * dt;
  p[i].y += v[i].y * dt;
  p[i].z += v[i].z * dt;
}

static void stepOnHost(float4 *p, float4 *v, float dt, int n) {
  for (int i = 0; i < n; i++) {
    float F[3] = {0, 0, 0};
    for (int j = 0; j < n; j++) {
      float dx = p[j].x - p[i].x, dy = p[j].y - p[i].y, dz = p[j].z - p[i].z;
      float inv = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + SOFTENING);
      F[0] += dx * inv * inv * inv; F[1] += dy * inv * inv * inv; F[2] += dz * inv * inv * inv;
    }
    v[i].x += dt * F[0]; v[i].y += dt * F[1]; v[i].z += dt * F[2];
  }
  for (int i = 0; i < n; i++) { p[i].x += v[i].x * dt; p[i].y += v[i].y * dt; p[i].z += v[i].z * dt; }
}

int main(const int argc, const char** argv) {
  const int nBodies = 4 * BLOCK_SIZE, nIters = 3, bytes = 2 * nBodies * sizeof(float4);
  const float dt = 0.001f;
  float *buf = (float*)malloc(bytes), *gold = (float*)malloc(bytes);
  unsigned state = 12345;
  for (int i = 0; i < 8 * nBodies; i++) {
    state = state * 1664525u + 1013904223u;
    buf[i] = gold[i] = 2.0f * (state >> 8) / 16777216.0f - 1.0f;
  }
  BodySystem host = { (float4*)gold, ((float4*)gold) + nBodies };
  float *d_buf;
  checkCudaErrors(cudaMalloc(&d_buf, bytes));
  BodySystem d_p = { (float4*)d_buf, ((float4*)d_buf) + nBodies };
  checkCudaErrors(cudaMemcpy(d_buf, buf, bytes, cudaMemcpyHostToDevice));
  int nBlocks = (nBodies + BLOCK_SIZE - 1) / BLOCK_SIZE;
  for (int iter = 1; iter <= nIters; iter++) {
    bodyForce<<<nBlocks, BLOCK_SIZE>>>(d_p.pos, d_p.vel, dt, nBodies);
    getLastCudaError("bodyForce");
    integrate<<<nBlocks, BLOCK_SIZE>>>(d_p.pos, d_p.vel, dt, nBodies);
    getLastCudaError("integrate");
    stepOnHost(host.pos, host.vel, dt, nBodies);
  }
  checkCudaErrors(cudaMemcpy(buf, d_buf, bytes, cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < 8 * nBodies; i++)
    if (!(fabsf(buf[i] - gold[i]) <= 1e-3f + 1e-3f * fabsf(gold[i]))) wrong++;
  printf("%d bodies, %d steps: %d numbers differ\n", nBodies, nIters, wrong);
  checkCudaErrors(cudaFree(d_buf));
  free(buf);
  free(gold);
  return wrong != 0;
}
