/*!
 * \file cublas_vector.cc
 * \brief cuBLAS's functions of vectors.
 */
#include <cmath>

#include "counts.h"
#include "cublas_calls.h"
#include "cublas_capture.h"

namespace emulator {
namespace {

// Whether what lies where the pointer mode says is a variable of kernels.
bool is_kernel_variable(cublasHandle_t handle, const void* scalar) {
  return handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE && is_variable(scalar);
}

template <typename Function>
auto with_kernel_variables(bool wanted, Function function) {
  const KernelVariables variables(wanted);
  DeviceAccess access;
  return function();
}

// A function with one number as its result, which lies where the pointer mode says.
template <typename T, typename Result, typename Function>
cublasStatus_t reduce(cublasHandle_t handle, const char* name, int n, const T* x, int incx,
                      const T* y, Result* result, Function function) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_scalar(handle, result, sizeof(Result)));
  if (refuse_result_on_host(handle) != CUBLAS_STATUS_SUCCESS) return CUBLAS_STATUS_EXECUTION_FAILED;
  EMULATOR_CUBLAS_OPERANDS(name, vector("x", x, n, incx));
  const Result value = with_kernel_variables(is_variable(x) || is_variable(y),
                                             [&]() -> Result { return n > 0 ? function() : 0; });
  with_kernel_variables(is_kernel_variable(handle, result), [&] { *result = value; });
  if (handle->pointer_mode == CUBLAS_POINTER_MODE_HOST)
    add_to_count(Count::kBytesToHost, sizeof(Result));
  if (!is_replayed(handle))  // at least with a result on the host
    EMULATOR_CHECK(host_waits_for_stream(handle->stream));
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t axpy(const char* name, cublasHandle_t handle, int n, const T* alpha, const T* x,
                    int incx, T* y, int incy) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_scalar(handle, alpha, sizeof(T)));
  EMULATOR_CUBLAS_WORK_ON(name, vector("x", x, n, incx), vector("y", y, n, incy));
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  DeviceAccess access;
  Blas<T>::axpy(n, *alpha, x, incx, y, incy);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t scal(const char* name, cublasHandle_t handle, int n, const T* alpha, T* x,
                    int incx) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_scalar(handle, alpha, sizeof(T)));
  EMULATOR_CUBLAS_WORK_ON(name, vector("x", x, n, incx));
  if (n <= 0 || incx <= 0) return CUBLAS_STATUS_SUCCESS;
  DeviceAccess access;
  Blas<T>::scal(n, *alpha, x, incx);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t copy(const char* name, cublasHandle_t handle, int n, const T* x, int incx, T* y,
                    int incy) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_WORK_ON(name, vector("x", x, n, incx), vector("y", y, n, incy));
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  DeviceAccess access;
  Blas<T>::copy(n, x, incx, y, incy);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t swap(const char* name, cublasHandle_t handle, int n, T* x, int incx, T* y,
                    int incy) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_WORK_ON(name, vector("x", x, n, incx), vector("y", y, n, incy));
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  DeviceAccess access;
  Blas<T>::swap(n, x, incx, y, incy);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t dot(const char* name, cublasHandle_t handle, int n, const T* x, int incx, const T* y,
                   int incy, T* result) {
  EMULATOR_CHECK_HANDLE(handle);
  if (!is_dry_run()) EMULATOR_CUBLAS_OPERANDS(name, vector("y", y, n, incy));
  return reduce(handle, name, n, x, incx, y, result,
                [=] { return Blas<T>::dot(n, x, incx, y, incy); });
}

template <typename T>
cublasStatus_t nrm2(const char* name, cublasHandle_t handle, int n, const T* x, int incx,
                    T* result) {
  return reduce(handle, name, n, x, incx, x, result,
                [=] { return incx > 0 ? Blas<T>::nrm2(n, x, incx) : 0; });
}

template <typename T>
cublasStatus_t asum(const char* name, cublasHandle_t handle, int n, const T* x, int incx,
                    T* result) {
  return reduce(handle, name, n, x, incx, x, result,
                [=] { return incx > 0 ? Blas<T>::asum(n, x, incx) : 0; });
}

