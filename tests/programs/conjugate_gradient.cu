// Shows: conjugate gradients: a sparse product of one's own, vectors by cuBLAS.
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <vector>
#include <cuda_runtime.h>
#include <cublas_v2.h>
#include "headers/error_check.h"

#define BLAS(call) checkResult((call), #call, __FILE__, __LINE__)

// The Laplacian in one dimension plus one: 3 on the diagonal, -1 beside it.
__global__ void tridiagonal(const double *x, double *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double sum = 3.0 * x[i];
    if (i > 0) sum -= x[i - 1];
    if (i < n - 1) sum -= x[i + 1];
    y[i] = sum;
}

int main()
{
    const int n = 600, max_iter = 100;
    const double tol = 1e-10;
    std::vector<double> b(n), x(n, 0.0), solution(n);
    for (int i = 0; i < n; i++) solution[i] = sin(0.05 * i) + 1;
    for (int i = 0; i < n; i++)
        b[i] = 3 * solution[i] - (i > 0 ? solution[i - 1] : 0) - (i < n - 1 ? solution[i + 1] : 0);

    double *d_x, *d_r, *d_p, *d_Ap;
    checkCudaErrors(cudaMalloc(&d_x, n * sizeof(double)));
    checkCudaErrors(cudaMalloc(&d_r, n * sizeof(double)));
    checkCudaErrors(cudaMalloc(&d_p, n * sizeof(double)));
    checkCudaErrors(cudaMalloc(&d_Ap, n * sizeof(double)));
    cublasHandle_t cublasHandle = 0;
    BLAS(cublasCreate(&cublasHandle));
    BLAS(cublasSetPointerMode(cublasHandle, CUBLAS_POINTER_MODE_HOST));
    checkCudaErrors(cudaMemcpy(d_x, x.data(), n * sizeof(double), cudaMemcpyHostToDevice));
    checkCudaErrors(cudaMemcpy(d_r, b.data(), n * sizeof(double), cudaMemcpyHostToDevice));
    BLAS(cublasDcopy(cublasHandle, n, d_r, 1, d_p, 1));
    double r1 = 0;
    BLAS(cublasDdot(cublasHandle, n, d_r, 1, d_r, 1, &r1));

    int k = 0;
    while (r1 > tol * tol && k < max_iter) {
        tridiagonal<<<(n + 127) / 128, 128>>>(d_p, d_Ap, n);
        getLastCudaError("tridiagonal");
        double dot = 0, r0 = r1;
        BLAS(cublasDdot(cublasHandle, n, d_p, 1, d_Ap, 1, &dot));
        double a = r1 / dot, na = -a, one = 1.0;
        BLAS(cublasDaxpy(cublasHandle, n, &a, d_p, 1, d_x, 1));
        BLAS(cublasDaxpy(cublasHandle, n, &na, d_Ap, 1, d_r, 1));
        BLAS(cublasDdot(cublasHandle, n, d_r, 1, d_r, 1, &r1));
        double beta = r1 / r0;
        BLAS(cublasDscal(cublasHandle, n, &beta, d_p, 1));
        BLAS(cublasDaxpy(cublasHandle, n, &one, d_r, 1, d_p, 1));
        k++;
    }
    double norm = 0;
    int largest = 0;
    BLAS(cublasDnrm2(cublasHandle, n, d_x, 1, &norm));
    BLAS(cublasIdamax(cublasHandle, n, d_x, 1, &largest));
    checkCudaErrors(cudaMemcpy(x.data(), d_x, n * sizeof(double), cudaMemcpyDeviceToHost));
    double err = 0, sum = 0;
    for (int i = 0; i < n; i++) {
        err = fmax(err, fabs(x[i] - solution[i]));
        sum += solution[i] * solution[i];
    }
    bool good = k < max_iter && err < 1e-8 && fabs(norm - sqrt(sum)) < 1e-6;
    printf("conjugate gradients: %s, the largest is element %d\n", good ? "converged" : "WRONG", largest);
    BLAS(cublasDestroy(cublasHandle));
    for (double *p : {d_x, d_r, d_p, d_Ap}) checkCudaErrors(cudaFree(p));
    return !good;
}
