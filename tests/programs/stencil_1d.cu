// Shows: a 1-D stencil with a halo in shared memory, and the same from global memory.
#include <stdio.h>
#include <algorithm>

using namespace std;

#define N 4096
#define RADIUS 3
#define BLOCK_SIZE 128

__global__ void stencil_1d(int *in, int *out) {
    __shared__ int temp[BLOCK_SIZE + 2 * RADIUS];
    int gindex = threadIdx.x + blockIdx.x * blockDim.x;
    int lindex = threadIdx.x + RADIUS;

    // Read input elements into shared memory
    temp[lindex] = in[gindex];
    if (threadIdx.x < RADIUS) {
      temp[lindex - RADIUS] = in[gindex - RADIUS];
      temp[lindex + BLOCK_SIZE] = in[gindex + BLOCK_SIZE];
    }
    __syncthreads();

    // Apply the stencil
    int result = 0;
    for (int offset = -RADIUS; offset <= RADIUS; offset++)
      result += temp[lindex + offset];

    // Store the result
    out[gindex] = result;
}

__global__ void stencil_global(const int *in, int *out) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    int result = 0;
    for (int offset = -RADIUS; offset <= RADIUS; offset++)
      result += in[i + offset];
    out[i] = result;
}

void fill_ints(int *x, int n) {
  fill_n(x, n, 1);
}

static int mistakes(const int *out) {
  int count = 0;
  for (int i = RADIUS; i < N + RADIUS; i++) {
    if (out[i] != 1 + 2 * RADIUS) {
      if (count++ == 0) printf("Element h_out[%d] == %d != %d\n", i, out[i], 1 + 2 * RADIUS);
    }
  }
  return count;
}

int main(void) {
  int *in, *out;
  int *d_in, *d_out;
  int size = (N + 2 * RADIUS) * sizeof(int);

  in = (int *)malloc(size); fill_ints(in, N + 2 * RADIUS);
  out = (int *)malloc(size); fill_ints(out, N + 2 * RADIUS);

  cudaError_t err = cudaMalloc((void **)&d_in, size);
  if (err == cudaSuccess) err = cudaMalloc((void **)&d_out, size);
  if (err == cudaSuccess) err = cudaMemcpy(d_in, in, size, cudaMemcpyHostToDevice);
  if (err == cudaSuccess) err = cudaMemcpy(d_out, out, size, cudaMemcpyHostToDevice);
  if (err != cudaSuccess) {
    printf("setup: %s\n", cudaGetErrorString(err));
    return 1;
  }

  stencil_1d<<<N/BLOCK_SIZE,BLOCK_SIZE>>>(d_in + RADIUS, d_out + RADIUS);
  err = cudaMemcpy(out, d_out, size, cudaMemcpyDeviceToHost);
  int first = err != cudaSuccess ? 1 : mistakes(out);

  stencil_global<<<N/BLOCK_SIZE,BLOCK_SIZE>>>(d_in + RADIUS, d_out + RADIUS);
  err = cudaMemcpy(out, d_out, size, cudaMemcpyDeviceToHost);
  int second = err != cudaSuccess ? 1 : mistakes(out);

  if (first == 0 && second == 0) printf("Success!\n");
  free(in); free(out);
  if (cudaFree(d_in) != cudaSuccess || cudaFree(d_out) != cudaSuccess) return 1;
  return first + second;
}