// The number, from 1 on, of the first element that is better than all before it. NaN never is, but
// for the first element.
template <typename T, typename Better>
cublasStatus_t index_of(const char* name, cublasHandle_t handle, int n, const T* x, int incx,
                        int* result, Better better) {
  return reduce(handle, name, n, x, incx, x, result, [=] {
    int found = 0;
    for (int i = 1; i < n && incx > 0; ++i)
      if (better(std::fabs(x[static_cast<int64_t>(i) * incx]),
                 std::fabs(x[static_cast<int64_t>(found) * incx])))
        found = i;
    return incx > 0 ? found + 1 : 0;
  });
}

template <typename T>
cublasStatus_t rot(const char* name, cublasHandle_t handle, int n, T* x, int incx, T* y, int incy,
                   const T* c, const T* s) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_scalar(handle, c, sizeof(T)) && is_scalar(handle, s, sizeof(T)));
  EMULATOR_CUBLAS_WORK_ON(name, vector("x", x, n, incx), vector("y", y, n, incy));
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  DeviceAccess access;
  Blas<T>::rot(n, x, incx, y, incy, *c, *s);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t rotg(const char* name, cublasHandle_t handle, T* a, T* b, T* c, T* s) {
  EMULATOR_CHECK_HANDLE(handle);
  for (const T* scalar : {a, b, c, s})
    EMULATOR_CUBLAS_REQUIRE(is_scalar(handle, scalar, sizeof(T)));
  // What lies on the host is computed there, also while a stream captures.
  if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE)
    EMULATOR_CUBLAS_OPERANDS(name, {"a", a, sizeof(T)});
  const KernelVariables variables(is_kernel_variable(handle, a));
  DeviceAccess access;
  Blas<T>::rotg(a, b, c, s);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t rotm(const char* name, cublasHandle_t handle, int n, T* x, int incx, T* y, int incy,
                    const T* param) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_scalar(handle, param, 5 * sizeof(T)));
  EMULATOR_CUBLAS_WORK_ON(name, vector("x", x, n, incx), vector("y", y, n, incy));
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  DeviceAccess access;
  Blas<T>::rotm(n, x, incx, y, incy, param);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t rotmg(const char* name, cublasHandle_t handle, T* d1, T* d2, T* x1, const T* y1,
                     T* param) {
  EMULATOR_CHECK_HANDLE(handle);
  for (const T* scalar :
       {static_cast<const T*>(d1), static_cast<const T*>(d2), static_cast<const T*>(x1), y1})
    EMULATOR_CUBLAS_REQUIRE(is_scalar(handle, scalar, sizeof(T)));
  EMULATOR_CUBLAS_REQUIRE(is_scalar(handle, param, 5 * sizeof(T)));
  if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE)
    EMULATOR_CUBLAS_OPERANDS(name, {"d1", d1, sizeof(T)});
  const KernelVariables variables(is_kernel_variable(handle, d1));
  DeviceAccess access;
  Blas<T>::rotmg(d1, d2, x1, *y1, param);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace
}  // namespace emulator

