// Products of matrices in one stream, and kernels on the same memory in another: by the first
// argument how the product is called, by the second what is wrong, or nothing.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <string>

static void check(bool good, const char* what) {
  if (!good) std::printf("# %s\n", what);
}
#define OK(call) check((call) == 0, #call)

const int kSize = 24, kLead = 40, kFloats = kLead * kSize;

__global__ void fill(float* x, int first, int rows) {
  int row = first + threadIdx.x;
  if (threadIdx.x < rows) x[blockIdx.x * kLead + row] = row;
}

struct Call {
  cublasHandle_t handle;
  cudaStream_t stream;
  const float *A, *B;
  float* C;
  const float one = 1, zero = 0;
  const long long step = kFloats;

  void sgemm() const {
    OK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, kSize, kSize, kSize, &one, A, kLead, B, kLead,
                   &zero, C, kLead));
  }
  void strided() const {
    OK(cublasSgemmStridedBatched(handle, CUBLAS_OP_T, CUBLAS_OP_N, kSize, kSize, kSize, &one, A,
                                 kLead, step, B, kLead, step, &zero, C, kLead, step, 1));
  }
  void batched() const {
    float* const all[3] = {const_cast<float*>(A), const_cast<float*>(B), C};
    float** there;
    OK(cudaMalloc(&there, sizeof all));
    OK(cudaMemcpy(there, all, sizeof all, cudaMemcpyHostToDevice));
    OK(cublasSgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, kSize, kSize, kSize, &one, there, kLead,
                          there + 1, kLead, &zero, there + 2, kLead, 1));
  }
  void gemm_ex() const {
    OK(cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_T, kSize, kSize, kSize, &one, A, CUDA_R_32F,
                    kLead, B, CUDA_R_32F, kLead, &zero, C, CUDA_R_32F, kLead, CUBLAS_COMPUTE_32F,
                    CUBLAS_GEMM_DEFAULT));
  }
  void lt() const {
    cublasLtHandle_t own;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t layout;
    OK(cublasLtCreate(&own));
    OK(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    OK(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, kSize, kSize, kLead));
    OK(cublasLtMatmul(own, desc, &one, A, layout, B, layout, &zero, C, layout, C, layout, nullptr,
                      nullptr, 0, stream));
    OK(cublasLtMatrixLayoutDestroy(layout));
    OK(cublasLtMatmulDescDestroy(desc));
    OK(cublasLtDestroy(own));
  }
  void run(const std::string& how) const {
    if (how == "sgemm") return sgemm();
    if (how == "strided") return strided();
    if (how == "batched") return batched();
    if (how == "gemm_ex") return gemm_ex();
    lt();
  }
};

int main(int, char** argv) {
  const std::string how = argv[1], wrong = argv[2];
  float* data[3];
  for (float*& each : data) {
    OK(cudaMalloc(&each, kFloats * sizeof(float)));
    OK(cudaMemset(each, 0, kFloats * sizeof(float)));
  }
  OK(cudaDeviceSynchronize());
  cudaStream_t mine, other;
  cudaEvent_t event;
  OK(cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking));
  OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  OK(cudaEventCreate(&event));
  cublasHandle_t handle;
  OK(cublasCreate(&handle));
  OK(cublasSetStream(handle, mine));
  const Call call{handle, mine, data[0], data[1], data[2]};
  auto wait = [&](cudaStream_t from, cudaStream_t to, const char* unless) {
    if (wrong == unless) return;
    OK(cudaEventRecord(event, from));
    OK(cudaStreamWaitEvent(to, event, 0));
  };
  // The rows behind those of C are nobody's but the kernel's.
  fill<<<kSize, kLead, 0, other>>>(data[2], kSize, kLead - kSize);
  fill<<<kSize, kLead, 0, other>>>(data[0], 0, kSize);
  wait(other, mine, "A is written meanwhile");
  call.run(how);
  fill<<<kSize, kLead, 0, other>>>(data[2], kSize, kLead - kSize);
  wait(mine, other, "C is written meanwhile");
  fill<<<kSize, kLead, 0, other>>>(data[2], 0, kSize);
  if (wrong != "C is written meanwhile") fill<<<kSize, kLead, 0, other>>>(data[1], 0, kSize);
  OK(cudaDeviceSynchronize());
}
