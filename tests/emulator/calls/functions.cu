// Calls between the host and the device; in each title what nvcc 13 says of it (cases.py).

// ---- a function of the host, from a kernel: nvcc refuses
int plain_f(int x) { return x; }
__global__ void plain_k(int* p) { p[0] = plain_f(p[0]); }

// ---- a function of the host, from a function of the device: nvcc refuses
int plain_d_f(int x) { return x; }
__device__ int plain_d(int x) { return plain_d_f(x); }

// ---- static and inline functions of the host: nvcc refuses
static inline int static_f(int x) { return x; }
__global__ void static_k(int* p) { p[0] = static_f(p[0]); }

// ---- a function that says __host__: nvcc refuses
__host__ int said_f(int x) { return x; }
__global__ void said_k(int* p) { p[0] = said_f(p[0]); }

// ---- a function of the device, from a kernel: nvcc accepts
__device__ int device_f(int x) { return x; }
__global__ void device_k(int* p) { p[0] = device_f(p[0]); }

// ---- a function of both, from a kernel: nvcc accepts
__host__ __device__ int both_f(int x) { return x; }
__global__ void both_k(int* p) { p[0] = both_f(p[0]); }

// ---- a function of the device, from the host: nvcc refuses
__device__ int from_host_f(int x) { return x; }
int from_host(int x) { return from_host_f(x); }

// ---- a function of the host, from a function of both: nvcc accepts
int warned_f(int x) { return x; }
__host__ __device__ int warned(int x) { return warned_f(x); }

// ---- a function of the device, from a function of both: nvcc refuses, the emulated GPU accepts
__device__ int warned_device_f(int x) { return x; }
__host__ __device__ int warned_device(int x) { return warned_device_f(x); }

// ---- a function of both that calls the host's, from a kernel: nvcc accepts
int through_f(int x) { return x; }
__host__ __device__ int through_both(int x) { return through_f(x); }
__global__ void through_k(int* p) { p[0] = through_both(p[0]); }

// ---- a template of the host, from a kernel: nvcc refuses
template <typename T>
T template_f(T x) {
  return x;
}
__global__ void template_k(int* p) { p[0] = template_f(p[0]); }

// ---- a template of the device, from a kernel: nvcc accepts
template <typename T>
__device__ T device_template_f(T x) {
  return x;
}
__global__ void device_template_k(int* p) { p[0] = device_template_f(p[0]); }

// ---- a template of the device, from the host: nvcc refuses
template <typename T>
__device__ T host_template_f(T x) {
  return x;
}
int host_template(int x) { return host_template_f(x); }

// ---- a function of the host, from a template of a kernel that is launched: nvcc refuses
int instance_f(int x) { return x; }
template <typename T>
__global__ void instance_k(T* p) {
  p[0] = instance_f(p[0]);
}
void instance_start() { instance_k<int><<<1, 1>>>(nullptr); }

// ---- a function of the host, from a template of a kernel that nobody launches: nvcc accepts
int dormant_f(int x) { return x; }
template <typename T>
__global__ void dormant_k(T* p) {
  p[0] = dormant_f(p[0]);
}

// ---- an overload of the host, next to one of the device for another type: nvcc refuses, the emulated GPU accepts
int overload_f(int x) { return x; }
__device__ float overload_f(float x) { return x; }
__global__ void overload_k(int* p) { p[0] = overload_f(p[0]); }

// ---- an overload of the device, next to one of the host for another type: nvcc accepts
int other_overload_f(int x) { return x; }
__device__ float other_overload_f(float x) { return x; }
__global__ void other_overload_k(float* p) { p[0] = other_overload_f(p[0]); }

// ---- a specialisation of the host: nvcc accepts
template <typename T>
__device__ T special_f(T x) {
  return x;
}
template <>
float special_f<float>(float x) {
  return x + 1;
}
__global__ void special_k(float* p) { p[0] = special_f(p[0]); }

// ---- a lambda in a kernel: nvcc accepts
__global__ void lambda_k(int* p) {
  auto f = [](int x) { return x + 1; };
  p[0] = f(p[0]);
}

// ---- a lambda in a kernel that calls the host: nvcc refuses
int lambda_host_f(int x) { return x; }
__global__ void lambda_host_k(int* p) {
  auto f = [=](int x) { return lambda_host_f(x) + p[1]; };
  p[0] = f(p[0]);
}

// ---- a lambda in a lambda in a function of the device that calls the host: nvcc refuses
int nested_f(int x) { return x; }
__device__ int nested_lambda(int y) {
  auto f = [=](int x) { return [=] { return nested_f(x) + y; }(); };
  return f(y);
}