#define EMULATOR_DEFINE(T, letter)                                                                \
  cublasStatus_t cublas##letter##axpy(cublasHandle_t handle, int n, const T* alpha, const T* x,   \
                                      int incx, T* y, int incy) {                                 \
    EMULATOR_HOST_CALL();                                                                         \
    return EMULATOR_CUBLAS(axpy, "cublas" #letter "axpy", n, emulator::number(alpha), x, incx, y, \
                           incy);                                                                 \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                              \
  cublasStatus_t cublas##letter##scal(cublasHandle_t handle, int n, const T* alpha, T* x,       \
                                      int incx) {                                               \
    EMULATOR_HOST_CALL();                                                                       \
    return EMULATOR_CUBLAS(scal, "cublas" #letter "scal", n, emulator::number(alpha), x, incx); \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                              \
  cublasStatus_t cublas##letter##copy(cublasHandle_t handle, int n, const T* x, int incx, T* y, \
                                      int incy) {                                               \
    EMULATOR_HOST_CALL();                                                                       \
    return EMULATOR_CUBLAS(copy, "cublas" #letter "copy", n, x, incx, y, incy);                 \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                        \
  cublasStatus_t cublas##letter##swap(cublasHandle_t handle, int n, T* x, int incx, T* y, \
                                      int incy) {                                         \
    EMULATOR_HOST_CALL();                                                                 \
    return EMULATOR_CUBLAS(swap, "cublas" #letter "swap", n, x, incx, y, incy);           \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                       \
  cublasStatus_t cublas##letter##dot(cublasHandle_t handle, int n, const T* x, int incx, \
                                     const T* y, int incy, T* result) {                  \
    EMULATOR_HOST_CALL();                                                                \
    return EMULATOR_CUBLAS(dot, "cublas" #letter "dot", n, x, incx, y, incy, result);    \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                        \
  cublasStatus_t cublas##letter##nrm2(cublasHandle_t handle, int n, const T* x, int incx, \
                                      T* result) {                                        \
    EMULATOR_HOST_CALL();                                                                 \
    return EMULATOR_CUBLAS(nrm2, "cublas" #letter "nrm2", n, x, incx, result);            \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                        \
  cublasStatus_t cublas##letter##asum(cublasHandle_t handle, int n, const T* x, int incx, \
                                      T* result) {                                        \
    EMULATOR_HOST_CALL();                                                                 \
    return EMULATOR_CUBLAS(asum, "cublas" #letter "asum", n, x, incx, result);            \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                                 \
  cublasStatus_t cublas##letter##rot(cublasHandle_t handle, int n, T* x, int incx, T* y, int incy, \
                                     const T* c, const T* s) {                                     \
    EMULATOR_HOST_CALL();                                                                          \
    return EMULATOR_CUBLAS(rot, "cublas" #letter "rot", n, x, incx, y, incy, emulator::number(c),  \
                           emulator::number(s));                                                   \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                     \
  cublasStatus_t cublas##letter##rotg(cublasHandle_t handle, T* a, T* b, T* c, T* s) { \
    EMULATOR_HOST_CALL();                                                              \
    return EMULATOR_CUBLAS(rotg, "cublas" #letter "rotg", a, b, c, s);                 \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                        \
  cublasStatus_t cublas##letter##rotm(cublasHandle_t handle, int n, T* x, int incx, T* y, \
                                      int incy, const T* param) {                         \
    EMULATOR_HOST_CALL();                                                                 \
    return EMULATOR_CUBLAS(rotm, "cublas" #letter "rotm", n, x, incx, y, incy,            \
                           emulator::rotation(param));                                    \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                              \
  cublasStatus_t cublas##letter##rotmg(cublasHandle_t handle, T* d1, T* d2, T* x1, const T* y1, \
                                       T* param) {                                              \
    EMULATOR_HOST_CALL();                                                                       \
    return EMULATOR_CUBLAS(rotmg, "cublas" #letter "rotmg", d1, d2, x1, y1, param);             \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

cublasStatus_t cublasIsamax(cublasHandle_t handle, int n, const float* x, int incx, int* result) {
  EMULATOR_HOST_CALL();
  return EMULATOR_CUBLAS(index_of, "cublasIsamax", n, x, incx, result,
                         [](float a, float b) { return a > b; });
}

cublasStatus_t cublasIsamin(cublasHandle_t handle, int n, const float* x, int incx, int* result) {
  EMULATOR_HOST_CALL();
  return EMULATOR_CUBLAS(index_of, "cublasIsamin", n, x, incx, result,
                         [](float a, float b) { return a < b; });
}

cublasStatus_t cublasIdamax(cublasHandle_t handle, int n, const double* x, int incx, int* result) {
  EMULATOR_HOST_CALL();
  return EMULATOR_CUBLAS(index_of, "cublasIdamax", n, x, incx, result,
                         [](double a, double b) { return a > b; });
}

cublasStatus_t cublasIdamin(cublasHandle_t handle, int n, const double* x, int incx, int* result) {
  EMULATOR_HOST_CALL();
  return EMULATOR_CUBLAS(index_of, "cublasIdamin", n, x, incx, result,
                         [](double a, double b) { return a < b; });
}
