// Shows: many small products at once: by strides, and by a table of pointers on the device.
#include <cuda_runtime.h>
#include <cublas_v2.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(err)                                                     \
  do {                                                                      \
    cudaError_t err_ = (err);                                               \
    if (err_ != cudaSuccess) {                                              \
      std::printf("CUDA error %d at %s:%d\n", err_, __FILE__, __LINE__);    \
      std::exit(2);                                                         \
    }                                                                       \
  } while (0)
#define CUBLAS_CHECK(err)                                                   \
  do {                                                                      \
    cublasStatus_t err_ = (err);                                            \
    if (err_ != CUBLAS_STATUS_SUCCESS) {                                    \
      std::printf("cublas error %d at %s:%d\n", err_, __FILE__, __LINE__);  \
      std::exit(3);                                                         \
    }                                                                       \
  } while (0)

static const int m = 6, n = 5, k = 7, batch = 9;

static int errors(const std::vector<float>& A, const std::vector<float>& B, const std::vector<float>& C) {
  int wrong = 0;
  for (int p = 0; p < batch; ++p)
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i) {
        float sum = 0;
        for (int l = 0; l < k; ++l) sum += A[p * m * k + i + l * m] * B[p * k * n + l + j * k];
        if (C[p * m * n + i + j * m] != sum) ++wrong;
      }
  return wrong;
}

int main() {
  std::vector<float> A(batch * m * k), B(batch * k * n), C(batch * m * n);
  for (size_t i = 0; i < A.size(); ++i) A[i] = float(i % 11) - 5;
  for (size_t i = 0; i < B.size(); ++i) B[i] = float(i % 8) - 3;
  float *d_A, *d_B, *d_C;
  CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&d_A), sizeof(float) * A.size()));
  CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&d_B), sizeof(float) * B.size()));
  CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&d_C), sizeof(float) * C.size()));

  cublasHandle_t handle = nullptr;
  cudaStream_t stream = nullptr;
  CUBLAS_CHECK(cublasCreate(&handle));
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUBLAS_CHECK(cublasSetStream(handle, stream));
  CUDA_CHECK(cudaMemcpyAsync(d_A, A.data(), sizeof(float) * A.size(), cudaMemcpyHostToDevice, stream));
  CUDA_CHECK(cudaMemcpyAsync(d_B, B.data(), sizeof(float) * B.size(), cudaMemcpyHostToDevice, stream));

  const float alpha = 1.0f, beta = 0.0f;
  CUBLAS_CHECK(cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, d_A, m,
                                         m * k, d_B, k, k * n, &beta, d_C, m, m * n, batch));
  CUDA_CHECK(cudaMemcpyAsync(C.data(), d_C, sizeof(float) * C.size(), cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  int strided = errors(A, B, C);
  std::printf("strided batched: %d errors\n", strided);

  // The same in reverse order, by pointers.
  std::vector<float*> pA(batch), pB(batch), pC(batch);
  for (int p = 0; p < batch; ++p) {
    pA[p] = d_A + (batch - 1 - p) * m * k;
    pB[p] = d_B + (batch - 1 - p) * k * n;
    pC[p] = d_C + (batch - 1 - p) * m * n;
  }
  float **d_pA, **d_pB, **d_pC;
  CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&d_pA), sizeof(float*) * batch));
  CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&d_pB), sizeof(float*) * batch));
  CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&d_pC), sizeof(float*) * batch));
  CUDA_CHECK(cudaMemcpyAsync(d_pA, pA.data(), sizeof(float*) * batch, cudaMemcpyHostToDevice, stream));
  CUDA_CHECK(cudaMemcpyAsync(d_pB, pB.data(), sizeof(float*) * batch, cudaMemcpyHostToDevice, stream));
  CUDA_CHECK(cudaMemcpyAsync(d_pC, pC.data(), sizeof(float*) * batch, cudaMemcpyHostToDevice, stream));
  CUDA_CHECK(cudaMemsetAsync(d_C, 0, sizeof(float) * C.size(), stream));
  CUBLAS_CHECK(cublasSgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, d_pA, m, d_pB, k,
                                  &beta, d_pC, m, batch));
  CUDA_CHECK(cudaMemcpyAsync(C.data(), d_C, sizeof(float) * C.size(), cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  int pointers = errors(A, B, C);
  std::printf("batched by pointers: %d errors\n", pointers);

  CUBLAS_CHECK(cublasDestroy(handle));
  CUDA_CHECK(cudaStreamDestroy(stream));
  CUDA_CHECK(cudaFree(d_A));
  CUDA_CHECK(cudaFree(d_B));
  CUDA_CHECK(cudaFree(d_C));
  CUDA_CHECK(cudaFree(d_pA));
  CUDA_CHECK(cudaFree(d_pB));
  CUDA_CHECK(cudaFree(d_pC));
  return strided + pointers == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
