// Variables of which the host has one copy and kernels another, and memory that kernels ask for.
#include <cublas_v2.h>

#include <algorithm>
#include <memory>
#include <new>

#include "check.h"

const int kMany = 3 << 20;

__device__ float many[kMany] = {1, 2};
__device__ float zeros[kMany];
__device__ int few = 5;
__constant__ float factors[4] = {1, 2, 3, 4};
__managed__ int shared_by_both = 3;
int of_host = 7;  // no kernel could use it on a GPU

__global__ void change() {
  many[kMany - 1] = few;
  zeros[kMany / 2] = few;
  of_host = ++few;
  ++shared_by_both;
}
__global__ void read(float* out) {
  out[0] = many[kMany - 1], out[1] = zeros[kMany / 2], out[2] = few, out[3] = of_host;
  out[4] = many[1], out[5] = factors[3], out[6] = shared_by_both;
}

static std::vector<float> seen() {
  Device<float> out(7);
  read<<<1, 1>>>(out.data);
  return out.get();
}

CASE(the_host_does_not_see_what_kernels_write_to_variables) {
  for (int i = 1; i < 5; ++i) {
    change<<<1, 1>>>();
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(many[kMany - 1] == 0 && zeros[kMany / 2] == 0 && few == 5 && of_host == 7);
    CHECK(many[0] == 1 && many[1] == 2 && shared_by_both == 3 + i);
    const std::vector<float> wanted = {4.f + i, 4.f + i, 5.f + i, 5.f + i, 2, 4, 3.f + i};
    CHECK(seen() == wanted);
  }
}

CASE(kernels_do_not_see_what_the_host_writes_to_variables) {
  many[kMany - 1] = 11, zeros[kMany / 2] = 12, few = 13, of_host = 14;
  const std::vector<float> wanted = {0, 0, 5, 7, 2, 4, 3};
  CHECK(seen() == wanted);
  CHECK(many[kMany - 1] == 11 && zeros[kMany / 2] == 12 && few == 13 && of_host == 14);
}

static float table[4] = {1, 1, 1, 1};  // of the host

