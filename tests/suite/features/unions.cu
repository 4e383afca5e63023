// feature: unions and bits of floats, in registers and in memory
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

union Word {
  unsigned bits;
  float number;
  unsigned char bytes[4];
};

__global__ void twist(Word* words, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  Word word = words[i];
  word.number *= 2;
  words[i].bits = word.bits ^ 1u;
  words[i].bytes[3] |= 0x80;
}

int main() {
  const int n = 32;
  std::vector<Word> host(n);
  for (int i = 0; i < n; ++i) host[i].number = 0.75f * i;
  Word* words;
  check(cudaMalloc(&words, n * sizeof(Word)));
  check(cudaMemcpy(words, host.data(), n * sizeof(Word), cudaMemcpyHostToDevice));
  twist<<<1, 32>>>(words, n);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), words, n * sizeof(Word), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 3) std::printf("%08x %a\n", host[i].bits, host[i].number);
  check(cudaFree(words));
}
