/*!
 * \file launch.cc
 * \brief Launches: what a GPU refuses, and how a grid is spread over the CPU's cores.
 */
#include "emulator/launch.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "block.h"
#include "checked.h"
#include "cuda_emulator.h"
#include "device.h"
#include "emulator/launch_kernel.h"
#include "error.h"
#include "fault.h"
#include "graph_nodes.h"
#include "kernel_call.h"
#include "pool.h"
#include "protection.h"
#include "stream.h"
#include "variables.h"

namespace emulator {
namespace {

// Grids of fewer threads run on the calling thread: waking others takes longer.
const int64_t kSmallGrid = 1024;

// How much a kernel may ask for: more than 48 KB only once cudaFuncSetAttribute allowed it to
// one. A launch knows its kernel by name and not by address, so this holds for all of them.
std::atomic<size_t> shared_limit(kSharedMemory);

// The launches whose kernels are to be called, the last one first.
thread_local Configuration* waiting = nullptr;

bool within(const dim3& size, unsigned x, unsigned y, unsigned z) {
  return size.x >= 1 && size.y >= 1 && size.z >= 1 && size.x <= x && size.y <= y && size.z <= z;
}

// Error 9 for a grid or block that no device could run, as CUDA documents it. (A driver may answer
// otherwise: CUDA 13.0 on an H200 says error 1 to these.) For too much shared memory the document
// says 9, too; but drivers say 1, on that H200 as on GPUs of before.
cudaError_t check(const Config& config) {
  const dim3& block = config.block;
  if (!within(config.grid, kMaxGridX, kMaxGridYZ, kMaxGridYZ) ||
      !within(block, kMaxBlockXY, kMaxBlockXY, kMaxBlockZ) ||
      static_cast<uint64_t>(block.x) * block.y * block.z > kMaxThreads)
    return cudaErrorInvalidConfiguration;
  if (config.shared > shared_limit) return cudaErrorInvalidValue;
  return is_stream(config.stream) ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

std::string with_commas(uint64_t number) {
  std::string text = std::to_string(number);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) text.insert(at, ",");
  return text;
}

std::string sizes(const dim3& size) {
  return with_commas(size.x) + " x " + with_commas(size.y) + " x " + with_commas(size.z);
}

// What `check` found, in words.
std::string refusal(const LaunchSite& site, const Config& config) {
  const dim3& block = config.block;
  const std::string where =
      std::string(site.file) + ":" + std::to_string(site.line) + ": " + site.name;
  if (!within(config.grid, kMaxGridX, kMaxGridYZ, kMaxGridYZ))
    return where + " is launched with a grid of " + sizes(config.grid) +
           " blocks; each size is at least 1, and at most " +
           sizes(dim3(kMaxGridX, kMaxGridYZ, kMaxGridYZ));
  const uint64_t threads = static_cast<uint64_t>(block.x) * block.y * block.z;
  if (threads > kMaxThreads)
    return where + " is launched with " + with_commas(threads) + " threads a block (" +
           sizes(block) + "); at most " + with_commas(kMaxThreads) + " are allowed";
  if (!within(block, kMaxBlockXY, kMaxBlockXY, kMaxBlockZ))
    return where + " is launched with blocks of " + sizes(block) +
           " threads; each size is at least 1, and at most " +
           sizes(dim3(kMaxBlockXY, kMaxBlockXY, kMaxBlockZ));
  if (config.shared > shared_limit)
    return where + " is launched with " + with_commas(config.shared) +
           " bytes of dynamic shared memory; at most " + with_commas(shared_limit) + " are allowed";
  return "";
}

// EMULATOR_LOOPS=0 has every thread called on its own, to compare.
bool use_loops() {
  const char* wanted = std::getenv("EMULATOR_LOOPS");
  return wanted == nullptr || std::atoi(wanted) != 0;
}

// The code that a kernel is in, which is that of the kernel before, as a rule.
Code code_of(ThreadFunction kernel) {
  static thread_local Code last = {0, 0};
  const uintptr_t address = reinterpret_cast<uintptr_t>(kernel);
  return last.has(address) ? last : last = code_around(address);
}

void run(Grid* grid) {
  DeviceAccess access;
  const KernelVariables variables;
  for (size_t i = 0; i < grid->pointers_count; ++i) access.open(grid->pointers[i]);
  const dim3 &blocks = grid->config.grid, &threads = grid->config.block;
  int64_t count = static_cast<int64_t>(blocks.x) * blocks.y * blocks.z;
  int64_t block_size = static_cast<int64_t>(threads.x) * threads.y * threads.z;
  // Several pieces a core, so that none waits long for the last; none so small that taking it
  // costs more than running it.
  int64_t chunk = std::max(count / (pool_size() * 16), kSmallGrid / block_size / 2);
  if (count * block_size <= kSmallGrid || grid->shuffle != 0) chunk = count;
  parallel_for(count, std::max<int64_t>(chunk, 1), [grid](int64_t begin, int64_t end) {
    prepare_fault_stack();
    watch_this_thread();
    if (!grid->failed) Block::mine()->run(grid, begin, end);
  });
}

}  // namespace

Configuration::Configuration(LaunchSite site, dim3 grid, dim3 block, size_t shared,
                             cudaStream_t stream)
    : site(site),
      config{grid, block, shared, stream},
      outer_(waiting),
      exceptions_(std::uncaught_exceptions()),
      is_taken_(false) {
  if (Block* running = Block::running())
    running->fail(cudaErrorNotSupported, "emulated GPU: " + running->where() +
                                             ": launches kernel " + site.name +
                                             "; a kernel cannot launch another here");
  waiting = this;
}

Configuration::~Configuration() {
  waiting = outer_;
  if (is_taken_ || std::uncaught_exceptions() > exceptions_) return;
  std::fprintf(stderr, "emulated GPU: %s:%d: %s<<<>>> called no kernel\n", site.file, site.line,
               site.name);
  report(cudaErrorInvalidDeviceFunction);
}

const Configuration* Configuration::take() {
  Configuration* found = waiting;
  while (found != nullptr && found->is_taken_) found = found->outer_;
  if (found != nullptr) found->is_taken_ = true;
  return found;
}

void run_kernel(const LaunchSite& site, const Config& config, const CallData& data) {
  const unsigned shuffle = shuffle_seed();
  const bool loops = use_loops() && shuffle == 0;
  Grid grid{site,      config,         data.function, loops ? data.block_function : nullptr,
            data.call, data.call_size, data.pointers, data.pointers_count,
            shuffle,   {false},        {false},       code_of(data.function)};
  install_fault_handler();
  EMULATOR_CHECK(Work work);
  EMULATOR_CHECK(launch_begins(grid));
  EMULATOR_CHECK(kernel_submitted(grid));
  run(&grid);
  if (grid.refused) {
    report(cudaErrorInvalidValue);
    EMULATOR_CHECK(
        launch_refused(site, config, "more threads than the kernel's __launch_bounds__ allow"));
  }
}

cudaError_t check_launch(const LaunchSite& site, const Config& config) {
  const cudaError_t error = check(config);
  if (error == cudaSuccess) return error;
  if (is_any_capture() && is_stream(config.stream) && is_in_capture(config.stream))
    refuse_in_capture(config.stream);  // what is recorded without it is worth nothing
  return report(error, refusal(site, config));
}

template <>
void launch<sizeof(CallData)>(const LaunchSite& site, const Config& config, const CallData& data) {
  if (sticky_error() != cudaSuccess) return;
  cudaError_t error = check_launch(site, config);
  if (error == cudaSuccess && is_any_capture()) {
    const auto call = std::make_shared<const KernelCall>(site, config, data);
    const auto now = [&](cudaStream_t) {
      run_kernel(site, config, data);
      return cudaSuccess;
    };
    error = report(submit_while_capturing(config.stream, work_of_kernel(call), now));
  } else if (error == cudaSuccess) {
    run_kernel(site, config, data);
  }
  if (error != cudaSuccess) EMULATOR_CHECK(launch_refused(site, config, cudaGetErrorString(error)));
}

void refuse_launch() { Block::running()->refuse(); }

cudaError_t launch_of_pointer(const LaunchSite& site, const Config& config, const CallData& data) {
  EMULATOR_HOST_CALL_OF("cudaLaunchKernel");
  if (sticky_error() != cudaSuccess) return sticky_error();
  const cudaError_t before = replace_last_error(cudaSuccess);
  launch(site, config, data);
  const cudaError_t error = replace_last_error(cudaSuccess);
  replace_last_error(error != cudaSuccess ? error : before);
  return error;
}

cudaError_t set_shared_limit(int size) {
  if (size < 0 || static_cast<size_t>(size) > kSharedMemoryOptin) return cudaErrorInvalidValue;
  size_t now = shared_limit, wanted = static_cast<size_t>(size);
  while (now < wanted && !shared_limit.compare_exchange_weak(now, wanted)) continue;
  return cudaSuccess;
}

}  // namespace emulator