CASE(copies_go_to_what_kernels_have) {
  table[2] = 8;
  CHECK(cudaMemcpyToSymbol(factors, table, sizeof table) == cudaSuccess);
  CHECK(cudaMemcpyToSymbol(many, table + 2, 4, 4 * (kMany - 1)) == cudaSuccess);
  table[2] = 1, table[3] = 9;
  CHECK(cudaMemcpyToSymbol(factors, table + 3, 4, 12) == cudaSuccess);
  CHECK(seen()[0] == 8 && seen()[5] == 9 && factors[2] == 3);
  CHECK(cudaMemcpyFromSymbol(table, factors, sizeof table) == cudaSuccess);
  CHECK(table[0] == 1 && table[2] == 8 && table[3] == 9);
  CHECK(cudaMemcpyToSymbol(shared_by_both, &of_host, 4) == cudaSuccess && shared_by_both == 7);

  void* place;
  CHECK(cudaGetSymbolAddress(&place, many) == cudaSuccess);
  float* const all = static_cast<float*>(place);
  CHECK(cudaMemset(all + kMany - 1, 0, 4) == cudaSuccess && seen()[0] == 0);
  CHECK(cudaMemcpy(all + kMany - 1, table + 3, 4, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(cudaMemcpy(table, all + kMany - 1, 4, cudaMemcpyDefault) == cudaSuccess && table[0] == 9);
  CHECK(many[kMany - 1] == 0);
  CHECK(cudaMemcpyFromSymbol(all, few, 4, 0, cudaMemcpyDeviceToDevice) == cudaSuccess);
  float first = 0;
  CHECK(cudaMemcpyFromSymbol(&first, many, 4) == cudaSuccess);
  CHECK(*reinterpret_cast<int*>(&first) == 5 && many[0] == 1);
}

static float* factors_of_host() { return const_cast<float*>(factors); }

CASE(the_host_copies_its_own_of_the_same_name) {
  few = 21, factors_of_host()[1] = 22;
  CHECK(cudaMemcpyToSymbol(few, &few, sizeof few) == cudaSuccess);
  CHECK(cudaMemcpyToSymbolAsync(factors, factors, sizeof factors, 0, cudaMemcpyHostToDevice) ==
        cudaSuccess);
  change<<<1, 1>>>();
  CHECK(seen()[2] == 22 && seen()[5] == 4);
  CHECK(cudaMemcpyFromSymbol(&few, few, sizeof few) == cudaSuccess && few == 22);
  CHECK(cudaMemcpyFromSymbol(table, factors, sizeof table) == cudaSuccess && table[1] == 22);
}

__global__ void twice(float* values) { values[threadIdx.x] *= 2; }
alignas(4096) static float registered[3000];  // and what comes with them on their last page

CASE(what_is_registered_is_the_hosts_and_the_kernels) {
  CHECK(cudaHostRegister(registered, sizeof registered, cudaHostRegisterMapped) == cudaSuccess);
  void* there;
  CHECK(cudaHostGetDevicePointer(&there, registered, 0) == cudaSuccess);
  for (float i = 1; i < 4; ++i) {
    registered[31] = i;
    twice<<<1, 32>>>(static_cast<float*>(there));
    CHECK(cudaDeviceSynchronize() == cudaSuccess && registered[31] == 2 * i);
    CHECK(cudaMemset(there, 0, 4) == cudaSuccess && registered[0] == 0);
  }
  CHECK(cudaHostUnregister(registered) == cudaSuccess && registered[31] == 6);
  twice<<<1, 32>>>(registered);
  CHECK(cudaDeviceSynchronize() == cudaSuccess && registered[31] == 6);
}

CASE(graphs_and_streams_copy_them_too) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamCreate(&stream) == cudaSuccess);
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK(cudaMemcpyToSymbolAsync(few, &of_host, 4, 0, cudaMemcpyHostToDevice, stream) ==
        cudaSuccess);
  change<<<1, 1, 0, stream>>>();
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  for (of_host = 20; of_host < 23; ++of_host) {
    CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess && few == 5);
    CHECK(seen()[2] == of_host + 1 && seen()[0] == of_host);
  }
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

__device__ float a[6], x[3] = {1, 1, 1}, y[2];
static float one = 5;

CASE(cublas_works_on_what_kernels_have) {
  const float values[6] = {1, 2, 3, 4, 5, 6}, zero = 0;
  cublasHandle_t handle;
  void *on_a, *on_x, *on_y;
  CHECK(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  CHECK(cudaMemcpyToSymbol(a, values, sizeof values) == cudaSuccess);
  CHECK(cudaGetSymbolAddress(&on_a, a) == cudaSuccess);
  CHECK(cudaGetSymbolAddress(&on_x, x) == cudaSuccess);
  CHECK(cudaGetSymbolAddress(&on_y, y) == cudaSuccess);
  float *const A = static_cast<float*>(on_a), *const X = static_cast<float*>(on_x),
               *const Y = static_cast<float*>(on_y);
  const auto results = [] {
    float got[2];
    CHECK(cudaMemcpyFromSymbol(got, y, sizeof got) == cudaSuccess && y[0] == 0);
    return std::vector<float>(got, got + 2);
  };
  const std::vector<float> wanted = {9, 12};
  const float scale = 1;
  CHECK(cublasSgemv(handle, CUBLAS_OP_N, 2, 3, &scale, A, 2, X, 1, &zero, Y, 1) ==
        CUBLAS_STATUS_SUCCESS);
  CHECK(results() == wanted);
  one = 2;  // a variable of the host's
  CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 1, 3, &one, A, 2, X, 3, &zero, Y, 2) ==
        CUBLAS_STATUS_SUCCESS);
  CHECK(results() == std::vector<float>({18, 24}));
  Device<float> on_device(std::vector<float>{1, 2});
  CHECK(cublasSscal(handle, 2, &one, on_device.data, 1) == CUBLAS_STATUS_SUCCESS);
  CHECK(on_device.get() == std::vector<float>({2, 4}));
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
}

