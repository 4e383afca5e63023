// Shows: layer norm forward and backward, warps and cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

namespace cg = cooperative_groups;

#define cudaCheck(err) (cuda_check(err, __FILE__, __LINE__))
void cuda_check(cudaError_t error, const char *file, int line) {
  if (error != cudaSuccess) {
    printf("[CUDA ERROR] at file %s:%d:\n%s\n", file, line, cudaGetErrorString(error));
    exit(EXIT_FAILURE);
  }
}
#define CEIL_DIV(M, N) (((M) + (N)-1) / (N))

__global__ void layernorm_forward(float *__restrict__ out, float *__restrict__ mean, float *__restrict__ rstd,
                                  const float *__restrict__ inp, const float *__restrict__ weight,
                                  const float *__restrict__ bias, int N, int C) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  int idx = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  if (idx >= N) return;
  const float *x = inp + idx * C;
  float sum = 0.0f;
  for (int i = warp.thread_rank(); i < C; i += warp.size()) sum += x[i];
  sum = cg::reduce(warp, sum, cg::plus<float>{});
  float m = sum / C;
  if (warp.thread_rank() == 0 && mean != nullptr) mean[idx] = m;
  sum = 0.0f;
  for (int i = warp.thread_rank(); i < C; i += warp.size()) {
    float diff = x[i] - m;
    sum += diff * diff;
  }
  sum = cg::reduce(warp, sum, cg::plus<float>{});
  float s = rsqrtf(sum / C + 1e-5f);
  if (warp.thread_rank() == 0 && rstd != nullptr) rstd[idx] = s;
  float *o = out + idx * C;
  for (int c = warp.thread_rank(); c < C; c += warp.size()) o[c] = s * (x[c] - m) * weight[c] + bias[c];
}

// One block for all rows; a thread a column sums up for weight and bias.
__global__ void layernorm_backward_params(float *dweight, float *dbias, const float *dout, const float *inp,
                                          const float *mean, const float *rstd, int N, int C) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= C) return;
  float dw = 0, db = 0;
  for (int n = 0; n < N; n++) {
    float norm = (inp[n * C + c] - mean[n]) * rstd[n];
    dw += norm * dout[n * C + c];
    db += dout[n * C + c];
  }
  dweight[c] = dw;
  dbias[c] = db;
}

int main() {
  const int N = 45, C = 77;
  float *x = new float[N * C], *w = new float[C], *b = new float[C], *dout = new float[N * C];
  for (int i = 0; i < N * C; i++) x[i] = sinf(i * 0.7f) * 3 + 1, dout[i] = cosf(i * 1.3f);
  for (int c = 0; c < C; c++) w[c] = 1 + c * 0.01f, b[c] = -c * 0.02f;
  float *d_x, *d_w, *d_b, *d_out, *d_mean, *d_rstd, *d_dout, *d_dw, *d_db;
  cudaCheck(cudaMalloc(&d_x, N * C * sizeof(float)));
  cudaCheck(cudaMalloc(&d_out, N * C * sizeof(float)));
  cudaCheck(cudaMalloc(&d_dout, N * C * sizeof(float)));
  cudaCheck(cudaMalloc(&d_w, C * sizeof(float)));
  cudaCheck(cudaMalloc(&d_b, C * sizeof(float)));
  cudaCheck(cudaMalloc(&d_dw, C * sizeof(float)));
  cudaCheck(cudaMalloc(&d_db, C * sizeof(float)));
  cudaCheck(cudaMalloc(&d_mean, N * sizeof(float)));
  cudaCheck(cudaMalloc(&d_rstd, N * sizeof(float)));
  cudaCheck(cudaMemcpy(d_x, x, N * C * sizeof(float), cudaMemcpyHostToDevice));
  cudaCheck(cudaMemcpy(d_dout, dout, N * C * sizeof(float), cudaMemcpyHostToDevice));
  cudaCheck(cudaMemcpy(d_w, w, C * sizeof(float), cudaMemcpyHostToDevice));
  cudaCheck(cudaMemcpy(d_b, b, C * sizeof(float), cudaMemcpyHostToDevice));

  const int block_size = 128;
  layernorm_forward<<<CEIL_DIV(N * 32, block_size), block_size>>>(d_out, d_mean, d_rstd, d_x, d_w, d_b, N, C);
  cudaCheck(cudaGetLastError());
  layernorm_backward_params<<<CEIL_DIV(C, block_size), block_size>>>(d_dw, d_db, d_dout, d_x, d_mean, d_rstd, N, C);
  cudaCheck(cudaGetLastError());
  float *out = new float[N * C], *dw = new float[C], *db = new float[C];
  cudaCheck(cudaMemcpy(out, d_out, N * C * sizeof(float), cudaMemcpyDeviceToHost));
  cudaCheck(cudaMemcpy(dw, d_dw, C * sizeof(float), cudaMemcpyDeviceToHost));
  cudaCheck(cudaMemcpy(db, d_db, C * sizeof(float), cudaMemcpyDeviceToHost));

  double worst = 0;
  double *gw = new double[C](), *gb = new double[C]();
  for (int n = 0; n < N; n++) {
    double m = 0, v = 0;
    for (int c = 0; c < C; c++) m += x[n * C + c] / (double)C;
    for (int c = 0; c < C; c++) v += (x[n * C + c] - m) * (x[n * C + c] - m) / C;
    for (int c = 0; c < C; c++) {
      double norm = (x[n * C + c] - m) / sqrt(v + 1e-5);
      worst = fmax(worst, fabs(norm * w[c] + b[c] - out[n * C + c]));
      gw[c] += norm * dout[n * C + c];
      gb[c] += dout[n * C + c];
    }
  }
  for (int c = 0; c < C; c++) worst = fmax(worst, fmax(fabs(gw[c] - dw[c]), fabs(gb[c] - db[c])));
  printf("layer norm: %s\n", worst < 1e-4 ? "all results match" : "MISMATCH");
  for (float *p : {d_x, d_out, d_dout, d_w, d_b, d_dw, d_db, d_mean, d_rstd}) cudaCheck(cudaFree(p));
  for (float *p : {x, w, b, dout, out, dw, db}) delete[] p;
  delete[] gw;
  delete[] gb;
  return !(worst < 1e-4);
}
