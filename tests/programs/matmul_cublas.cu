// Shows: products of matrices by cuBLAS, in row-major order, against a kernel and the CPU.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>
#include <cublas_v2.h>

#include "headers/error_check.h"

#define CUBLAS_CHECK(call) checkResult((call), #call, __FILE__, __LINE__)

__global__ void matmul(const float *a, const float *b, float *c, int M, int N, int K)
{
    int m = blockIdx.y * blockDim.y + threadIdx.y, n = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= M || n >= N) return;
    float sum = 0;
    for (int k = 0; k < K; ++k) sum += a[m * K + k] * b[k * N + n];
    c[m * N + n] = sum;
}

template <typename T>
static double worst(const std::vector<T> &a, const std::vector<T> &b, const std::vector<T> &c, int M, int N, int K)
{
    double most = 0;
    for (int m = 0; m < M; ++m)
        for (int n = 0; n < N; ++n) {
            double sum = 0;
            for (int k = 0; k < K; ++k) sum += (double)a[m * K + k] * b[k * N + n];
            most = std::fmax(most, std::fabs(sum - c[m * N + n]));
        }
    return most;
}

int main()
{
    const int M = 48, N = 33, K = 70;
    std::vector<float> a(M * K), b(K * N), c(M * N);
    for (int i = 0; i < M * K; ++i) a[i] = (i * 37 % 101) / 101.0f;
    for (int i = 0; i < K * N; ++i) b[i] = (i * 53 % 97) / 97.0f - 0.5f;

    float *da, *db, *dc;
    checkCudaErrors(cudaMalloc((void **)&da, sizeof(float) * M * K));
    checkCudaErrors(cudaMalloc((void **)&db, sizeof(float) * K * N));
    checkCudaErrors(cudaMalloc((void **)&dc, sizeof(float) * M * N));
    cublasHandle_t handle;
    CUBLAS_CHECK(cublasCreate(&handle));
    CUBLAS_CHECK(cublasSetMatrix(K, M, sizeof(float), a.data(), K, da, K));
    CUBLAS_CHECK(cublasSetMatrix(N, K, sizeof(float), b.data(), N, db, N));

    // cuBLAS counts by columns: compute the transposed product.
    const float alpha = 1.0f, beta = 0.0f;
    CUBLAS_CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, M, K, &alpha, db, N, da, K, &beta, dc, N));
    CUBLAS_CHECK(cublasGetMatrix(N, M, sizeof(float), dc, N, c.data(), N));
    bool first = worst(a, b, c, M, N, K) < 1e-4;
    printf("cublasSgemm: %s\n", first ? "ok" : "wrong");

    matmul<<<dim3((N + 15) / 16, (M + 15) / 16), dim3(16, 16)>>>(da, db, dc, M, N, K);
    getLastCudaError("matmul");
    checkCudaErrors(cudaMemcpy(c.data(), dc, sizeof(float) * M * N, cudaMemcpyDeviceToHost));
    bool second = worst(a, b, c, M, N, K) < 1e-4;
    printf("own kernel: %s\n", second ? "ok" : "wrong");

    // In double precision, with both transposed: c' = (a b)' = b' a'.
    std::vector<double> a2(a.begin(), a.end()), b2(b.begin(), b.end()), c2(M * N), byColumns(M * N);
    double *da2, *db2, *dc2;
    checkCudaErrors(cudaMalloc((void **)&da2, sizeof(double) * M * K));
    checkCudaErrors(cudaMalloc((void **)&db2, sizeof(double) * K * N));
    checkCudaErrors(cudaMalloc((void **)&dc2, sizeof(double) * M * N));
    CUBLAS_CHECK(cublasSetVector(M * K, sizeof(double), a2.data(), 1, da2, 1));
    CUBLAS_CHECK(cublasSetVector(K * N, sizeof(double), b2.data(), 1, db2, 1));
    const double one = 1.0, zero = 0.0;
    CUBLAS_CHECK(cublasDgemm(handle, CUBLAS_OP_T, CUBLAS_OP_T, M, N, K, &one, da2, K, db2, N, &zero, dc2, M));
    CUBLAS_CHECK(cublasGetVector(M * N, sizeof(double), dc2, 1, byColumns.data(), 1));
    for (int m = 0; m < M; ++m)
        for (int n = 0; n < N; ++n) c2[m * N + n] = byColumns[n * M + m];
    bool third = worst(a2, b2, c2, M, N, K) < 1e-12;
    printf("cublasDgemm: %s\n", third ? "ok" : "wrong");

    CUBLAS_CHECK(cublasDestroy(handle));
    for (void *p : {(void *)da, (void *)db, (void *)dc, (void *)da2, (void *)db2, (void *)dc2})
        checkCudaErrors(cudaFree(p));
    return first && second && third ? 0 : 1;
}
