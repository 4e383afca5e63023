// Shows: the game of life on a torus, bytes in shared memory, as a class with managed memory.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#include "headers/error_check.h"

typedef unsigned char cell;

template <int W, int H>
__global__ void generation(const cell *now, cell *next, int width, int height)
{
    __shared__ cell field[H + 2][W + 2];
    for (int v = threadIdx.y; v < H + 2; v += H)
        for (int u = threadIdx.x; u < W + 2; u += W) {
            int x = (blockIdx.x * W + u + width - 1) % width;
            int y = (blockIdx.y * H + v + height - 1) % height;
            field[v][u] = now[y * width + x];
        }
    __syncthreads();
    int x = blockIdx.x * W + threadIdx.x, y = blockIdx.y * H + threadIdx.y;
    if (x >= width || y >= height) return;
    int alive = 0;
    for (int dy = 0; dy < 3; dy++)
        for (int dx = 0; dx < 3; dx++)
            if (dx != 1 || dy != 1) alive += field[threadIdx.y + dy][threadIdx.x + dx];
    next[y * width + x] = alive == 3 || (alive == 2 && field[threadIdx.y + 1][threadIdx.x + 1]);
}

class Life {
public:
    Life(int width, int height) : width(width), height(height) {
        for (cell *&grid : grids) checkCudaErrors(cudaMallocManaged(&grid, width * height));
        for (int i = 0; i < width * height; i++) grids[0][i] = 0;
    }
    ~Life() { for (cell *grid : grids) cudaFree(grid); }
    void glider(int x, int y) {
        static const int at[5][2] = {{1, 0}, {2, 1}, {0, 2}, {1, 2}, {2, 2}};
        for (auto &p : at) grids[current][(y + p[1]) % height * width + (x + p[0]) % width] = 1;
    }
    void step() {
        dim3 block(16, 8), grid((width + 15) / 16, (height + 7) / 8);
        generation<16, 8><<<grid, block>>>(grids[current], grids[1 - current], width, height);
        getLastCudaError("generation");
        current ^= 1;
    }
    const cell *cells() const {
        checkCudaErrors(cudaDeviceSynchronize());
        return grids[current];
    }
    const int width, height;

private:
    cell *grids[2] = {nullptr, nullptr};
    int current = 0;
};

static std::vector<cell> stepOnHost(const std::vector<cell> &now, int w, int h)
{
    std::vector<cell> next(w * h);
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            int alive = 0;
            for (int d = 0; d < 9; d++)
                if (d != 4) alive += now[(y + d / 3 - 1 + h) % h * w + (x + d % 3 - 1 + w) % w];
            next[y * w + x] = alive == 3 || (alive == 2 && now[y * w + x]);
        }
    return next;
}

int main()
{
    Life life(40, 21);
    life.glider(3, 3);
    life.glider(30, 15);
    life.glider(38, 19);
    std::vector<cell> gold(life.cells(), life.cells() + 40 * 21);
    for (int i = 0; i < 30; i++) {
        life.step();
        gold = stepOnHost(gold, 40, 21);
    }
    const cell *cells = life.cells();
    int wrong = 0, alive = 0;
    for (int i = 0; i < 40 * 21; i++) {
        wrong += cells[i] != gold[i];
        alive += cells[i];
    }
    printf("after 30 generations %d cells live, %d are wrong\n", alive, wrong);
    return wrong != 0;
}