static float result, cosine = 3, sine = 4;
static int index_found;

CASE(cublas_reads_and_writes_numbers_of_the_host) {
  const float values[3] = {1, -2, 2}, ones[3] = {1, 1, 1};
  cublasHandle_t handle;
  void *on_x, *on_y;
  CHECK(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  CHECK(cudaMemcpyToSymbol(x, values, sizeof values) == cudaSuccess);
  CHECK(cudaGetSymbolAddress(&on_x, x) == cudaSuccess);
  CHECK(cudaGetSymbolAddress(&on_y, y) == cudaSuccess);
  float *const X = static_cast<float*>(on_x), *const Y = static_cast<float*>(on_y);
  CHECK(cublasSnrm2(handle, 3, X, 1, &result) == CUBLAS_STATUS_SUCCESS && result == 3);
  CHECK(cublasSdot(handle, 3, X, 1, X, 1, &result) == CUBLAS_STATUS_SUCCESS && result == 9);
  CHECK(cublasIsamax(handle, 3, X, 1, &index_found) == CUBLAS_STATUS_SUCCESS && index_found == 2);
  one = 2;
  CHECK(cublasSscal(handle, 3, &one, X, 1) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasSasum(handle, 3, X, 1, &result) == CUBLAS_STATUS_SUCCESS && result == 10);
  static float a, b;
  CHECK(cublasSrotg(handle, &cosine, &sine, &a, &b) == CUBLAS_STATUS_SUCCESS && cosine == 5);

  // Numbers of the device, which are variables, for operands that are none.
  CHECK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE) == CUBLAS_STATUS_SUCCESS);
  Device<float> on_device(std::vector<float>(ones, ones + 3));
  CHECK(cublasSscal(handle, 3, X, on_device.data, 1) == CUBLAS_STATUS_SUCCESS);
  CHECK(on_device.get() == std::vector<float>({2, 2, 2}));
  CHECK(cublasSdot(handle, 3, on_device.data, 1, X, 1, Y) == CUBLAS_STATUS_SUCCESS && y[0] == 0);
  CHECK(cudaMemcpyFromSymbol(&result, y, 4) == cudaSuccess && result == 4);
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
}

struct Node {
  int value;
  Node* next;
};
__device__ Node* list;
__device__ int* numbers;

__global__ void push(int value) {
  list = new Node{value, list};
  if (numbers == nullptr) numbers = static_cast<int*>(malloc(100 * sizeof(int)));
  if (numbers != nullptr) numbers[value] = value;
}
__global__ void drop(int* sum) {
  *sum = 0;
  while (list != nullptr) {
    Node* const old = list;
    *sum += old->value + 100 * numbers[old->value];
    list = old->next;
    delete old;
  }
  free(numbers);
  numbers = nullptr;
}

CASE(memory_that_kernels_ask_for_stays_until_they_free_it) {
  Device<int> sum(1);
  int64_t before = emulator_cuda_malloc_count();
  for (int round = 0; round < 3; ++round) {
    for (int i = 1; i <= 50; ++i) push<<<1, 1>>>(i);
    drop<<<1, 1>>>(sum.data);
    CHECK(sum.get()[0] == 101 * 50 * 51 / 2);
  }
  CHECK(emulator_cuda_malloc_count() == before && list == nullptr);
  std::vector<std::unique_ptr<int>> of_host;  // the host's own
  for (int i = 0; i < 1000; ++i) of_host.emplace_back(new int(i));
  CHECK(*of_host[999] == 999);
}

struct alignas(128) Wide {
  int value;
};
__device__ void* pieces[6];

