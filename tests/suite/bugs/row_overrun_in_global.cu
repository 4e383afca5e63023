// bug: the rows of a 2-D array in a struct are shorter than the loop over them
// finds: row overrun, race global
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

struct Board {
  int cells[6][10];
};

__global__ void fill(Board* board, int columns) {
  int y = threadIdx.x;
  if (y >= 5) return;
  for (int x = 0; x < columns; ++x) board->cells[y][x] = y + 1;  // <- bug
}

int main() {
#ifdef FIXED
  const int columns = 10;
#else
  const int columns = 12;
#endif
  Board host, *board;
  check(cudaMalloc(&board, sizeof(Board)));
  check(cudaMemset(board, 0, sizeof(Board)));
  fill<<<1, 32>>>(board, columns);
  check(cudaGetLastError());
  check(cudaMemcpy(&host, board, sizeof(Board), cudaMemcpyDeviceToHost));
  for (int y = 0; y < 6; ++y) std::printf("%d\n", host.cells[y][9]);
  check(cudaFree(board));
}
