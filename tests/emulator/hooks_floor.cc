// The least that the naive product of matrices can take with a call for each access: the hooks
// that the compiler calls do nothing here. Two threads share the rows, as two cores share blocks.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#ifdef HOOKS

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_read4(void*) {}
void __tsan_write4(void*) {}
}

#elif defined(KERNEL)

void element(const float* A, const float* B, float* C, int N, int K, int m, int n) {
  float sum = 0;
  for (int k = 0; k < K; ++k) sum += A[m * K + k] * B[k * N + n];
  C[m * N + n] = sum;
}

#else

void element(const float* A, const float* B, float* C, int N, int K, int m, int n);

int main(int, char** words) {
  const int M = atoi(words[1]), K = atoi(words[2]), N = atoi(words[3]);
  std::vector<float> A(size_t(M) * K, 1), B(size_t(K) * N, 1), C(size_t(M) * N);
  auto rows = [&](int from, int to) {
    for (int m = from; m < to; ++m)
      for (int n = 0; n < N; ++n) element(A.data(), B.data(), C.data(), N, K, m, n);
  };
  double best = 1e9;
  for (int turn = 0; turn < 5; ++turn) {
    auto start = std::chrono::steady_clock::now();
    std::thread other(rows, 0, M / 2);
    rows(M / 2, M);
    other.join();
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = taken.count() < best ? taken.count() : best;
  }
  if (C[0] != K || C.back() != K) return 1;
  printf("%.6f\n", best);
}

#endif
