// bug: the leading dimension of a matrix is larger than its columns are
// finds: out-of-bounds read global
// line: MARK
// sanitizer: memcheck
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

int main() {
  const int n = 32;
#ifdef FIXED
  const int lda = n;
#else
  const int lda = 2 * n;
#endif
  std::vector<float> ones(n * n, 1);
  float *a, *b, *c, one = 1, zero = 0;
  check(cudaMalloc(&a, n * n * sizeof(float)));
  check(cudaMalloc(&b, n * n * sizeof(float)));
  check(cudaMalloc(&c, n * n * sizeof(float)));
  check(cudaMemcpy(a, ones.data(), n * n * sizeof(float), cudaMemcpyHostToDevice));
  check(cudaMemcpy(b, ones.data(), n * n * sizeof(float), cudaMemcpyHostToDevice));
  check(cudaMemset(c, 0, n * n * sizeof(float)));
  cublasHandle_t handle;
  std::printf("%d\n", cublasCreate(&handle));
  cublasStatus_t status = cublasSgemm(  // <- bug
      handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, lda, b, n, &zero, c, n);
  std::printf("# gemm %d\n", status);
  check(cudaMemcpy(ones.data(), c, n * n * sizeof(float), cudaMemcpyDeviceToHost));
#ifdef FIXED
  std::printf("%.9g %.9g\n", ones[0], ones[n * n - 1]);
#endif
  std::printf("# destroy %d\n", cublasDestroy(handle));
  check(cudaFree(a));
  check(cudaFree(b));
  check(cudaFree(c));
}