__global__ void get_pieces() {
  pieces[0] = new (std::nothrow) int[10];
  pieces[1] = new Wide;
  pieces[2] = new Wide[3];
  pieces[3] = calloc(10, 4);
  pieces[4] = new std::vector<int>(20, 5);
  pieces[5] = new char[2 << 20];
}
__global__ void free_pieces(int* sum) {
  *sum = static_cast<int*>(pieces[3])[9] + static_cast<std::vector<int>*>(pieces[4])->at(19);
  delete[] static_cast<int*>(pieces[0]);
  delete static_cast<Wide*>(pieces[1]);
  delete[] static_cast<Wide*>(pieces[2]);
  free(pieces[3]);
  delete static_cast<std::vector<int>*>(pieces[4]);
  delete[] static_cast<char*>(pieces[5]);
}

CASE(whatever_kernels_ask_for_is_memory_of_the_device) {
  Device<int> sum(1);
  void *first[6], *got[6];
  for (int round = 0; round < 3; ++round) {
    get_pieces<<<1, 1>>>();
    CHECK(cudaMemcpyFromSymbol(got, pieces, sizeof got) == cudaSuccess);
    if (round == 0) std::copy(got, got + 6, first);
    CHECK(std::is_permutation(got, got + 6, first));  // given back, and out again
    for (void* ptr : got) {
      cudaPointerAttributes attributes;
      CHECK(cudaPointerGetAttributes(&attributes, ptr) == cudaSuccess);
      CHECK(attributes.type == cudaMemoryTypeDevice);
    }
    CHECK(reinterpret_cast<uintptr_t>(got[1]) % 128 == 0);
    CHECK(reinterpret_cast<uintptr_t>(got[2]) % 128 == 0);
    free_pieces<<<1, 1>>>(sum.data);
    CHECK(sum.get()[0] == 5);
  }
  delete[] new (std::nothrow) int[10];  // the host's own
  delete new Wide;
}

__global__ void take_all(int* got) {
  const size_t size = 64 << 20;
  while (void* const piece = malloc(size)) *static_cast<void**>(piece) = list, list = (Node*)piece;
  for (; list != nullptr; ++*got) {
    void* const piece = list;
    list = *static_cast<Node**>(piece);
    free(piece);
  }
  char* const none = new char[size_t(1) << 40];
  if (none == nullptr) *got += 1000;
}

CASE(a_heap_without_memory_gives_null) {
  Device<int> got(std::vector<int>{0});
  for (int round = 0; round < 2; ++round) {
    CHECK(cudaMemset(got.data, 0, 4) == cudaSuccess);
    take_all<<<1, 1>>>(got.data);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(got.get()[0] == 1003);
  }
}

__global__ void free_twice(void* of_the_host) {
  void* const piece = malloc(10);
  free(piece);
  free(piece);
  free(of_the_host);  // which may end the kernel
}
__global__ void write_past_the_end() {
  char* volatile pieces[3];
  for (auto& piece : pieces) piece = static_cast<char*>(malloc(10));
  free(pieces[1]);
  for (int i = 0; i < 100; ++i) pieces[0][i] = 'A';
  for (int i = 0; i < 4; ++i) pieces[0] = static_cast<char*>(malloc(10));
  *pieces[0] = 0;
}

CASE(a_spoilt_heap_hangs_nobody) {
  Device<char> data(4096);
  write_past_the_end<<<1, 1>>>();
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  free_twice<<<1, 1>>>(data.data);
  cudaDeviceSynchronize();
  CHECK(cudaDeviceReset() == cudaSuccess);
  push<<<1, 1>>>(1);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

CASE(the_host_reads_what_a_kernel_got) {
  push<<<1, 1>>>(1);
  int* there;
  CHECK(cudaMemcpyFromSymbol(&there, numbers, sizeof there) == cudaSuccess);
  std::printf("%d\n", there[1]);
}

CASE(a_device_reset_takes_the_heap_with_it) {
  push<<<1, 1>>>(1);
  CHECK(cudaDeviceReset() == cudaSuccess);
  Device<int> sum(1);
  CHECK(cudaMemset(sum.data, 0, 4) == cudaSuccess);
}
