// Shows: __CUDA_ARCH__, __CUDACC__ and __NVCC__ in headers that three kinds of code include.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include "portable.h"

#define CHECK(call) if (cudaError_t e = (call)) { std::printf("%s\n", cudaGetErrorString(e)); std::exit(1); }

#if !defined(__CUDACC__) || !defined(__NVCC__)
#error "this file is for nvcc"
#endif
#if defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ < 9
#error "needs CUDA 9"
#endif
#ifdef __CUDA_ARCH__
static_assert(__CUDA_ARCH__ >= 600, "the device pass");
#endif

// Before compute capability 6.0 there was none for doubles.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 600
#else
__device__ double atomicAdd(double *address, double value);
#endif

__global__ void ask(int *answers, float *roots, double *sum)
{
#ifdef __CUDA_ARCH__
    const int device = 1;
#else
    const int device = 0;
#endif
    int i = threadIdx.x;
    answers[i] = device * 1000 + (where() >= 6) * 100 + countBits(i);
    roots[i] = fastReciprocalRoot(i + 1.0f);
    atomicAdd(sum, 0.5);
}

int main()
{
    const int n = 64;
    int answers[n], *d_answers, wrong = 0;
    float roots[n], *d_roots;
    double sum = 0, *d_sum;
    CHECK(cudaMalloc(&d_answers, sizeof(answers)));
    CHECK(cudaMalloc(&d_roots, sizeof(roots)));
    CHECK(cudaMalloc(&d_sum, sizeof(sum)));
    CHECK(cudaMemset(d_sum, 0, sizeof(sum)));
    ask<<<1, n>>>(d_answers, d_roots, d_sum);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(answers, d_answers, sizeof(answers), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(roots, d_roots, sizeof(roots), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&sum, d_sum, sizeof(sum), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        wrong += answers[i] != 1100 + countBits(i);
        float d = roots[i] - fastReciprocalRoot(i + 1.0f);
        wrong += !(d < 1e-5f && d > -1e-5f);
    }
    std::printf("device code: %d wrong, sum %.1f\n", wrong, sum);
    std::printf("host code of nvcc: %d, %d\n", where(), COMPILED_BY_NVCC);
    std::printf("plain C++: %d\n", compiledByNvcc());
    wrong += where() != -1 || COMPILED_BY_NVCC != 1 || compiledByNvcc() != 410 || sum != 32;
    CHECK(cudaFree(d_answers));
    CHECK(cudaFree(d_roots));
    CHECK(cudaFree(d_sum));
    return wrong != 0;
}
