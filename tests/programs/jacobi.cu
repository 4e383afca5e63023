// Shows: Jacobi's method for a system of equations, until the error of a step is small.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#define CUDA_RT_CALL(call)                                                                       \
    {                                                                                            \
        cudaError_t cudaStatus = call;                                                           \
        if (cudaSuccess != cudaStatus) {                                                         \
            fprintf(stderr, "ERROR: CUDA RT call \"%s\" in line %d of file %s failed with %s (%d).\n", \
                    #call, __LINE__, __FILE__, cudaGetErrorString(cudaStatus), cudaStatus);      \
            exit(cudaStatus);                                                                    \
        }                                                                                        \
    }

// One row a block: x_new[row] = (b[row] - sum of the others) / diagonal.
__global__ void jacobiStep(const double *__restrict__ A, const double *__restrict__ b,
                           const double *__restrict__ x, double *__restrict__ x_new, double *change, int n)
{
    __shared__ double partial[64];
    const int row = blockIdx.x;
    double sum = 0.0;
    for (int j = threadIdx.x; j < n; j += blockDim.x)
        if (j != row) sum += A[row * n + j] * x[j];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        double value = (b[row] - partial[0]) / A[row * n + row];
        change[row] = fabs(value - x[row]);
        x_new[row] = value;
    }
}

__global__ void largest(const double *values, double *result, int n)
{
    __shared__ double s[128];
    double m = 0;
    for (int i = threadIdx.x; i < n; i += 128) m = fmax(m, values[i]);
    s[threadIdx.x] = m;
    __syncthreads();
    for (int half = 64; half >= 1; half >>= 1) {
        if (threadIdx.x < half) s[threadIdx.x] = fmax(s[threadIdx.x], s[threadIdx.x + half]);
        __syncthreads();
    }
    if (threadIdx.x == 0) *result = s[0];
}

int main()
{
    const int n = 96;
    std::vector<double> A(n * n), b(n, 0.0), x(n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            A[i * n + j] = i == j ? 2.0 * n : 1.0 / (1 + (i + j) % 5);
            b[i] += A[i * n + j] * (j % 4 + 1); // the solution is 1, 2, 3, 4, 1, ...
        }
    double *d_A, *d_b, *d_x, *d_x_new, *d_change, *d_norm;
    CUDA_RT_CALL(cudaMalloc(&d_A, n * n * sizeof(double)));
    CUDA_RT_CALL(cudaMalloc(&d_b, n * sizeof(double)));
    CUDA_RT_CALL(cudaMalloc(&d_x, n * sizeof(double)));
    CUDA_RT_CALL(cudaMalloc(&d_x_new, n * sizeof(double)));
    CUDA_RT_CALL(cudaMalloc(&d_change, n * sizeof(double)));
    CUDA_RT_CALL(cudaMalloc(&d_norm, sizeof(double)));
    CUDA_RT_CALL(cudaMemcpy(d_A, A.data(), n * n * sizeof(double), cudaMemcpyHostToDevice));
    CUDA_RT_CALL(cudaMemcpy(d_b, b.data(), n * sizeof(double), cudaMemcpyHostToDevice));
    CUDA_RT_CALL(cudaMemset(d_x, 0, n * sizeof(double)));

    double norm = 1;
    int iter = 0;
    while (norm > 1e-12 && iter < 200) {
        jacobiStep<<<n, 64>>>(d_A, d_b, d_x, d_x_new, d_change, n);
        CUDA_RT_CALL(cudaGetLastError());
        largest<<<1, 128>>>(d_change, d_norm, n);
        CUDA_RT_CALL(cudaGetLastError());
        CUDA_RT_CALL(cudaMemcpy(&norm, d_norm, sizeof(double), cudaMemcpyDeviceToHost));
        std::swap(d_x, d_x_new);
        iter++;
    }
    CUDA_RT_CALL(cudaMemcpy(x.data(), d_x, n * sizeof(double), cudaMemcpyDeviceToHost));
    double error = 0;
    for (int i = 0; i < n; i++) error = std::fmax(error, std::fabs(x[i] - (i % 4 + 1)));
    bool good = norm <= 1e-12 && error < 1e-10;
    printf("Jacobi: %s, %s\n", norm <= 1e-12 ? "converged" : "did not converge", good ? "right" : "wrong");
    for (double *p : {d_A, d_b, d_x, d_x_new, d_change, d_norm}) CUDA_RT_CALL(cudaFree(p));
    return !good;
}
