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
