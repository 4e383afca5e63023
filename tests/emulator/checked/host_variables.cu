// Variables of a program that kernels read: a case each, named by the first argument.
#include <cstdio>
#include <cstring>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

struct Settings {
  int least, step;
};

static int by_name[2] = {3, 4};
static Settings by_pointer = {5, 6};
namespace deep {
Settings* behind_a_pointer = new Settings{7, 8};
}
static int registered[1024];
const int constant = 9;
constexpr int constants[2] = {10, 11};
__device__ int of_device[2] = {12, 13};
static __constant__ Settings of_constants = {14, 15};
__managed__ int of_both = 16;
#define ON_DEVICE __device__
#define TABLE(type, name) static __constant__ type name[2]
ON_DEVICE int by_macro[2] = {17, 18};
TABLE(int, by_table) = {19, 20};

__global__ void reads_by_name(int* out) {
  out[threadIdx.x] = by_name[1];  // by name
}
__global__ void reads(int* out, const Settings* settings) {
  out[threadIdx.x] = settings->step;  // by pointer
}
__global__ void reads_what_it_may(int* out, const int* both) {
  out[threadIdx.x] = constant + constants[1] + of_device[1] + of_constants.step + of_both + both[3];
  out[threadIdx.x] += by_macro[1] + by_table[1];
}

static int* out;

static void host_by_name() { reads_by_name<<<1, 32>>>(out); }
static void host_by_pointer() { reads<<<1, 32>>>(out, &by_pointer); }
static void host_by_new() { reads<<<1, 32>>>(out, deep::behind_a_pointer); }
static void what_it_may() {
  int* both;
  check(cudaHostRegister(registered, sizeof registered, cudaHostRegisterMapped));
  check(cudaHostGetDevicePointer(reinterpret_cast<void**>(&both), registered, 0));
  reads_what_it_may<<<1, 32>>>(out, both);
  check(cudaDeviceSynchronize());
  check(cudaHostUnregister(registered));
}

int main(int, char** argv) {
  check(cudaMalloc(&out, 32 * sizeof(int)));
  if (!std::strcmp(argv[1], "by_name")) host_by_name();
  if (!std::strcmp(argv[1], "by_pointer")) host_by_pointer();
  if (!std::strcmp(argv[1], "by_new")) host_by_new();
  if (!std::strcmp(argv[1], "what_it_may")) what_it_may();
  check(cudaDeviceSynchronize());
  check(cudaFree(out));
}
