// feature: products of matrices by cuBLAS: transposed, scaled, in strided batches
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

static void blas(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) std::printf("# cublas %d\n", status);
}

int main() {
  const int m = 5, n = 7, k = 6, batch = 3;
  std::vector<float> a(batch * m * k), b(batch * k * n), c(batch * m * n, 1);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 5) - 2;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 7) - 3;
  float *da, *db, *dc, two = 2, minus = -1, one = 1, zero = 0;
  check(cudaMalloc(&da, a.size() * sizeof(float)));
  check(cudaMalloc(&db, b.size() * sizeof(float)));
  check(cudaMalloc(&dc, c.size() * sizeof(float)));
  check(cudaMemcpy(da, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
  check(cudaMemcpy(db, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));
  check(cudaMemcpy(dc, c.data(), c.size() * sizeof(float), cudaMemcpyHostToDevice));
  cublasHandle_t handle;
  blas(cublasCreate(&handle));
  blas(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &two, da, m, db, k, &minus, dc, m));
  check(cudaMemcpy(c.data(), dc, m * n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < m * n; i += 3) std::printf("%.9g\n", c[i]);
  blas(cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_T, m, n, k, &one, da, k, db, n, &zero, dc, m));
  check(cudaMemcpy(c.data(), dc, m * n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < m * n; i += 3) std::printf("%.9g\n", c[i]);
  blas(cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, da, m, m * k, db,
                                 k, k * n, &zero, dc, m, m * n, batch));
  check(cudaMemcpy(c.data(), dc, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < batch * m * n; i += 8) std::printf("%.9g\n", c[i]);
  blas(cublasDestroy(handle));
  check(cudaFree(da));
  check(cudaFree(db));
  check(cudaFree(dc));
}
