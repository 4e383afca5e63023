// cuBLAS on a stream that captures.
#include <cublas_v2.h>

#include "check.h"

#define OK(call) CHECK((call) == cudaSuccess)
#define BLAS(call) CHECK((call) == CUBLAS_STATUS_SUCCESS)

struct Captured {
  cudaStream_t stream;
  cublasHandle_t handle;

  Captured() {
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    BLAS(cublasCreate(&handle));
    BLAS(cublasSetStream(handle, stream));
  }
  ~Captured() {
    BLAS(cublasDestroy(handle));
    OK(cudaStreamDestroy(stream));
  }
  void begin() { OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal)); }
  void end_and_launch(int times) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    for (int i = 0; i < times; ++i) OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaGraphExecDestroy(exec));
  }
};

static std::vector<float> sequence(int count) {
  std::vector<float> values(count);
  for (int i = 0; i < count; ++i) values[i] = static_cast<float>(i % 7) - 3;
  return values;
}

CASE(a_product_is_captured_with_its_numbers) {
  Device<float> a(sequence(12)), b(sequence(20)), c(std::vector<float>(15, 1)),
      eager(std::vector<float>(15, 1));
  Captured all;
  float alpha = 2, beta = 0.5f;
  for (int i = 0; i < 2; ++i)
    BLAS(cublasSgemm(all.handle, CUBLAS_OP_N, CUBLAS_OP_N, 3, 5, 4, &alpha, a.data, 3, b.data, 4,
                     &beta, eager.data, 3));
  all.begin();
  BLAS(cublasSgemm(all.handle, CUBLAS_OP_N, CUBLAS_OP_N, 3, 5, 4, &alpha, a.data, 3, b.data, 4,
                   &beta, c.data, 3));
  alpha = beta = 100;
  CHECK(cublasSgemm(all.handle, CUBLAS_OP_N, CUBLAS_OP_N, -3, 5, 4, &alpha, a.data, 3, b.data, 4,
                    &beta, c.data, 3) == CUBLAS_STATUS_INVALID_VALUE);
  all.end_and_launch(2);
  CHECK(c.get() == eager.get());
}

CASE(vectors_and_results_on_the_device) {
  Device<float> x(std::vector<float>(10, 2)), y(std::vector<float>(10, 1)), result(1), factor(std::vector<float>(1, 3));
  Captured all;
  float alpha = 4;
  all.begin();
  BLAS(cublasSaxpy(all.handle, 10, &alpha, x.data, 1, y.data, 1));
  BLAS(cublasSetPointerMode(all.handle, CUBLAS_POINTER_MODE_DEVICE));
  BLAS(cublasSscal(all.handle, 10, factor.data, y.data, 1));
  BLAS(cublasSdot(all.handle, 10, x.data, 1, y.data, 1, result.data));
  BLAS(cublasSetPointerMode(all.handle, CUBLAS_POINTER_MODE_HOST));
  CHECK(cublasSetPointerMode(all.handle, CUBLAS_POINTER_MODE_HOST) == CUBLAS_STATUS_SUCCESS);
  all.end_and_launch(1);
  CHECK(y.get()[9] == 27 && result.get()[0] == 540);
}

CASE(batches_and_other_types) {
  Device<float> a(sequence(8)), b(sequence(8)), c(8), eager(8);
  Captured all;
  float alpha = 1, beta = 0;
  auto strided = [&](float* out) {
    BLAS(cublasSgemmStridedBatched(all.handle, CUBLAS_OP_N, CUBLAS_OP_T, 2, 2, 2, &alpha, a.data, 2,
                                   4, b.data, 2, 4, &beta, out, 2, 4, 2));
    BLAS(cublasGemmEx(all.handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &alpha, a.data, CUDA_R_32F, 2,
                      b.data, CUDA_R_32F, 2, &alpha, out, CUDA_R_32F, 2, CUBLAS_COMPUTE_32F,
                      CUBLAS_GEMM_DEFAULT));
  };
  strided(eager.data);
  all.begin();
  strided(c.data);
  alpha = 9;
  all.end_and_launch(1);
  CHECK(c.get() == eager.get());
}

CASE(a_result_on_the_host_cannot_be_captured) {
  Device<float> x(std::vector<float>(10, 2));
  Captured all;
  float result = -1;
  all.begin();
  CHECK(cublasSnrm2(all.handle, 10, x.data, 1, &result) != CUBLAS_STATUS_SUCCESS);
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(all.stream, &graph) != cudaSuccess && graph == nullptr);
  cudaGetLastError();
}
