/*!
 * \file harness.h
 * \brief Runs generated kernels and prints a hash of what each launch wrote; see program.py.
 *
 * `program [--values] [KERNEL...]`: a line `KERNEL LAUNCH HASH` for each launch, with --values the
 * elements before it. With KERNEL_ORACLE it is plain C++, see oracle.h.
 */
#ifndef TESTS_KERNEL_GENERATOR_HARNESS_H_
#define TESTS_KERNEL_GENERATOR_HARNESS_H_

#include <cstdint>
#include <cstdio>
#include <cstring>

#ifdef KERNEL_ORACLE
#include "oracle.h"
#else
#include <cuda_runtime.h>
#endif

constexpr int kElements = 2048;

struct Launch {
  unsigned grid[3], block[3];
  int n;

  dim3 blocks() const { return dim3(grid[0], grid[1], grid[2]); }
  dim3 shape() const { return dim3(block[0], block[1], block[2]); }
  size_t threads() const { return block[0] * block[1] * block[2]; }
};

struct Entry {
  const char* name;
  void (*run)(const Launch&);
  Launch launches[2];
};

// Small numbers where sums must not overflow, any bits where they wrap around.
template <typename T>
T filled(unsigned long long bits) {
  return static_cast<T>(bits);
}
template <>
inline int filled(unsigned long long bits) {
  return static_cast<int>(bits % 2001) - 1000;
}
template <>
inline long long filled(unsigned long long bits) {
  return static_cast<int>(bits % 2001) - 1000;
}
template <>
inline float filled(unsigned long long bits) {
  return (static_cast<int>(bits % 4096) - 2048) / 4.f;
}
template <>
inline double filled(unsigned long long bits) {
  return (static_cast<int>(bits % 4096) - 2048) / 4.;
}

template <typename T>
const T* pattern(int slot) {
  static T values[4][kElements];
  static bool done[4];
  unsigned long long state = 88172645463325252ull + slot * 7919;
  for (int k = 0; k < kElements && !done[slot]; ++k) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    values[slot][k] = filled<T>(state >> 11);
  }
  done[slot] = true;
  return values[slot];
}

struct Output {
  void* data;
  size_t size;
  void (*show)(const void* values, size_t size);
};

struct State {
  void* buffers[4];  // for outputs
  void* inputs[64];
  int input_count;
  Output outputs[8];
  int output_count;
  unsigned long long hash;
  bool values;
};

inline State& state() {
  static State all;
  return all;
}

inline void* reserved(size_t size) {
  void* data = nullptr;
  if (cudaMalloc(&data, size) != cudaSuccess) std::printf("# no memory\n");
  return data;
}

// An array that kernels only read.
template <typename T>
const T* in(int slot) {
  static T* data[2];
  if (!data[slot]) {
    data[slot] = static_cast<T*>(reserved(kElements * sizeof(T)));
    state().inputs[state().input_count++] = data[slot];
    cudaMemcpy(data[slot], pattern<T>(slot), kElements * sizeof(T), cudaMemcpyHostToDevice);
  }
  return data[slot];
}

inline void show(double value) { std::printf(" %.17g", value); }
inline void show(float value) { std::printf(" %.9g", value); }
template <typename T>
void show(T value) {
  if (value < 0) {
    std::printf(" %lld", static_cast<long long>(value));
  } else {
    std::printf(" %llu", static_cast<unsigned long long>(value));
  }
}

template <typename T>
void show_all(const void* values, size_t size) {
  for (size_t k = 0; k < size / sizeof(T); ++k) show(static_cast<const T*>(values)[k]);
  std::printf("\n");
}

// An array that the next launch writes; it starts with the same values in each.
template <typename T>
T* out(int slot) {
  State& s = state();
  if (!s.buffers[slot]) s.buffers[slot] = reserved(kElements * 8);
  cudaMemcpy(s.buffers[slot], pattern<T>(slot + 1), kElements * sizeof(T), cudaMemcpyHostToDevice);
  s.outputs[s.output_count++] = {s.buffers[slot], kElements * sizeof(T), show_all<T>};
  return static_cast<T*>(s.buffers[slot]);
}

inline void add(const void* values, size_t size) {
  for (size_t k = 0; k < size; k += 8) {
    unsigned long long word = 0;
    std::memcpy(&word, static_cast<const char*>(values) + k, size - k < 8 ? size - k : 8);
    state().hash = (state().hash ^ word) * 0x9e3779b97f4a7c15ull;
    state().hash ^= state().hash >> 29;
  }
}

// A variable of the device, behind the launch.
template <typename T, size_t count>
void symbol(T (&variable)[count]) {
  T values[count];
  cudaMemcpyFromSymbol(values, variable, sizeof values);
  add(values, sizeof values);
  if (state().values) show_all<T>(values, sizeof values);
}

// Runs one launch; what it wrote is in state().hash.
inline cudaError_t run_once(void (*launch)(const Launch&), const Launch& how) {
  State& s = state();
  s.output_count = 0;
  s.hash = 1469598103934665603ull;
  launch(how);
  cudaError_t error = cudaDeviceSynchronize();
  if (error == cudaSuccess) error = cudaGetLastError();
  static char values[kElements * 8];
  for (int k = 0; k < s.output_count && error == cudaSuccess; ++k) {
    error = cudaMemcpy(values, s.outputs[k].data, s.outputs[k].size, cudaMemcpyDeviceToHost);
    add(values, s.outputs[k].size);
    if (s.values) s.outputs[k].show(values, s.outputs[k].size);
  }
  return error;
}

inline void run(const Entry& entry, int number) {
  State& s = state();
  cudaError_t error = run_once(entry.run, entry.launches[number]);
  if (error != cudaSuccess) {
    std::printf("%s %d error %s\n", entry.name, number, cudaGetErrorName(error));
  } else {
    std::printf("%s %d %016llx\n", entry.name, number, s.hash);
  }
  std::fflush(stdout);
}

inline int run_all(const Entry* entries, int count, int argc, char** argv) {
  State& s = state();
  s.values = argc > 1 && std::strcmp(argv[1], "--values") == 0;
  const int first = s.values ? 2 : 1;
  for (int k = 0; k < count; ++k) {
    bool wanted = argc <= first;
    for (int a = first; a < argc; ++a) wanted |= std::strcmp(argv[a], entries[k].name) == 0;
    for (int number = 0; wanted && number < 2; ++number) run(entries[k], number);
  }
  for (int k = 0; k < s.input_count; ++k) cudaFree(s.inputs[k]);
  for (int k = 0; k < 4; ++k) {
    if (s.buffers[k]) cudaFree(s.buffers[k]);
  }
  return 0;
}

#endif  // TESTS_KERNEL_GENERATOR_HARNESS_H_
