// Indices past the end of shared arrays: a case each, named by the first argument.
#include <cstdio>
#include <cstring>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

const int n = 64;

__global__ void fills_others(int* out) {
  __shared__ int many[1024];
  for (int i = threadIdx.x; i < 1024; i += n) many[i] = i;
  __syncthreads();
  out[threadIdx.x] = many[threadIdx.x];
}

__global__ void reads_one_past(int* out) {
  __shared__ int s[n];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x + 1];  // one past
}

__global__ void writes_into_the_next(int* out) {
  __shared__ int low[n];
  __shared__ int high[n];
  high[threadIdx.x] = low[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0 && low < high) low[&high[0] - &low[0] + out[0]] = 2;  // low is first
  if (threadIdx.x == 0 && high < low) high[&low[0] - &high[0] + out[0]] = 2;  // high is first
  __syncthreads();
  out[threadIdx.x] = low[threadIdx.x] + high[threadIdx.x];
}

__global__ void writes_a_row_too_many(int* out) {
  __shared__ int tile[8][8];
  __shared__ int next[n];
  next[threadIdx.x] = tile[threadIdx.x / 8][threadIdx.x % 8] = threadIdx.x;
  __syncthreads();
  const int row = tile < reinterpret_cast<int(*)[8]>(next) ? 9 + out[0] : -2 - out[0];
  if (threadIdx.x == 0) tile[row][3] = 5;  // a row too many
  __syncthreads();
  out[threadIdx.x] = next[threadIdx.x];
}

// Inside of the array, at another element.
__global__ void reads_the_next_row(int* out) {
  __shared__ int tile[9][8];
  __shared__ int next[n];
  const int x = threadIdx.x % 8, y = threadIdx.x / 8;
  tile[y][x] = next[threadIdx.x] = threadIdx.x;
  if (y == 0) tile[8][x] = 0;
  __syncthreads();
  out[threadIdx.x] = tile[y][x + 1] + next[threadIdx.x];  // the next row
}

__global__ void points_to_the_end(int* out) {
  __shared__ int s[n];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  int sum = 0;
  for (const int* p = &s[0]; p != &s[n]; ++p) sum += *p;
  out[threadIdx.x] = sum;
}

int main(int, char** names) {
  int* out;
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMemset(out, 0, n * sizeof(int)));
  fills_others<<<1, n>>>(out);
  check(cudaMemset(out, 0, n * sizeof(int)));
#define CASE(kernel) \
  if (std::strcmp(names[1], #kernel) == 0) kernel<<<1, n>>>(out)
  CASE(reads_one_past);
  CASE(writes_into_the_next);
  CASE(writes_a_row_too_many);
  CASE(reads_the_next_row);
  CASE(points_to_the_end);
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
  check(cudaFree(out));
  return 0;
}
