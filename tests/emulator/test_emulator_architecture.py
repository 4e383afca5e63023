"""Sources that ask for __CUDA_ARCH__: what the host and what the device see is joined."""

import re

import pytest

ARCHITECTURE = r"""
#if __CUDA_ARCH__ < 600  // what the host sees, too
__device__ double atomicAdd(double* p, double v) { return *p += v; }
#endif
#ifdef __CUDA_ARCH__
__device__ int only() { return __CUDA_ARCH__; }
#endif
__host__ __device__ int both() {
#ifdef __CUDA_ARCH__
  return only();
#else
  return 7;
#endif
}
struct S { __host__ __device__ int f() const {
#if defined(__CUDA_ARCH__) && defined(__NVCC__) && defined(__CUDACC__)
  return 2; } };
#else
  return 1; } };
#endif
#ifdef __CUDA_ARCH__
#define BY(host, device) device
#else
#define BY(host, device) host
#endif
struct T {
  int v;
  __host__ __device__ T() : v{0} { v = BY(10, 20); }
  __host__ __device__ auto get() const -> int { return v + BY(1, 2); }
  __host__ __device__ int operator+(int b) const noexcept(true) { return b + BY(3, 4); }
};
__host__ __device__ inline int all() { T t; return t.get() * 10 + (t + 0); }
__global__ void k(int* p) { p[threadIdx.x] = threadIdx.x == 0 ? all() : both() + S().f(); }
#ifdef __CUDA_ARCH__
#define HERE 1
#else
#define HERE 0
#endif
int main() {
  int *p, values[2];
  cudaMalloc(&p, sizeof values);
  k<<<1, 2>>>(p);
  cudaMemcpy(values, p, sizeof values, cudaMemcpyDeviceToHost);
  printf("%d %d %d %d ", values[1], both(), S().f(), HERE);
  printf("%d %d\n", values[0], all());
}
"""


def test_the_device_sees_its_architecture_and_the_host_does_not(kit, tmp_path):
    (tmp_path / "a.cu").write_text(ARCHITECTURE)
    compiled = kit.compile_kernels(tmp_path / "a.cu", tmp_path.name)
    program = kit.link(compiled, tmp_path / "a")
    assert kit.call(program).stdout == "902 7 1 0 224 113\n"


def test_what_else_differs_on_the_device_is_refused(kit, tmp_path):
    text = "#ifdef __CUDA_ARCH__\nconstexpr int n = 3;\n#else\nconstexpr int n = 4;\n#endif\n"
    (tmp_path / "a.cu").write_text(text)
    done = kit.emucc("-c", tmp_path / "a.cu", "-o", tmp_path / "a.o")
    assert done.returncode == 1
    assert f"{tmp_path}/a.cu:2: error: this differs between host and device" in done.stderr


DEFAULTS = r"""
#ifdef __CUDA_ARCH__
#define W 32
#define LIST {1, 2}
#else
#define W 64
#define LIST {3, 4}
#endif
struct S {
  int by;
  __host__ __device__ int at(int x = 2 * W, int y = 1) const { return by * x + y; }
};
class O {
  int by;
 public:
  explicit __host__ __device__ O(int x = W) : by(x) {}
  template <int N> __host__ __device__ int operator()(int x = W + N) const { return by * x; }
};
template <int N> __host__ __device__ int f(int x = W) { return N + x; }
__host__ __device__ constexpr int c(int x = W) { return x + 1; }
__device__ int only(int x = W, int y = sizeof(int[W]));
__device__ int only(int x, int y) { return x * 1000 + y; }
__global__ void k(int* p, int given = W) {
  auto inner = [] __device__ (int x) { return x + W; };
  const int values[] = {f<1>(), c(), only(), S{3}.at(), given, inner(1),
                        O().operator()<1>()};
  for (int i = 0; i < 7; ++i) p[i] = values[i];
}
int main() {
  int *p, v[7];
  cudaMalloc(&p, sizeof v);
  k<<<1, 1>>>(p);
  cudaMemcpy(v, p, sizeof v, cudaMemcpyDeviceToHost);
  printf("%d %d %d %d %d %d %d, ", v[0], v[1], v[2], v[3], v[4], v[5], v[6]);
  printf("%d %d %d %d\n", f<1>(), c(), S{3}.at(), O().operator()<1>());
}
"""


def test_default_arguments_and_lambdas_may_differ(kit, tmp_path):
    (tmp_path / "a.cu").write_text(DEFAULTS)
    program = kit.link(kit.compile_kernels(tmp_path / "a.cu", tmp_path.name), tmp_path / "a")
    assert kit.call(program).stdout == "33 33 32128 193 64 33 1056, 65 65 385 4160\n"


