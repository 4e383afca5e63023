// Calls between the host and the device; in each title what nvcc 13 says of it (cases.py).

// ---- a function that depends on a template's argument: nvcc refuses
struct DependA {
  static int get() { return 1; }
};
template <typename T>
__global__ void depend_k(int* p) {
  p[0] = T::get();
}
void depend_start() { depend_k<DependA><<<1, 1>>>(nullptr); }

// ---- a function that depends on a template's argument, of the device: nvcc accepts
struct DependB {
  __device__ static int get_b() { return 1; }
};
template <typename T>
__global__ void depend_b_k(int* p) {
  p[0] = T::get_b();
}
void depend_b_start() { depend_b_k<DependB><<<1, 1>>>(nullptr); }

// ---- constexpr, with a number that is known only at run time: nvcc refuses without --expt-relaxed-constexpr
constexpr int constexpr_f(int x) { return x + 1; }
__global__ void constexpr_k(int* p) { p[0] = constexpr_f(p[0]); }

// ---- constexpr, with a number that is known: nvcc refuses without --expt-relaxed-constexpr, the emulated GPU accepts
constexpr int known_f(int x) { return x + 1; }
__global__ void known_k(int* p) { p[0] = known_f(3); }

// ---- constexpr, as a constant: nvcc refuses without --expt-relaxed-constexpr, the emulated GPU accepts
constexpr int constant_f(int x) { return x + 1; }
__global__ void constant_k(int* p) {
  constexpr int c = constant_f(3);
  p[0] = c;
}

// ---- constexpr, as the size of an array: nvcc refuses without --expt-relaxed-constexpr, the emulated GPU accepts
constexpr int size_f(int x) { return x + 1; }
__global__ void size_k(int* p) {
  int a[size_f(3)] = {};
  p[0] = a[1];
}

// ---- constexpr of the device, from the host: nvcc refuses without --expt-relaxed-constexpr
__device__ constexpr int constexpr_there_f(int x) { return x + 1; }
int constexpr_there(int x) { return constexpr_there_f(x); }

// ---- constexpr of the host that calls another, from a kernel: nvcc refuses without --expt-relaxed-constexpr
int not_constant(int x) { return x; }
constexpr int mixed_f(int x) { return x > 0 ? x : not_constant(x); }
__global__ void mixed_k(int* p) { p[0] = mixed_f(p[0]); }

// ---- sizeof and decltype: nvcc accepts
int unevaluated_f(int x) { return x; }
__global__ void unevaluated_k(int* p) {
  decltype(unevaluated_f(1)) x = 2;
  p[0] = x + sizeof(unevaluated_f(3)) + noexcept(unevaluated_f(3));
}

// ---- if (false): nvcc refuses
int never_f(int x) { return x; }
__global__ void never_k(int* p) {
  if (false) p[0] = never_f(p[0]);
}

// ---- false &&: nvcc accepts
int short_f(int x) { return x; }
__global__ void short_k(int* p) {
  if (false && short_f(p[0])) p[0] = 1;
}

// ---- the branch of an if constexpr that a template leaves out: nvcc accepts
int left_out_f(int x) { return x; }
template <bool host>
__global__ void left_out_k(int* p) {
  if constexpr (host) p[0] = left_out_f(p[0]);
}
void left_out_start() { left_out_k<false><<<1, 1>>>(nullptr); }

// ---- the branch of an if constexpr that a template takes: nvcc refuses
int taken_f(int x) { return x; }
template <bool host>
__global__ void taken_k(int* p) {
  if constexpr (host) p[0] = taken_f(p[0]);
}
void taken_start() { taken_k<true><<<1, 1>>>(nullptr); }

// ---- the branch of an if constexpr that no template leaves out: nvcc accepts
int discarded_f(int x) { return x; }
__global__ void discarded_k(int* p) {
  if constexpr (sizeof(int) == 3) p[0] = discarded_f(p[0]);
}

// ---- __CUDA_ARCH__ chooses, in a function of both: nvcc accepts
int arch_f(int x) { return x; }
__host__ __device__ int arch_both(int x) {
#ifdef __CUDA_ARCH__
  return x;
#else
  return arch_f(x);
#endif
}
__global__ void arch_k(int* p) { p[0] = arch_both(p[0]); }

// ---- __CUDA_ARCH__ chooses, in a kernel: nvcc accepts
int arch_kernel_f(int x) { return x; }
__global__ void arch_kernel_k(int* p) {
#ifndef __CUDA_ARCH__
  p[0] = arch_kernel_f(p[0]);
#endif
}

// ---- the address of a function of the host: nvcc refuses, the emulated GPU accepts
int address_f(int x) { return x; }
__global__ void address_k(int* p) {
  int (*f)(int) = address_f;
  p[0] = f == nullptr;
}

// ---- a function of the host as an argument of a template: nvcc refuses
int argument_f(int x) { return x; }
template <int (*f)(int)>
__global__ void argument_k(int* p) {
  p[0] = f(p[0]);
}
void argument_start() { argument_k<argument_f><<<1, 1>>>(nullptr); }

// ---- a function of the host with a template of any number of arguments: nvcc refuses
template <typename... T>
int pack_f(T... x) {
  return (0 + ... + x);
}
__global__ void pack_k(int* p) { p[0] = pack_f(p[0], 1); }

// ---- what is never reached: nvcc refuses
int unreached_f(int x) { return x; }
__global__ void unreached_k(int* p) {
  return;
  p[0] = unreached_f(p[0]);
}

// ---- the host calls a function of the device where __CUDA_ARCH__ is, in a function of both: nvcc
// accepts
__device__ int guarded_f(int x) { return x; }
__host__ __device__ int guarded(int x) {
#ifdef __CUDA_ARCH__
  return guarded_f(x);
#else
  return x;
#endif
}

// ---- constexpr in static_assert, if constexpr and an argument of a template: nvcc refuses without --expt-relaxed-constexpr, the emulated GPU accepts
constexpr int meta_f(int x) { return x + 1; }
template <int n>
struct Meta {
  int v[n];
};
__global__ void meta_k(int* p) {
  static_assert(meta_f(1) == 2);
  if constexpr (meta_f(1) == 2) p[0] = sizeof(Meta<meta_f(2)>);
}
