// feature: a step captured once, with two branches and memory of its own, is launched many times
// prints: unrecorded
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void forward(const float* x, const float* w, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * w[i];
}

__global__ void gradient(const float* y, const float* x, float* dw, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) dw[i] = (y[i] - 1) * x[i];
}

__global__ void loss_of(const float* y, float* loss, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += (y[i] - 1) * (y[i] - 1);
  *loss = sum;
}

__global__ void update(float* w, const float* dw, float rate, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) w[i] -= rate * dw[i];
}

int main() {
  const int n = 64, blocks = 2, threads = 32;
  std::vector<float> input(n), weights(n, 0);
  for (int i = 0; i < n; ++i) input[i] = static_cast<float>(1 + i % 4) / 4;
  float *x, *w, *y, *dw, *loss, *losses;
  check(cudaMalloc(&x, n * sizeof(float)));
  check(cudaMalloc(&w, n * sizeof(float)));
  check(cudaMalloc(&loss, sizeof(float)));
  check(cudaMallocHost(&losses, sizeof(float)));
  check(cudaMemcpy(x, input.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  check(cudaMemcpy(w, weights.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  cudaStream_t main_stream, side;
  cudaEvent_t forked, joined;
  check(cudaStreamCreateWithFlags(&main_stream, cudaStreamNonBlocking));
  check(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  check(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
  check(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
  check(cudaStreamBeginCapture(main_stream, cudaStreamCaptureModeGlobal));
  check(cudaMallocAsync(&y, n * sizeof(float), main_stream));
  check(cudaMallocAsync(&dw, n * sizeof(float), main_stream));
  forward<<<blocks, threads, 0, main_stream>>>(x, w, y, n);
  check(cudaEventRecord(forked, main_stream));
  check(cudaStreamWaitEvent(side, forked, 0));
  loss_of<<<1, 1, 0, side>>>(y, loss, n);
  check(cudaMemcpyAsync(losses, loss, sizeof(float), cudaMemcpyDeviceToHost, side));
  check(cudaEventRecord(joined, side));
  gradient<<<blocks, threads, 0, main_stream>>>(y, x, dw, n);
  update<<<blocks, threads, 0, main_stream>>>(w, dw, 0.5f, n);
  check(cudaStreamWaitEvent(main_stream, joined, 0));
  check(cudaFreeAsync(dw, main_stream));
  check(cudaFreeAsync(y, main_stream));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check(cudaStreamEndCapture(main_stream, &graph));
  check(cudaGraphInstantiate(&exec, graph, 0));
  check(cudaGraphDestroy(graph));
  for (int step = 0; step < 5; ++step) {
    check(cudaGraphLaunch(exec, main_stream));
    check(cudaStreamSynchronize(main_stream));
    std::printf("%a\n", *losses);
  }
  check(cudaMemcpy(weights.data(), w, n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 13) std::printf("%a\n", weights[i]);
  check(cudaGraphExecDestroy(exec));
  check(cudaEventDestroy(forked));
  check(cudaEventDestroy(joined));
  check(cudaStreamDestroy(main_stream));
  check(cudaStreamDestroy(side));
  for (float* data : {x, w, loss}) check(cudaFree(data));
  check(cudaFreeHost(losses));
}