void emulator_assert_failed(const char* expression, const char* file, int line,
                            const char* function) {
  std::string place = std::string(file) + ":" + std::to_string(line) + ": " + function + ": ";
  std::string claim = std::string("Assertion `") + expression + "` failed.";
  EMULATOR_CHECK(assertion_failed(claim.c_str(), file, line));
  if (emulator::Block* block = emulator::Block::running()) {
    char thread[128];
    std::snprintf(thread, sizeof thread, "block: [%u,%u,%u], thread: [%u,%u,%u] ", blockIdx.x,
                  blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
    block->fail(cudaErrorAssert, place + thread + claim);
  }
  std::fflush(stdout);
  std::fprintf(stderr, "%s%s\n", place.c_str(), claim.c_str());
  std::abort();
}

void emulator_called_directly(const char* kernel) {
  std::fprintf(
      stderr, "emulated GPU: kernel %s is called like a function; hint: %s<<<grid, block>>>(...)\n",
      kernel, kernel);
  emulator::report(cudaErrorMissingConfiguration);
}

void __trap() {
  emulator::Block* block = emulator::Block::running();
  if (block == nullptr) std::abort();
  EMULATOR_CHECK(trapped(__builtin_return_address(0)));
  block->fail(cudaErrorLaunchFailure, "emulated GPU: " + block->where() + ": __trap()");
}

void __brkpt() { __trap(); }
