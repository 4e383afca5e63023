/*!
 * \file check.h
 * \brief A program of named cases: `program NAME` runs one, and exits with 0 if it holds.
 */
#ifndef TESTS_EMULATOR_CHECK_H_
#define TESTS_EMULATOR_CHECK_H_

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

inline std::map<std::string, void (*)()>& cases() {
  static std::map<std::string, void (*)()> all;
  return all;
}

struct Registered {
  Registered(const char* name, void (*function)()) { cases()[name] = function; }
};

// CASE(name) { ... }
#define CASE(name)                                        \
  static void name();                                     \
  static const Registered registered_##name(#name, name); \
  static void name()

#define CHECK(condition)                                                                  \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                       \
    }                                                                                     \
  } while (0)

// The device's memory as a host program uses it.
template <typename T>
struct Device {
  T* data = nullptr;
  size_t count;

  explicit Device(size_t count) : count(count) {
    CHECK(cudaMalloc(&data, count * sizeof(T)) == cudaSuccess);
  }
  explicit Device(const std::vector<T>& values) : Device(values.size()) { set(values); }
  Device(const Device&) = delete;
  ~Device() { cudaFree(data); }

  void set(const std::vector<T>& values) {
    CHECK(cudaMemcpy(data, values.data(), count * sizeof(T), cudaMemcpyHostToDevice) ==
          cudaSuccess);
  }
  std::vector<T> get() const {
    std::vector<T> values(count);
    CHECK(cudaMemcpy(values.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost) ==
          cudaSuccess);
    return values;
  }
};

int main(int argc, char** argv) {
  if (argc != 2 || cases().count(argv[1]) == 0) return 2;
  cases()[argv[1]]();
  return 0;
}

#endif  // TESTS_EMULATOR_CHECK_H_
