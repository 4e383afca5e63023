/*!
 * \file kernel_call.cc
 * \brief Launches that are kept.
 */
#include "kernel_call.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

#include "emulator/graph_overloads.h"
#include "error.h"

namespace emulator {
namespace {

const size_t kAlignment = 64;  // of arguments, at least what any type here asks for

struct Kept {
  const char* name;
  CallMaker maker;
};
std::mutex mutex;
auto& kept = *new std::map<const void*, Kept>;

}  // namespace

void KernelCall::Bytes::operator()(char* bytes) const { std::free(bytes); }

KernelCall::Storage KernelCall::copy(const void* from, size_t size) {
  const size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  char* bytes = static_cast<char*>(std::aligned_alloc(kAlignment, rounded));
  if (bytes == nullptr) throw std::bad_alloc();
  std::memcpy(bytes, from, size);
  return Storage(bytes);
}

KernelCall::KernelCall(const LaunchSite& site, const Config& config, const CallData& data)
    : site_(site),
      config_(config),
      data_(data),
      call_(copy(data.call, data.call_size)),
      pointers_(data.pointers, data.pointers + data.pointers_count) {
  data_.call = call_.get();
  data_.pointers = pointers_.data();
  for (size_t i = 0; data.arguments != nullptr && i < data.pointers_count; ++i) {
    arguments_.push_back(copy(data.arguments[i], data.sizes[i]));
    given.arguments.push_back(arguments_.back().get());
  }
  if (data.arguments != nullptr && data.block_function != nullptr && !lead_to_copies(data))
    data_.block_function = nullptr;  // its threads run one by one
}

// A lambda that refers to variables is made of their addresses. Each of them is found among those
// of the arguments, and is replaced by that of a copy; else nobody knows what it is.
bool KernelCall::lead_to_copies(const CallData& data) {
  if (data.pointers_count == 0) return true;
  char* const block = call_.get() + data.block_offset;
  if (data.block_size % sizeof(void*) != 0) return false;
  for (size_t at = 0; at < data.block_size; at += sizeof(void*)) {
    const void* address;
    std::memcpy(&address, block + at, sizeof address);
    size_t i = 0;
    while (i < data.pointers_count && data.arguments[i] != address) ++i;
    if (i == data.pointers_count) return false;
    const void* const moved = arguments_[i].get();
    std::memcpy(block + at, &moved, sizeof moved);
  }
  return true;
}

cudaError_t KernelCall::run(cudaStream_t stream) const {
  if (sticky_error() != cudaSuccess) return sticky_error();
  Config config = config_;
  config.stream = stream;
  run_kernel(site_, config, data_);
  return cudaSuccess;
}

void keep_kernel(const void* kernel, const char* name, CallMaker maker) {
  std::lock_guard<std::mutex> lock(mutex);
  kept[kernel] = {name, maker};
}

namespace {

struct Making {
  LaunchSite site;
  Config config;
  std::shared_ptr<KernelCall> made;
};

}  // namespace

std::shared_ptr<const KernelCall> make_kernel_call(const cudaKernelNodeParams& params,
                                                   const char* file, int line) {
  Kept found;
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto entry = kept.find(params.func);
    if (entry == kept.end()) return nullptr;
    found = entry->second;
  }
  Making making{{found.name, file, line},
                {params.gridDim, params.blockDim, params.sharedMemBytes, nullptr},
                nullptr};
  auto use = [](const CallData& data, void* into) {
    Making* making = static_cast<Making*>(into);
    making->made = std::make_shared<KernelCall>(making->site, making->config, data);
  };
  found.maker(params.func, params.kernelParams, use, &making);
  making.made->given.kernel = params.func;
  return making.made;
}

}  // namespace emulator