@pytest.mark.parametrize(
    "head", ["template <int N = W> __device__ int f(int x)", "__device__ int f(int (&x)[W])",
             "struct V { int x, y; }; __device__ int f(V x = LIST)"]
)  # fmt: skip
def test_what_else_of_a_head_differs_is_refused(kit, tmp_path, head):
    text = DEFAULTS[: DEFAULTS.index("struct S")] + head + " { return 0; }\n"
    (tmp_path / "a.cu").write_text(text)
    done = kit.emucc("-c", tmp_path / "a.cu", "-o", tmp_path / "a.o")
    assert done.returncode == 1
    assert f"{tmp_path}/a.cu:9: error: this differs between host and device" in done.stderr


# What nvcc compiles although more than bodies of the device's functions differ.
DIFFERS = r"""
#include <cstdio>
#ifdef __CUDA_ARCH__
#define SEL(host, device) device
#define LOG(...)
#define HD __forceinline__ __host__ __device__
#else
#define SEL(host, device) host
#define LOG(...) printf(__VA_ARGS__)
#define HD inline __host__ __device__
#endif
HD int early(int x);
HD int early(int x) { return x + SEL(1, 2); }
void logs(int n = 3, const char* s = "x") { LOG("%d%s ", n, s); }
template <int N = 4> int logs_too() { LOG("%d ", N); return 5; }
struct H {
  int n = SEL((1), (1));
  H(int v = 2) : n{SEL(v, v + 1)} { LOG("H "); }
  virtual ~H() { LOG("~H "); }
  void log() const;
  int operator()(int i = 6) const { LOG("() "); return n + i; }
  struct Inner { void log() { LOG("inner "); } HD int at(int i) { return SEL(i, 2 * i); } };
};
void H::log() const { LOG("n=%d ", n); }
template <class T> class B {
  int w;
 public:
  T v;
  __host__ __device__ explicit B(T x) : w(7), v{SEL(x, x * 2)} { v += SEL(0, 100); }
  __device__ B(T x, int) : w(SEL(0, 1)), v(SEL(x, 3 * x)) {}
  __host__ __device__ T sum() const { return w + v; }
};
__global__ void k(int* p) {
  p[threadIdx.x] = early(1) + B<int>(3).sum() * 10 + B<int>(5, 0).v * 10000 + H::Inner().at(8);
}
int main() {
  int *p, value;
  cudaMalloc(&p, sizeof value);
  k<<<1, 1>>>(p);
  cudaMemcpy(&value, p, sizeof value, cudaMemcpyDeviceToHost);
  logs();
  H h;
  h.log();
  H::Inner().log();
  const int five = logs_too(), eight = h();
  printf("%d %d %d %d %d\n", value, early(1), five, eight, B<int>(3).sum() + H::Inner().at(8));
}
"""


def test_what_only_one_side_compiles_may_differ(kit, tmp_path):
    (tmp_path / "a.cu").write_text(DIFFERS)
    program = kit.link(kit.compile_kernels(tmp_path / "a.cu", tmp_path.name), tmp_path / "a")
    said = kit.call(program).stdout
    assert said == "3x H n=2 inner 4 () 151149 2 5 8 18\n~H "


CONSTANTS = r"""
__host__ __device__ constexpr int tile() {
#ifdef __CUDA_ARCH__
  return 16;
#else
  return 8;
#endif
}
__global__ void k(int* p) { p[0] = tile()%s; }
int main() {
  int *p, value;
  cudaMalloc(&p, sizeof value);
  k<<<1, 1>>>(p);
  cudaMemcpy(&value, p, sizeof value, cudaMemcpyDeviceToHost);
  printf("%%d %%d\n", value, tile());
}
"""


def test_a_constant_function_may_differ_unless_it_is_asked_for_a_constant(kit, tmp_path):
    (tmp_path / "a.cu").write_text(CONSTANTS % "")
    program = kit.link(kit.compile_kernels(tmp_path / "a.cu", tmp_path.name), tmp_path / "a")
    assert kit.call(program).stdout == "16 8\n"
    (tmp_path / "b.cu").write_text(CONSTANTS % "; __shared__ int s[tile()]; s[0] = 1; p[0] = s[0]")
    done = kit.emucc("-c", tmp_path / "b.cu", "-o", tmp_path / "b.o")
    assert done.returncode == 1
    assert re.search(r"b\.cu:2:.*differs_between_host_and_device", done.stderr)


@pytest.mark.parametrize(
    "text",
    [
        "constexpr int n{W};",
        "struct S { int v[W]; void f() {} };",
        "struct S { S() : v(W) {} __host__ __device__ S(int) : v{W, 1} {} int v[2]; };",
        "constexpr int f() { return W; }",
        "struct S { static constexpr int f(int n = 1) { return n + W; } };",
        "struct S { int v = W; S() {} };",
    ],
)
def test_what_both_sides_compile_may_not_differ(kit, tmp_path, text):
    defined = "#ifdef __CUDA_ARCH__\n#define W 32\n#else\n#define W 64\n#endif\n"
    (tmp_path / "a.cu").write_text(defined + text + "\n")
    done = kit.emucc("-c", tmp_path / "a.cu", "-o", tmp_path / "a.o")
    assert done.returncode == 1
    assert f"{tmp_path}/a.cu:6: error: this differs between host and device" in done.stderr
