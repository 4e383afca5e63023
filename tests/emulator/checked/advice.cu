// What is slow on a GPU, and what only looks so.
#include "check.h"

// Every third lane reads; those between have nothing to do.
__global__ void reads_some(int n, const float* in, const float* gate, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = gate[i] > 0 ? in[i] : 0;
}

CASE(some_lanes_read_neighbours) {
  std::vector<float> values(256, -1.f);
  for (size_t i = 0; i < values.size(); i += 8) values[i] = 1;
  Device<float> in(std::vector<float>(256, 1.f)), gate(values), out(std::vector<float>(256, 0.f));
  reads_some<<<1, 256>>>(256, in.data, gate.data, out.data);
  CHECK(out.get()[8] == 1 && out.get()[9] == 0);
}

// A thread a row.
__global__ void sums_rows(int rows, int columns, const float* in, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int j = 0; i < rows && j < columns; ++j) sum += in[i * columns + j];
  if (i < rows) out[i] = sum;
}

static void sum_rows(int rows, int columns) {
  Device<float> in(std::vector<float>(rows * columns, 1.f)), out(std::vector<float>(rows, 0.f));
  sums_rows<<<(rows + 31) / 32, 32>>>(rows, columns, in.data, out.data);
  CHECK(out.get()[rows - 1] == columns);
}

CASE(lanes_read_a_row_each) { sum_rows(64, 32); }

// Only the largest launch tells how fast a kernel is.
CASE(the_largest_launch_is_fine) {
  sum_rows(32, 32);
  sum_rows(256, 1);
}

// One lane alone reads two elements that are neighbours: no vector.
__global__ void next_to_it(int* out) {
  __shared__ struct {
    int all[32], first[32];
  } s;
  s.all[threadIdx.x] = threadIdx.x;
  s.first[threadIdx.x] = 3;
  __syncthreads();
  out[threadIdx.x] = s.all[31 - threadIdx.x] + s.first[0];
}

CASE(one_lane_reads_neighbours) {
  Device<int> out(32);
  next_to_it<<<1, 32>>>(out.data);
  CHECK(out.get()[0] == 34);
}

// All lanes read two elements that are neighbours, as one vector; a word of each bank twice.
__global__ void pairs(int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  s[threadIdx.x + 32] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = s[2 * threadIdx.x] + s[2 * threadIdx.x + 1];
}

CASE(all_lanes_read_neighbours) {
  Device<int> out(32);
  pairs<<<1, 32>>>(out.data);
  CHECK(out.get()[1] == 5);
}
