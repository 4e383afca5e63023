// Device memory: allocation, copies, and who may touch what.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "check.h"

static cudaError_t last(cudaError_t error) {
  CHECK(cudaGetLastError() == error);
  return error;
}

CASE(new_memory_is_nan) {
  for (float value : Device<float>(10000).get()) CHECK(std::isnan(value));
}

CASE(no_bytes_are_null) {
  void* ptr = &ptr;
  CHECK(cudaMalloc(&ptr, 0) == cudaSuccess && ptr == nullptr);
  CHECK(cudaFree(nullptr) == cudaSuccess);
}

CASE(more_than_the_device_has_is_refused) {
  void *ptr = &ptr, *half;
  size_t free, total;
  CHECK(cudaMemGetInfo(&free, &total) == cudaSuccess && free == total);
  CHECK(total == size_t(64) << 20);  // what the test asks for
  CHECK(last(cudaMalloc(&ptr, total + 1)) == cudaErrorMemoryAllocation && ptr == nullptr);
  CHECK(cudaMalloc(&half, total / 2 + 1) == cudaSuccess);
  CHECK(last(cudaMalloc(&ptr, total / 2)) == cudaErrorMemoryAllocation);
  CHECK(cudaFree(half) == cudaSuccess && cudaMalloc(&ptr, total / 2) == cudaSuccess);
}

CASE(what_was_not_allocated_is_not_freed) {
  char *ptr, here;
  CHECK(cudaMalloc(&ptr, 100) == cudaSuccess);
  CHECK(last(cudaFree(ptr + 256)) == cudaErrorInvalidValue);
  CHECK(last(cudaFree(&here)) == cudaErrorInvalidValue);
  CHECK(cudaFree(ptr) == cudaSuccess);
  CHECK(last(cudaFree(ptr)) == cudaErrorInvalidValue);
}

CASE(allocations_are_aligned_and_counted) {
  int64_t count = emulator_cuda_malloc_count(), live = emulator_live_bytes();
  std::vector<void*> all;
  for (size_t size = 1; size < 5000; size += 37) {
    void* ptr;
    CHECK(cudaMalloc(&ptr, size) == cudaSuccess);
    CHECK(reinterpret_cast<size_t>(ptr) % 256 == 0);
    all.push_back(ptr);
  }
  CHECK(emulator_cuda_malloc_count() - count == static_cast<int64_t>(all.size()));
  CHECK(emulator_live_bytes() > live);
  for (void* ptr : all) CHECK(cudaFree(ptr) == cudaSuccess);
  CHECK(emulator_live_bytes() == live);
}

CASE(what_goes_back_to_a_pool_does_not_count) {
  int64_t count = emulator_cuda_malloc_count();
  void *kept, *lent;
  CHECK(cudaMallocAsync(&kept, 100, 0) == cudaSuccess);
  for (int i = 0; i < 5; ++i) {
    CHECK(cudaMallocAsync(&lent, 100, 0) == cudaSuccess);
    CHECK(cudaFreeAsync(lent, 0) == cudaSuccess);
    CHECK(cudaFreeAsync(nullptr, 0) == cudaSuccess);
  }
  CHECK(emulator_cuda_malloc_count() - count == 1);
  CHECK(last(cudaFreeAsync(lent, 0)) == cudaErrorInvalidValue);
  CHECK(emulator_cuda_malloc_count() - count == 1);
  CHECK(cudaFree(kept) == cudaSuccess);
}

CASE(freed_memory_is_used_again) {
  // Far more than the addresses that are reserved, were they not used again.
  for (int i = 0; i < 20000; ++i) {
    void* ptr;
    CHECK(cudaMalloc(&ptr, (i % 7 + 1) << 20) == cudaSuccess);
    CHECK(cudaFree(ptr) == cudaSuccess);
  }
}

CASE(a_hole_of_the_size_is_used_again) {
  for (size_t size : {size_t(1000), size_t(5) << 20}) {
    char *before, *hole, *after, *again;
    CHECK(cudaMalloc(&before, size) == cudaSuccess && cudaMalloc(&hole, size) == cudaSuccess);
    CHECK(cudaMalloc(&after, size) == cudaSuccess && cudaFree(hole) == cudaSuccess);
    CHECK(cudaMalloc(&again, size) == cudaSuccess && again == hole);
  }
}

CASE(large_allocations_start_at_large_pages) {
  const size_t large = size_t(2) << 20;
  char *small, *whole, *odd;
  CHECK(cudaMalloc(&small, 100) == cudaSuccess && cudaMalloc(&whole, 2 * large) == cudaSuccess);
  CHECK(cudaMalloc(&odd, large + 1) == cudaSuccess);
  CHECK(reinterpret_cast<size_t>(whole) % large == 0);
  CHECK(reinterpret_cast<size_t>(odd) % large < 65536);  // what is left of a page lies before it
}

