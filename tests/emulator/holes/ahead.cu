// A value behind ? that is read before the thread has written it.
#include "show.h"

struct Matrix {
  float* data;
};

__global__ void by_member(Matrix m, const float* p, float* out) {
  int i = threadIdx.x;
  m.data[i] = 3.f;
  out[i] = i > 2 ? p[i] : 0.f;
}

CASE(written_through_a_member) {
  Device<float> p(counted<float>(33)), out(33);
  by_member<<<1, 33>>>(Matrix{p.data}, p.data, out.data);
  show(out);
}

struct Vector {
  float* data;
  __device__ float& operator[](int i) { return data[i]; }
  __device__ float& at(int i) const { return data[i]; }
};

__global__ void by_function(Vector m, const float* p, float* out) {
  int i = threadIdx.x;
  m.at(i) = 3.f;
  out[i] = i > 2 ? p[i] : 0.f;
}

CASE(written_through_a_member_function) {
  Device<float> p(counted<float>(33)), out(33);
  by_function<<<1, 33>>>(Vector{p.data}, p.data, out.data);
  show(out);
}

__global__ void by_index(Vector m, const float* p, float* out) {
  int i = threadIdx.x;
  m[i] = 3.f;
  out[i] = i > 2 ? p[i] : 0.f;
}

CASE(written_through_an_operator) {
  Device<float> p(counted<float>(33)), out(33);
  by_index<<<1, 33>>>(Vector{p.data}, p.data, out.data);
  show(out);
}

__device__ float* place;

__global__ void by_global(const float* p, float* out) {
  int i = threadIdx.x;
  *(place + i) = 3.f;
  out[i] = i > 2 ? p[i] : 0.f;
}

CASE(written_through_a_global) {
  Device<float> p(counted<float>(33)), out(33);
  CHECK(cudaMemcpyToSymbol(place, &p.data, sizeof p.data) == cudaSuccess);
  by_global<<<1, 33>>>(p.data, out.data);
  show(out);
}

__device__ void store(int i) { place[i] = 3.f; }

__global__ void by_call(const float* p, float* out) {
  int i = threadIdx.x;
  store(i);
  out[i] = i > 2 ? p[i] : 0.f;
}

CASE(written_by_a_function) {
  Device<float> p(counted<float>(33)), out(33);
  CHECK(cudaMemcpyToSymbol(place, &p.data, sizeof p.data) == cudaSuccess);
  by_call<<<1, 33>>>(p.data, out.data);
  show(out);
}

__global__ void in_declaration(const float* p, float* q, float* out) {
  int i = threadIdx.x;
  float v = i > 2 ? p[i] : 0.f;
  q[i] = v + 1.f;
  float w = i > 3 ? p[i] : 0.f;
  out[i] = w;
}

CASE(written_between) {
  Device<float> p(counted<float>(33)), out(33);
  in_declaration<<<1, 33>>>(p.data, p.data, out.data);
  show(out);
}
