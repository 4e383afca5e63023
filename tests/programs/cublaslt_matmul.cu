// Shows: a product by cublasLt, with a bias and a ReLU behind it.
// Links: cublasLt
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

inline void checkCublasStatus(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    printf("cuBLAS API failed with status %d\n", status);
    throw std::logic_error("cuBLAS API failed");
  }
}
inline void checkCudaStatus(cudaError_t status) {
  if (status != cudaSuccess) {
    printf("cuda API failed with status %d: %s\n", status, cudaGetErrorString(status));
    throw std::logic_error("cuda API failed");
  }
}

static void ltMatmul(cublasLtHandle_t handle, int m, int n, int k, const float *A, const float *B, float *C,
                     const float *bias, void *workspace, size_t workspaceSize) {
  cublasLtMatmulDesc_t operationDesc = nullptr;
  cublasLtMatrixLayout_t Adesc = nullptr, Bdesc = nullptr, Cdesc = nullptr;
  cublasOperation_t transa = CUBLAS_OP_T, transb = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  const float alpha = 1.0f, beta = 0.0f;
  checkCublasStatus(cublasLtMatmulDescCreate(&operationDesc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  checkCublasStatus(cublasLtMatmulDescSetAttribute(operationDesc, CUBLASLT_MATMUL_DESC_TRANSA, &transa, sizeof(transa)));
  checkCublasStatus(cublasLtMatmulDescSetAttribute(operationDesc, CUBLASLT_MATMUL_DESC_TRANSB, &transb, sizeof(transb)));
  checkCublasStatus(cublasLtMatmulDescSetAttribute(operationDesc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)));
  if (bias)
    checkCublasStatus(cublasLtMatmulDescSetAttribute(operationDesc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)));
  checkCublasStatus(cublasLtMatrixLayoutCreate(&Adesc, CUDA_R_32F, k, m, k));
  checkCublasStatus(cublasLtMatrixLayoutCreate(&Bdesc, CUDA_R_32F, k, n, k));
  checkCublasStatus(cublasLtMatrixLayoutCreate(&Cdesc, CUDA_R_32F, m, n, m));

  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t heuristic = {};
  int found = 0;
  checkCublasStatus(cublasLtMatmulPreferenceCreate(&preference));
  checkCublasStatus(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                         &workspaceSize, sizeof(workspaceSize)));
  checkCublasStatus(cublasLtMatmulAlgoGetHeuristic(handle, operationDesc, Adesc, Bdesc, Cdesc, Cdesc, preference, 1,
                                                   &heuristic, &found));
  if (found == 0) checkCublasStatus(CUBLAS_STATUS_NOT_SUPPORTED);
  checkCublasStatus(cublasLtMatmul(handle, operationDesc, &alpha, A, Adesc, B, Bdesc, &beta, C, Cdesc, C, Cdesc,
                                   &heuristic.algo, workspace, workspaceSize, 0));
  checkCublasStatus(cublasLtMatmulPreferenceDestroy(preference));
  checkCublasStatus(cublasLtMatrixLayoutDestroy(Cdesc));
  checkCublasStatus(cublasLtMatrixLayoutDestroy(Bdesc));
  checkCublasStatus(cublasLtMatrixLayoutDestroy(Adesc));
  checkCublasStatus(cublasLtMatmulDescDestroy(operationDesc));
}

int main() {
  const int m = 32, n = 16, k = 64;
  const size_t workspaceSize = 1 << 20;
  std::vector<float> A(m * k), B(k * n), C(m * n), bias(m);
  for (int i = 0; i < m * k; ++i) A[i] = float(i % 7 - 3);
  for (int i = 0; i < k * n; ++i) B[i] = float(i % 5 - 2);
  for (int i = 0; i < m; ++i) bias[i] = float(i - 16);
  float *dA, *dB, *dC, *dBias;
  void *workspace;
  checkCudaStatus(cudaMalloc(&dA, A.size() * sizeof(float)));
  checkCudaStatus(cudaMalloc(&dB, B.size() * sizeof(float)));
  checkCudaStatus(cudaMalloc(&dC, C.size() * sizeof(float)));
  checkCudaStatus(cudaMalloc(&dBias, bias.size() * sizeof(float)));
  checkCudaStatus(cudaMalloc(&workspace, workspaceSize));
  checkCudaStatus(cudaMemcpy(dA, A.data(), A.size() * sizeof(float), cudaMemcpyHostToDevice));
  checkCudaStatus(cudaMemcpy(dB, B.data(), B.size() * sizeof(float), cudaMemcpyHostToDevice));
  checkCudaStatus(cudaMemcpy(dBias, bias.data(), bias.size() * sizeof(float), cudaMemcpyHostToDevice));
  cublasLtHandle_t handle;
  checkCublasStatus(cublasLtCreate(&handle));
  int wrong = 0;
  for (int round = 0; round < 2; ++round) {
    ltMatmul(handle, m, n, k, dA, dB, dC, round ? dBias : nullptr, workspace, workspaceSize);
    checkCudaStatus(cudaDeviceSynchronize());
    checkCudaStatus(cudaMemcpy(C.data(), dC, C.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i) {
        float sum = 0;
        for (int l = 0; l < k; ++l) sum += A[i * k + l] * B[j * k + l];
        if (round) sum = sum + bias[i] > 0 ? sum + bias[i] : 0;
        wrong += C[j * m + i] != sum;
      }
    printf("%s: %d wrong\n", round ? "with bias and ReLU" : "plain", wrong);
  }
  checkCublasStatus(cublasLtDestroy(handle));
  checkCudaStatus(cudaFree(dA));
  checkCudaStatus(cudaFree(dB));
  checkCudaStatus(cudaFree(dC));
  checkCudaStatus(cudaFree(dBias));
  checkCudaStatus(cudaFree(workspace));
  return wrong != 0;
}