CASE(copies_go_where_their_kind_says) {
  std::vector<int> in{1, 2, 3, 4}, out(4);
  int *a, *b;
  CHECK(cudaMalloc(&a, 16) == cudaSuccess && cudaMalloc(&b, 16) == cudaSuccess);
  CHECK(cudaMemcpy(a, in.data(), 16, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(cudaMemcpy(b, a, 16, cudaMemcpyDeviceToDevice) == cudaSuccess);
  CHECK(cudaMemcpyAsync(out.data(), b, 16, cudaMemcpyDefault, 0) == cudaSuccess && out == in);
  CHECK(cudaMemset(b + 1, 0, 8) == cudaSuccess);
  CHECK(cudaMemcpyPeer(a, 0, b, 0, 16) == cudaSuccess);
  CHECK(cudaMemcpy(out.data(), a, 16, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(out == (std::vector<int>{1, 0, 0, 4}));
  int column[2];
  CHECK(cudaMemcpy2D(column, 4, a + 1, 8, 4, 2, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(column[0] == 0 && column[1] == 4);
}

CASE(wrong_copies_are_refused_and_copy_nothing) {
  std::vector<int> host(8, 5);
  int* a;
  CHECK(cudaMalloc(&a, 16) == cudaSuccess && cudaMemset(a, 0, 16) == cudaSuccess);
  const cudaError_t invalid = cudaErrorInvalidValue;
  CHECK(last(cudaMemcpy(a, host.data(), 20, cudaMemcpyHostToDevice)) == invalid);
  CHECK(last(cudaMemcpy(a + 1, host.data(), 16, cudaMemcpyHostToDevice)) == invalid);
  CHECK(last(cudaMemcpy(host.data(), host.data() + 4, 16, cudaMemcpyHostToDevice)) == invalid);
  CHECK(last(cudaMemcpy(host.data(), host.data() + 4, 16, cudaMemcpyDeviceToHost)) == invalid);
  CHECK(last(cudaMemcpy(a, host.data(), 16, cudaMemcpyDeviceToDevice)) == invalid);
  CHECK(last(cudaMemcpy(nullptr, a, 16, cudaMemcpyDeviceToHost)) == invalid);
  CHECK(last(cudaMemset(host.data(), 0, 16)) == invalid);
  CHECK(last(cudaMemset(a, 0, 17)) == invalid);
  CHECK(last(cudaMemcpy(a, host.data(), 16, static_cast<cudaMemcpyKind>(9))) ==
        cudaErrorInvalidMemcpyDirection);
  CHECK(cudaMemcpy(host.data(), a, 16, cudaMemcpyDeviceToHost) == cudaSuccess && host[3] == 0);
  CHECK(host[4] == 5);
}

__global__ void increment(int* values, int n) {
  for (int i = 0; i < n; ++i) ++values[i];
}

CASE(managed_and_pinned_memory_is_valid_on_both_sides) {
  int *managed, *pinned;
  CHECK(cudaMallocManaged(&managed, 40) == cudaSuccess);
  CHECK(cudaMallocHost(&pinned, 40) == cudaSuccess);
  for (int i = 0; i < 10; ++i) managed[i] = pinned[i] = i;
  increment<<<1, 1>>>(managed, 10);
  increment<<<1, 1>>>(pinned, 10);
  CHECK(cudaDeviceSynchronize() == cudaSuccess && managed[9] == 10 && pinned[9] == 10);
  CHECK(cudaFree(managed) == cudaSuccess && cudaFreeHost(pinned) == cudaSuccess);
  CHECK(last(cudaFreeHost(pinned)) == cudaErrorInvalidValue);
}

__global__ void fill(int* out, int n, int value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = value;
}

CASE(a_forked_child_computes) {
  const int n = 100000;
  Device<int> out(n);
  fill<<<(n + 255) / 256, 256>>>(out.data, n, 1);
  pid_t child = fork();
  fill<<<(n + 255) / 256, 256>>>(out.data, n, child == 0 ? 2 : 3);
  int wanted = child == 0 ? 2 : 3;
  for (int value : out.get()) CHECK(value == wanted);
  if (child == 0) _exit(0);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

// What a kernel gets by way of other memory, the runtime cannot know before: a list, whose parts
// the host built, and which it walks once more after each wait.

struct Link {
  Link* next;
  int value;
};

__global__ void sum_of_list(const Link* link, int* out) {
  int sum = 0;
  for (; link != nullptr; link = link->next) sum += link->value;
  atomicAdd(out, sum);
}

static void walks_a_list() {
  const int kLinks = 40, kThreads = 64, kBlocks = 50, kTimes = 150;
  Device<int> out(1);
  Link* first = nullptr;
  std::vector<Link*> all;
  for (int i = 0; i < kLinks; ++i) {
    Link here{first, i}, *there;
    CHECK(cudaMalloc(&there, sizeof here) == cudaSuccess);
    CHECK(cudaMemcpy(there, &here, sizeof here, cudaMemcpyHostToDevice) == cudaSuccess);
    all.push_back(first = there);
  }
  for (int i = 0; i < kTimes; ++i) {
    CHECK(cudaMemset(out.data, 0, sizeof(int)) == cudaSuccess);
    sum_of_list<<<kBlocks, kThreads>>>(first, out.data);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(out.get()[0] == kBlocks * kThreads * kLinks * (kLinks - 1) / 2);
  }
  for (Link* link : all) CHECK(cudaFree(link) == cudaSuccess);
}

CASE(a_kernel_walks_a_list) { walks_a_list(); }

CASE(a_kernel_walks_a_list_beside_a_handler_of_the_program) {
  fill<<<1, 1>>>(Device<int>(1).data, 1, 1);
  struct sigaction own;
  std::memset(&own, 0, sizeof own);
  own.sa_handler = [](int) { _exit(77); };
  CHECK(sigaction(SIGSEGV, &own, nullptr) == 0 && sigaction(SIGBUS, &own, nullptr) == 0);
  walks_a_list();
}

CASE(several_host_threads_walk_lists) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(walks_a_list);
  for (std::thread& thread : threads) thread.join();
}

// Wrong addresses. What is printed about them, the test looks at.

CASE(the_host_reads_what_a_kernel_has_found) {
  Device<int> out(1);
  Link last{nullptr, 7}, *link;
  CHECK(cudaMalloc(&link, sizeof last) == cudaSuccess);
  CHECK(cudaMemcpy(link, &last, sizeof last, cudaMemcpyHostToDevice) == cudaSuccess);
  Link first{link, 1}, *start;
  CHECK(cudaMalloc(&start, sizeof first) == cudaSuccess);
  CHECK(cudaMemcpy(start, &first, sizeof first, cudaMemcpyHostToDevice) == cudaSuccess);
  sum_of_list<<<1, 1>>>(start, out.data);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  std::printf("%d\n", link->value);
}

__global__ void jump(void (*function)()) { function(); }

CASE(a_kernel_jumps_into_memory) {
  Device<int> out(1);
  jump<<<1, 1>>>(reinterpret_cast<void (*)()>(out.data));
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
}

CASE(the_host_asks_for_no_protection_and_reads_device_memory) {
  CHECK(setenv("EMULATOR_PROTECT", "0", 1) == 0);
  float* memory;
  CHECK(cudaMalloc(&memory, 400) == cudaSuccess);
  CHECK(memory[3] == 0);
}

CASE(the_host_reads_device_memory) {
  float* ptr;
  CHECK(cudaMalloc(&ptr, 400) == cudaSuccess);
  std::printf("%f\n", ptr[3]);
}

__global__ void write_at(float* out, int64_t i) {
  if (threadIdx.x == 5) out[i] = 1;
}

static void illegal(float* out, int64_t i) {
  write_at<<<300, 32>>>(out, i);  // enough for several cores
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  write_at<<<3, 32>>>(out, 0);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
}

CASE(a_kernel_writes_past_the_end) {
  Device<float> out(1024);
  illegal(out.data, 1025);
}

CASE(a_kernel_writes_to_null) { illegal(nullptr, 0); }

CASE(a_kernel_writes_to_freed_memory) {
  float* ptr;
  CHECK(cudaMalloc(&ptr, 400) == cudaSuccess && cudaFree(ptr) == cudaSuccess);
  illegal(ptr, 0);
}

CASE(a_kernel_writes_anywhere) { illegal(reinterpret_cast<float*>(0x123456789000), 0); }

__device__ int recurse(volatile int* depth) {
  volatile int local[64];
  local[0] = *depth + 1;
  return local[0] == -1 ? 0 : recurse(local) + local[0];
}
__global__ void overflow(int* out) {
  volatile int depth = 0;
  out[0] = recurse(&depth);
}

CASE(a_kernel_overflows_its_stack) {
  Device<int> out(1);
  overflow<<<1, 1>>>(out.data);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
}
