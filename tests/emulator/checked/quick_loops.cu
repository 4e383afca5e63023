// Loops that only read, in the checked build: test_quick_loops.py says what each case must show.
//
// quick_loops CASE    prints a checksum of the result's bits, and how many loops were copies
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

// Linked with --wrap, so that each question is counted, and each yes.
static long asked = 0, settled = 0;
extern "C" bool __real_emulator_is_settled(const void* const* reads, long long turns);
extern "C" __attribute__((no_sanitize("thread"))) bool __wrap_emulator_is_settled(
    const void* const* reads, long long turns) {
  bool yes = __real_emulator_is_settled(reads, turns);
  __atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
  if (yes) __atomic_fetch_add(&settled, 1, __ATOMIC_RELAXED);
  return yes;
}

const int M = 96, K = 100, N = 80;

// C = A B; the last row of A that each thread reads is `last` further than it should be.
__global__ void product(const float* A, const float* B, float* C, int turns) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= M || col >= N) return;
  float sum = 0;
  for (int k = 0; k < turns; ++k) sum += A[row * K + k] * B[k * N + col];  // product
  C[row * N + col] = sum;
}

// One thread of a block, the first or the last, writes what all read.
__global__ void product_written(float* A, const float* B, float* C, bool early) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  bool writes = early ? row == 0 && col == 0 : row == M - 1 && col == N - 1;
  if (writes && early) A[3] = 1;  // written early
  float sum = 0;
  for (int k = 0; k < K; ++k) sum += A[k] * B[k * N + col];  // product written
  C[row * N + col] = sum;
  if (writes && !early) A[3] = 1;  // written late
}

// Each in another way: backwards, by steps, through a variable, under a condition.
__global__ void ways(const float* A, const float* B, float* C, unsigned step) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= M * N) return;
  const int64_t row = i / N, col = i % N;
  float sum = 0, most = -INFINITY;
  int count = 0;
  for (int64_t k = 0; k <= K - 1; k++) sum += A[row * K + (K - 1 - k)];
  for (unsigned k = threadIdx.x % 2; k < K; k += step) {
    const int at = (int)(k * N + col);
    float value = B[at];
    if (value > 0.25f && A[k] > 0) {
      most = fmaxf(most, value);
      count += 1;
    }
  }
  for (int k = 0; k < K; ++k)
    if (A[k] > 0) sum += A[k];
  float emulator = 0, v0 = 0;
  int done = 0;
  for (int k = 0; k < K; ++k)
    if (A[k] > 0.1f)
      v0 += A[k] / 3;
    else if (A[k] < 0)
      emulator += A[k], done++;
  sum += emulator + v0 + done;
  // Not linear: it begins again at 64.
  for (int k = 0; k < K; ++k) sum += A[static_cast<uint8_t>(k * 4)];
  C[i] = sum + most + count;
}

// All threads of the one block read a row, before a barrier and behind it.
__global__ void alone(float* A, float* C, int early, int late) {
  const int i = threadIdx.x;
  float sum = 0;
  if (i == early) A[3] = 1;                 // written between
  for (int k = 0; k < K; ++k) sum += A[k];  // read by all
  __syncthreads();
  if (i == late) A[3] = 1;                      // written behind
  for (int k = 0; k < K; ++k) sum *= A[k] + 1;  // read again
  for (int at = i; at < M * N; at += blockDim.x) C[at] = sum;
}

static std::vector<float> numbers(size_t count) {
  std::vector<float> made(count);
  unsigned state = 1;
  for (float& x : made) x = (state = state * 1664525u + 1013904223u) / 4294967296.0f - 0.5f;
  return made;
}

template <typename Launch>
static void run(Launch launch, size_t rows_of_b = K) {
  std::vector<float> a = numbers(M * K), b = numbers(K * N), c(M * N);
  float *A, *B, *C;
  cudaMalloc(&A, sizeof(float) * a.size());
  cudaMalloc(&B, sizeof(float) * b.size());
  cudaMalloc(&C, sizeof(float) * c.size());
  cudaMemcpy(A, a.data(), sizeof(float) * a.size(), cudaMemcpyHostToDevice);
  cudaMemcpy(B, b.data(), sizeof(float) * rows_of_b * N, cudaMemcpyHostToDevice);
  launch(A, B, C);
  cudaDeviceSynchronize();
  cudaMemcpy(c.data(), C, sizeof(float) * c.size(), cudaMemcpyDeviceToHost);
  uint64_t hash = 14695981039346656037u;
  for (float x : c) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    hash = (hash ^ bits) * 1099511628211u;
  }
  std::printf("%016llx %ld %ld\n", static_cast<unsigned long long>(hash), asked, settled);
  cudaFree(A);
  cudaFree(B);
  cudaFree(C);
}

int main(int count, char** words) {
  const char* name = count > 1 ? words[1] : "";
  auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
  const dim3 block(16, 16), grid(N / 16, M / 16);
  if (is("product"))
    run([&](float* A, float* B, float* C) { product<<<grid, block>>>(A, B, C, K); });
  if (is("past the end"))
    run([&](float* A, float* B, float* C) { product<<<grid, block>>>(A, B, C, K + 1); });
  if (is("without a value"))
    run([&](float* A, float* B, float* C) { product<<<grid, block>>>(A, B, C, K); }, K - 1);
  if (is("written early"))
    run([&](float* A, float* B, float* C) { product_written<<<grid, block>>>(A, B, C, true); });
  if (is("written late"))
    run([&](float* A, float* B, float* C) { product_written<<<grid, block>>>(A, B, C, false); });
  if (is("alone")) run([&](float* A, float*, float* C) { alone<<<1, 256>>>(A, C, -1, -1); });
  if (is("written between"))
    run([&](float* A, float*, float* C) { alone<<<1, 256>>>(A, C, 100, -1); });
  if (is("written behind"))
    run([&](float* A, float*, float* C) { alone<<<1, 256>>>(A, C, -1, 100); });
  if (is("ways"))
    run([&](float* A, float* B, float* C) { ways<<<M * N / 256, 256>>>(A, B, C, 2); });
  if (is("freed"))
    run([&](float* A, float* B, float* C) {
      float* other;
      cudaMalloc(&other, sizeof(float) * K * N);
      cudaMemcpy(other, B, sizeof(float) * K * N, cudaMemcpyDeviceToDevice);
      product<<<grid, block>>>(A, other, C, K);
      cudaFree(other);
      product<<<grid, block>>>(A, other, C, K);
    });
  if (is("another value"))
    run([&](float* A, float* B, float* C) {
      product<<<grid, block>>>(A, B, C, K);
      cudaMemset(A, 0, sizeof(float) * M * K / 2);
      product<<<grid, block>>>(A, B, C, K);
    });
}
