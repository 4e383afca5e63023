// Shows: cublasGemmEx with half precision in and single precision out.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cublas_v2.h>

#define cudaErrCheck(stat) { cudaErrCheck_((stat), __FILE__, __LINE__); }
void cudaErrCheck_(cudaError_t stat, const char *file, int line) {
   if (stat != cudaSuccess) {
      fprintf(stderr, "CUDA Error: %s %s %d\n", cudaGetErrorString(stat), file, line);
      exit(1);
   }
}

#define cublasErrCheck(stat) { cublasErrCheck_((stat), __FILE__, __LINE__); }
void cublasErrCheck_(cublasStatus_t stat, const char *file, int line) {
   if (stat != CUBLAS_STATUS_SUCCESS) {
      fprintf(stderr, "cuBLAS Error: %d %s %d\n", stat, file, line);
      exit(1);
   }
}

__global__ void convertFp32ToFp16(half *out, const float *in, int n) {
   int idx = blockDim.x * blockIdx.x + threadIdx.x;
   if (idx < n) {
      out[idx] = __float2half(in[idx]);
   }
}

int main() {
   const int m = 32, n = 48, k = 40;
   std::vector<float> a(m * k), b(k * n), c(m * n, 1.0f), result(m * n);
   // Small whole numbers and quarters are exact in half precision, and so are all sums.
   for (int i = 0; i < m * k; i++) a[i] = (i % 9 - 4) * 0.25f;
   for (int i = 0; i < k * n; i++) b[i] = (float)(i % 5 - 2);

   float *a_fp32, *b_fp32, *c_dev;
   half *a_fp16, *b_fp16;
   cudaErrCheck(cudaMalloc((void**)&a_fp32, m * k * sizeof(float)));
   cudaErrCheck(cudaMalloc((void**)&b_fp32, k * n * sizeof(float)));
   cudaErrCheck(cudaMalloc((void**)&c_dev, m * n * sizeof(float)));
   cudaErrCheck(cudaMalloc((void**)&a_fp16, m * k * sizeof(half)));
   cudaErrCheck(cudaMalloc((void**)&b_fp16, k * n * sizeof(half)));
   cudaErrCheck(cudaMemcpy(a_fp32, a.data(), m * k * sizeof(float), cudaMemcpyHostToDevice));
   cudaErrCheck(cudaMemcpy(b_fp32, b.data(), k * n * sizeof(float), cudaMemcpyHostToDevice));
   cudaErrCheck(cudaMemcpy(c_dev, c.data(), m * n * sizeof(float), cudaMemcpyHostToDevice));
   convertFp32ToFp16 <<< (m * k + 255) / 256, 256 >>> (a_fp16, a_fp32, m * k);
   convertFp32ToFp16 <<< (k * n + 255) / 256, 256 >>> (b_fp16, b_fp32, k * n);
   cudaErrCheck(cudaGetLastError());

   cublasHandle_t handle;
   cublasErrCheck(cublasCreate(&handle));
   cublasErrCheck(cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH));
   float alpha = 2.0f, beta = 0.5f;
   cublasErrCheck(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha,
                               a_fp16, CUDA_R_16F, m, b_fp16, CUDA_R_16F, k, &beta,
                               c_dev, CUDA_R_32F, m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
   cudaErrCheck(cudaMemcpy(result.data(), c_dev, m * n * sizeof(float), cudaMemcpyDeviceToHost));

   int errors = 0;
   for (int j = 0; j < n; j++)
      for (int i = 0; i < m; i++) {
         float sum = 0;
         for (int l = 0; l < k; l++) sum += a[l * m + i] * b[j * k + l];
         if (result[j * m + i] != alpha * sum + beta) errors++;
      }
   printf("GemmEx: %d errors, corner %.2f\n", errors, result[0]);

   cublasErrCheck(cublasDestroy(handle));
   cudaErrCheck(cudaFree(a_fp32));
   cudaErrCheck(cudaFree(b_fp32));
   cudaErrCheck(cudaFree(c_dev));
   cudaErrCheck(cudaFree(a_fp16));
   cudaErrCheck(cudaFree(b_fp16));
   return errors != 0;
}
