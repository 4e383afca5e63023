/*!
 * \file occupancy.cc
 * \brief What is known about kernels, and how many blocks fit on a multiprocessor.
 *
 * As if threads, blocks and shared memory were the only limits: registers are not known.
 */
#include "emulator/occupancy.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "block.h"
#include "error.h"
#include "properties.h"

namespace emulator {
namespace {

struct Facts {
  int most_threads;
  size_t shared;
};

std::mutex mutex;

// Noted before main begins, so it must be there by then.
std::map<const void*, Facts>& noted() {
  static auto* all = new std::map<const void*, Facts>;
  return *all;
}

Facts facts_of(const void* kernel) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = noted().find(kernel);
  return found != noted().end() ? found->second : Facts{kMaxThreads, 0};
}

// 0 where a block cannot run at all.
int blocks_that_fit(const Facts& kernel, int block_size, size_t shared) {
  shared += kernel.shared;
  if (block_size > kernel.most_threads || shared > kSharedMemoryOptin) return 0;
  const int by_threads = kThreadsPerMultiprocessor / block_size;
  const int most = std::min(by_threads, kBlocksPerMultiprocessor);
  if (shared == 0) return most;
  return std::min(most, static_cast<int>(kSharedPerMultiprocessor / shared));
}

}  // namespace

bool note_kernel_at(const void* kernel, int bounds, size_t shared) {
  std::lock_guard<std::mutex> lock(mutex);
  noted()[kernel] = {bounds > 0 ? std::min(bounds, kMaxThreads) : kMaxThreads, shared};
  return true;
}

// Of blocks that give the same number of threads, the largest, as NVIDIA's does.
cudaError_t max_potential_block_size(int* grid, int* block, const void* kernel,
                                     size_t (*shared_of)(const void*, int), const void* data,
                                     int limit) {
  EMULATOR_RETURN_IF_STICKY();
  if (grid == nullptr || block == nullptr || limit < 0) return report(cudaErrorInvalidValue);
  const Facts facts = facts_of(kernel);
  const int largest = limit == 0 ? facts.most_threads : std::min(limit, facts.most_threads);
  int best_threads = 0;
  *grid = *block = 0;
  for (int size = largest; size > 0; size = (size - 1) / kWarp * kWarp) {
    const int blocks = blocks_that_fit(facts, size, shared_of(data, size));
    if (blocks * size <= best_threads) continue;
    best_threads = blocks * size;
    *block = size;
    *grid = blocks * kMultiprocessors;
  }
  return cudaSuccess;
}

}  // namespace emulator

using emulator::report;

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel,
                                                          int block_size, size_t shared) {
  EMULATOR_RETURN_IF_STICKY();
  if (blocks == nullptr || block_size <= 0) return report(cudaErrorInvalidValue);
  if (kernel == nullptr) return report(cudaErrorInvalidDeviceFunction);
  *blocks = emulator::blocks_that_fit(emulator::facts_of(kernel), block_size, shared);
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* kernel,
                                                                   int block_size, size_t shared,
                                                                   unsigned flags) {
  EMULATOR_HOST_CALL();
  if (flags > cudaOccupancyDisableCachingOverride) return report(cudaErrorInvalidValue);
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, block_size, shared);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* shared, const void* kernel,
                                                      int blocks, int block_size) {
  EMULATOR_RETURN_IF_STICKY();
  if (shared == nullptr || blocks <= 0 || block_size <= 0) return report(cudaErrorInvalidValue);
  if (kernel == nullptr) return report(cudaErrorInvalidDeviceFunction);
  const emulator::Facts facts = emulator::facts_of(kernel);
  if (blocks > emulator::blocks_that_fit(facts, block_size, 0))
    return report(cudaErrorInvalidValue);
  const size_t taken = emulator::kReservedShared + facts.shared;
  const size_t each = emulator::kSharedPerMultiprocessor / blocks - taken;
  *shared = std::min(each, emulator::kSharedMemoryOptin);
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  EMULATOR_RETURN_IF_STICKY();
  if (kernel == nullptr) return report(cudaErrorInvalidDeviceFunction);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  return report(emulator::set_shared_limit(value));
}

// A number that no program should build upon is one of a small kernel.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  EMULATOR_RETURN_IF_STICKY();
  if (attributes == nullptr) return report(cudaErrorInvalidValue);
  if (kernel == nullptr) return report(cudaErrorInvalidDeviceFunction);
  std::memset(attributes, 0, sizeof *attributes);
  const emulator::Facts facts = emulator::facts_of(kernel);
  attributes->maxThreadsPerBlock = facts.most_threads;
  attributes->sharedSizeBytes = facts.shared;
  attributes->numRegs = 32;
  attributes->ptxVersion = attributes->binaryVersion = emulator::kMajor * 10 + emulator::kMinor;
  attributes->maxDynamicSharedSizeBytes = emulator::kSharedMemory;
  attributes->preferredShmemCarveout = -1;
  return cudaSuccess;
}

cudaError_t cudaFuncSetCacheConfig(const void* kernel, cudaFuncCache) {
  EMULATOR_RETURN_IF_STICKY();
  return report(kernel != nullptr ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaFuncSetSharedMemConfig(const void* kernel, cudaSharedMemConfig) {
  EMULATOR_RETURN_IF_STICKY();
  return report(kernel != nullptr ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}
