// How a program may end, what it may leave behind, and errors that it reads or not: a case each,
// named by the first argument. Most have written past the end of a buffer before.
#include <unistd.h>

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

__global__ void fill(float* out) { out[threadIdx.x] = 1; }  // past the end
__global__ void assert_below(int n) {
  int i = threadIdx.x;
  assert(i < n);  // fails
}
__global__ void trap_at(int n) {
  if (threadIdx.x == n) __trap();  // trap
}
__global__ void write_at(float* out, long long i) { out[i] = 1; }  // astray
__device__ long long deeper(long long n, volatile long long* seen) {
  volatile long long here[16];
  here[n % 16] = n;
  if (n > 0) deeper(n - 1, here);
  return here[n % 16] + (seen != nullptr ? seen[0] : 0);
}
__global__ void recurse(long long* out, long long n) { *out = deeper(n, nullptr); }  // too deep

static bool is(const char* a, const char* b) { return std::strcmp(a, b) == 0; }
static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

static void write_past_the_end() {
  float* out;
  check(cudaMalloc(&out, 64));
  fill<<<1, 32>>>(out);
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
  check(cudaFree(out));
}

static void end(const char* how) {
  if (is(how, "abort")) std::abort();
  if (is(how, "exit")) std::exit(1);
  if (is(how, "_exit")) _exit(1);
  if (is(how, "quick_exit")) std::quick_exit(1);
  if (is(how, "exception")) throw std::runtime_error("nobody catches this");
  if (is(how, "crash")) *static_cast<volatile int*>(nullptr) = 1;
  if (is(how, "host assertion")) assert(how == nullptr);  // on the host
  if (is(how, "wait")) {
    std::printf("ready\n");
    std::fflush(stdout);
    sleep(60);
  }
}

// Memory that is never freed.
static int leave_memory(const char* how) {
  float* kept;
  check(cudaMalloc(&kept, 64));  // kept
  if (is(how, "exit 0")) std::exit(0);
  if (is(how, "return 1")) return 1;
  if (is(how, "kernel failed")) {
    assert_below<<<1, 32>>>(5);
    check(cudaDeviceSynchronize());
    check(cudaFree(kept));
  }
  return 0;
}

static void go_astray(const char* how) {
  float *out, *both, host[64];
  check(cudaMalloc(&out, 64));
  check(cudaMallocManaged(&both, 64));
  if (is(how, "behind managed")) write_at<<<1, 1>>>(both, 16);
  if (is(how, "before managed")) write_at<<<1, 1>>>(both, -5);
  if (is(how, "beside managed")) write_at<<<1, 1>>>(both + 1024, 0);
  long long stride = is(how, "far") ? 1LL << 40 : is(how, "far before") ? -(1LL << 32) : 0;
  if (is(how, "host memory")) write_at<<<1, 1>>>(host, 3);
  if (is(how, "null")) write_at<<<1, 1>>>(nullptr, 3);
  if (is(how, "behind null")) write_at<<<1, 1>>>(nullptr, 1 << 20);
  if (stride != 0) write_at<<<1, 1>>>(out, stride);
  check(cudaDeviceSynchronize());
  cudaFree(both);
  cudaFree(out);  // after an error it does nothing
}

static void forget_errors(const char* how) {
  float *out, host[4];
  check(cudaMalloc(&out, 16));
  if (is(how, "nobody")) {
    cudaMemcpy(host, out, 16, cudaMemcpyKind(9));  // unread copy
    cudaMemset(nullptr, 0, 4);                     // unread fill
  }
  if (is(how, "one of two")) {
    cudaEventRecord(nullptr);   // lost
    cudaEventDestroy(nullptr);  // read
    check(cudaGetLastError());
  }
  if (is(how, "in a thread")) std::thread([] { cudaSetDevice(7); }).join();  // unread in a thread
  if (is(how, "launch")) fill<<<1, 4096>>>(out);                             // refused
  check(cudaFree(out));
}

// All of these look at what goes wrong.
static void read_errors() {
  float* out = nullptr;
  if (cudaMalloc(&out, size_t(1) << 60) != cudaSuccess) check(cudaMalloc(&out, 16));
  cudaError_t error = cudaMemset(nullptr, 0, 4);
  check(error);
  check(cudaMemset(nullptr, 0, 4)), (void)error;
  switch (cudaSetDevice(7)) {
    default:
      break;
  }
  cudaEventRecord(nullptr);
  check(cudaPeekAtLastError());
  check(cudaGetLastError());
  fill<<<1, 4096>>>(out);
  assert_below<<<1, 4>>>(4);  // a good launch hides nothing
  check(cudaGetLastError());
  check(cudaFree(out));
}

extern "C" int run_case(const char* name, const char* how) {
  if (is(name, "ends")) write_past_the_end(), end(how);
  if (is(name, "leaves")) return leave_memory(how);
  if (is(name, "astray")) go_astray(how);
  if (is(name, "forgets")) forget_errors(how);
  if (is(name, "reads")) read_errors();
  if (is(name, "recurses")) {
    long long* out;
    check(cudaMalloc(&out, sizeof *out));
    recurse<<<1, 1>>>(out, 1 << 20);
    check(cudaDeviceSynchronize());
    cudaFree(out);
  }
  if (is(name, "asserts")) {
    is(how, "trap") ? trap_at<<<1, 32>>>(5) : assert_below<<<1, 32>>>(5);
    check(cudaDeviceSynchronize());
  }
  return 0;
}

#ifndef NO_MAIN
int main(int count, char** words) { return run_case(words[1], count > 2 ? words[2] : ""); }
#endif