// ---- a lambda in a function of the host that calls the device: nvcc refuses
__device__ int lambda_there_f(int x) { return x; }
int lambda_there(int x) {
  auto f = [](int y) { return lambda_there_f(y); };
  return f(x);
}

// ---- a lambda in a function of both that calls the host: nvcc accepts
int lambda_both_f(int x) { return x; }
__host__ __device__ int lambda_both(int y) {
  auto f = [=](int x) { return lambda_both_f(x); };
  return f(y);
}

// ---- in namespaces: nvcc refuses
namespace outer {
namespace inner {
int namespace_f(int x) { return x; }
}  // namespace inner
}  // namespace outer
__global__ void namespace_k(int* p) { p[0] = outer::inner::namespace_f(p[0]); }

// ---- by using: nvcc refuses
namespace used {
int using_f(int x) { return x; }
}  // namespace used
using used::using_f;
__global__ void using_k(int* p) { p[0] = using_f(p[0]); }

// ---- two functions of the host of one name, in two namespaces, one of the device: nvcc accepts
namespace here {
int twin_f(int x) { return x; }
}  // namespace here
namespace there {
__device__ int twin_f(int x) { return x; }
}  // namespace there
__global__ void twin_k(int* p) { p[0] = there::twin_f(p[0]); }

// ---- a declaration of the host that another file defines: nvcc refuses, the emulated GPU accepts
int elsewhere_f(int x);
__global__ void elsewhere_k(int* p) { p[0] = elsewhere_f(p[0]); }

// ---- a function that is declared for the device first, and defined without the word: nvcc accepts
__device__ int first_f(int x);
int first_f(int x) { return x; }
__global__ void first_k(int* p) { p[0] = first_f(p[0]); }

// ---- a recursion of the host: nvcc refuses
int recursive_f(int x) { return x > 0 ? recursive_f(x - 1) : 0; }
__global__ void recursive_k(int* p) { p[0] = recursive_f(p[0]); }

// ---- a macro that calls the host: nvcc refuses
int macro_f(int x) { return x; }
#define MACRO_F(x) macro_f(x)
__global__ void macro_k(int* p) { p[0] = MACRO_F(p[0]); }

// ---- a macro that says __device__: nvcc accepts
#define FOR_DEVICE __host__ __device__ __forceinline__
FOR_DEVICE int for_device_f(int x) { return x; }
__global__ void for_device_k(int* p) { p[0] = for_device_f(p[0]); }

// ---- extern "C": nvcc refuses
extern "C" int c_f(int x) { return x; }
__global__ void c_k(int* p) { p[0] = c_f(p[0]); }

// ---- a function with a type behind ->: nvcc refuses
auto arrow_f(int x) -> int { return x; }
__global__ void arrow_k(int* p) { p[0] = arrow_f(p[0]); }

// ---- a function whose type is auto: nvcc refuses
auto auto_f(int x) { return x; }
__global__ void auto_k(int* p) { p[0] = auto_f(p[0]); }

// ---- the word __device__ behind the type: nvcc accepts
int __device__ behind_f(int x) { return x; }
__global__ void behind_k(int* p) { p[0] = behind_f(p[0]); }

// ---- a device function that nobody calls: nvcc accepts
int unused_f(int x) { return x; }
static __device__ int unused_d(int x) { return unused_f(x); }

// ---- a max of the program's own, where CUDA has one: nvcc accepts
template <typename T>
T max(T a, T b) {
  return a > b ? a : b;
}
__global__ void own_max_k(int* p) { p[0] = max(p[0], p[1]); }

// ---- a lambda for the device in a function of the host: nvcc accepts
template <typename F>
__global__ void extended_k(F f, int* p) {
  p[0] = f(p[0]);
}
__device__ int extended_f(int x) { return x; }
void extended_start() {
  extended_k<<<1, 1>>>([=] __device__(int x) { return extended_f(x); }, nullptr);
}

// ---- a template that is said to be for the device first: nvcc accepts
template <typename T>
__device__ T announced_f(T x);
template <typename T>
T announced_f(T x) {
  return x;
}
__global__ void announced_k(int* p) { p[0] = announced_f(p[0]); }

// ---- a kernel that the host calls by a function: nvcc accepts
__global__ void started_k(int* p) { p[0] = 1; }
void start_it(int* p) { started_k<<<1, 1>>>(p); }

// ---- one body of a template for both: nvcc accepts
template <typename T>
__host__ __device__ T any_f(T x) {
  return x;
}
int any_host(int x) { return any_f(x); }
__global__ void any_k(int* p) { p[0] = any_f(p[0]); }

// ---- a function for the device that the host only names: nvcc accepts
__device__ int named_f(int x) { return x; }
unsigned long named_host() { return sizeof(named_f(3)); }
