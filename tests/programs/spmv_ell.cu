// Shows: a sparse matrix times a vector, ELL padded by columns, and its rest as COO by atomics.
#include <stdio.h>
#include <stdlib.h>
#include <vector>
#include <cuda_runtime.h>

#define WIDTH 4
#define CUDA_CHECK(x) if ((x) != cudaSuccess) { printf("failed: %s\n", #x); return 1; }

struct Ell { int num_rows; int *col; float *val; };
struct Coo { int n; int *row; int *col; float *val; };

__global__ void SpMV_ELL(Ell m, const float *x, float *y)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m.num_rows) {
        float dot = 0;
        for (int i = 0; i < WIDTH; i++) {
            int at = row + i * m.num_rows;
            if (m.col[at] >= 0) dot += m.val[at] * x[m.col[at]];
        }
        y[row] = dot;
    }
}

__global__ void SpMV_COO(Coo m, const float *x, float *y)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < m.n; i += gridDim.x * blockDim.x)
        atomicAdd(&y[m.row[i]], m.val[i] * x[m.col[i]]);
}

int main()
{
    const int n = 500;
    std::vector<int> ellCol(WIDTH * n, -1), cooRow, cooCol;
    std::vector<float> ellVal(WIDTH * n, 0.f), cooVal, x(n), y(n), gold(n, 0.f);
    for (int i = 0; i < n; i++) x[i] = (float)(i % 9 - 4);
    for (int r = 0; r < n; r++) {
        int count = 1 + (r * 5) % 7; // up to 7 entries, 4 of them in ELL
        for (int k = 0; k < count; k++) {
            int c = (r * 31 + k * 61) % n;
            float v = (float)((r + k) % 5 + 1);
            gold[r] += v * x[c];
            if (k < WIDTH) {
                ellCol[k * n + r] = c;
                ellVal[k * n + r] = v;
            } else {
                cooRow.push_back(r);
                cooCol.push_back(c);
                cooVal.push_back(v);
            }
        }
    }
    Ell ell = {n, NULL, NULL};
    Coo coo = {(int)cooRow.size(), NULL, NULL, NULL};
    float *d_x, *d_y;
    CUDA_CHECK(cudaMalloc(&ell.col, ellCol.size() * sizeof(int)));
    CUDA_CHECK(cudaMalloc(&ell.val, ellVal.size() * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&coo.row, coo.n * sizeof(int)));
    CUDA_CHECK(cudaMalloc(&coo.col, coo.n * sizeof(int)));
    CUDA_CHECK(cudaMalloc(&coo.val, coo.n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_x, n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_y, n * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(ell.col, ellCol.data(), ellCol.size() * sizeof(int), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(ell.val, ellVal.data(), ellVal.size() * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(coo.row, cooRow.data(), coo.n * sizeof(int), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(coo.col, cooCol.data(), coo.n * sizeof(int), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(coo.val, cooVal.data(), coo.n * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    SpMV_ELL<<<(n + 63) / 64, 64>>>(ell, d_x, d_y);
    SpMV_COO<<<3, 64>>>(coo, d_x, d_y);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(y.data(), d_y, n * sizeof(float), cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += y[i] != gold[i];
    printf("%d rows, %d entries in COO, %d wrong\n", n, coo.n, wrong);
    CUDA_CHECK(cudaFree(ell.col));
    CUDA_CHECK(cudaFree(ell.val));
    CUDA_CHECK(cudaFree(coo.row));
    CUDA_CHECK(cudaFree(coo.col));
    CUDA_CHECK(cudaFree(coo.val));
    CUDA_CHECK(cudaFree(d_x));
    CUDA_CHECK(cudaFree(d_y));
    return wrong != 0;
}
