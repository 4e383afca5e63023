/*!
 * \file show.h
 * \brief Prints what kernels computed: each case must print the same in all ways to run a kernel.
 */
#ifndef TESTS_EMULATOR_HOLES_SHOW_H_
#define TESTS_EMULATOR_HOLES_SHOW_H_

#include "../check.h"

template <typename T>
void show(const Device<T>& device) {
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  for (T value : device.get()) std::printf("%g ", static_cast<double>(value));
  std::printf("\n");
}

// 0, 1, 2 ... as numbers of any kind.
template <typename T>
std::vector<T> counted(int count) {
  std::vector<T> values(count);
  for (int i = 0; i < count; ++i) values[i] = static_cast<T>(i);
  return values;
}

#endif  // TESTS_EMULATOR_HOLES_SHOW_H_
