// Products of matrices of any types, in batches, and cuBLASLt's with a last step, against loops.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>

#include "check.h"

#define OK(call) CHECK((call) == CUBLAS_STATUS_SUCCESS)

static cublasHandle_t handle() {
  static cublasHandle_t made = nullptr;
  if (made == nullptr) OK(cublasCreate(&made));
  return made;
}

// Small multiples of 1/4: exact in every type, and so are their products.
template <typename T>
static std::vector<T> numbers(int count, int seed) {
  std::vector<T> values(count);
  for (int i = 0; i < count; ++i)
    values[i] = static_cast<T>(static_cast<float>((i * 5 + seed * 3) % 7 - 3));
  return values;
}

const int m = 5, n = 4, k = 6;

// 2 A^T B - C, by columns, with leading dimensions of their own.
template <typename T, typename Out>
static std::vector<double> wanted(const std::vector<T>& a, const std::vector<T>& b,
                                  const std::vector<Out>& c) {
  std::vector<double> result(m * n);
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      double sum = 0;
      for (int l = 0; l < k; ++l)
        sum += static_cast<double>(static_cast<float>(a[l + i * (k + 1)])) *
               static_cast<double>(static_cast<float>(b[l + j * k]));
      result[i + j * m] = 2 * sum - static_cast<double>(static_cast<float>(c[i + j * m]));
    }
  return result;
}

template <typename T, typename Out, typename Scale, typename Compute>
static void typed(cudaDataType type, cudaDataType out, Compute compute) {
  std::vector<T> a = numbers<T>((k + 1) * m, 1), b = numbers<T>(k * n, 2);
  std::vector<Out> c = numbers<Out>(m * n, 3);
  Device<T> da(a), db(b);
  Device<Out> dc(c);
  Scale alpha = 2, beta = -1;
  OK(cublasGemmEx(handle(), CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, &alpha, da.data, type, k + 1,
                  db.data, type, k, &beta, dc.data, out, m, compute, CUBLAS_GEMM_DEFAULT));
  std::vector<double> expected = wanted(a, b, c);
  std::vector<Out> got = dc.get();
  for (int i = 0; i < m * n; ++i)
    CHECK(static_cast<double>(static_cast<float>(got[i])) == expected[i]);
}

CASE(products_of_all_types) {
  typed<float, float, float>(CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F);
  typed<float, float, float>(CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32);
  typed<float, float, float>(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F);
  typed<double, double, double>(CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F);
  typed<__half, __half, float>(CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F);
  typed<__half, __half, __half>(CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F);
  typed<__half, float, float>(CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F);
  typed<__nv_bfloat16, __nv_bfloat16, float>(CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F);
  typed<__nv_bfloat16, float, float>(CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F);
  typed<int8_t, int32_t, int32_t>(CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I);
}

CASE(sums_are_not_rounded_on_the_way) {
  // 2048 + 1 + 1 + ...: in float16 each 1 would be lost.
  std::vector<__half> a(65, __float2half(1)), b(65, __float2half(1));
  a[0] = __float2half(2048);
  Device<__half> da(a), db(b), dc(1);
  float one = 1, zero = 0;
  OK(cublasGemmEx(handle(), CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 65, &one, da.data, CUDA_R_16F, 1,
                  db.data, CUDA_R_16F, 65, &zero, dc.data, CUDA_R_16F, 1, CUBLAS_COMPUTE_32F,
                  CUBLAS_GEMM_DEFAULT_TENSOR_OP));
  CHECK(__half2float(dc.get()[0]) == 2112);
}

CASE(types_that_cublas_has_not_are_refused) {
  Device<float> a(64);
  float one = 1;
  CHECK(cublasGemmEx(handle(), CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a.data, CUDA_R_32F, 2,
                     a.data, CUDA_R_16F, 2, &one, a.data, CUDA_R_32F, 2, CUBLAS_COMPUTE_32F,
                     CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(cublasGemmEx(handle(), CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a.data, CUDA_C_32F, 2,
                     a.data, CUDA_C_32F, 2, &one, a.data, CUDA_C_32F, 2, CUBLAS_COMPUTE_32F,
                     CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_NOT_SUPPORTED);
}

// Three products of 2 x 2: by steps, and by arrays of addresses.
template <typename T>
struct Batch {
  Device<T> a, b, c;
  Device<T*> pa, pb, pc;

  Batch() : a(numbers<T>(12, 1)), b(numbers<T>(12, 2)), c(numbers<T>(12, 3)), pa(3), pb(3), pc(3) {
    pa.set({a.data, a.data + 4, a.data + 8});
    pb.set({b.data, b.data + 4, b.data + 8});
    pc.set({c.data, c.data + 4, c.data + 8});
  }
  // A B + C in all three, then the same once more.
  void check(int times) {
    std::vector<T> A = a.get(), B = b.get(), C = numbers<T>(12, 3), got = c.get();
    for (int at = 0; at < 12; ++at) {
      const int first = at / 4 * 4, i = at % 2, j = at / 2 % 2;
      const float sum =
          static_cast<float>(A[first + i]) * static_cast<float>(B[first + 2 * j]) +
          static_cast<float>(A[first + i + 2]) * static_cast<float>(B[first + 2 * j + 1]);
      CHECK(static_cast<float>(got[at]) == times * sum + static_cast<float>(C[at]));
    }
  }
};

CASE(batches_of_doubles_and_halves) {
  const cublasOperation_t N = CUBLAS_OP_N;
  Batch<double> d;
  double one = 1;
  OK(cublasDgemmStridedBatched(handle(), N, N, 2, 2, 2, &one, d.a.data, 2, 4, d.b.data, 2, 4, &one,
                               d.c.data, 2, 4, 3));
  d.check(1);
  OK(cublasDgemmBatched(handle(), N, N, 2, 2, 2, &one, d.pa.data, 2, d.pb.data, 2, &one, d.pc.data,
                        2, 3));
  d.check(2);
  Batch<__half> h;
  __half unit = __float2half(1);
  float single = 1;
  OK(cublasHgemm(handle(), N, N, 2, 2, 2, &unit, h.a.data, 2, h.b.data, 2, &unit, h.c.data, 2));
  OK(cublasHgemmStridedBatched(handle(), N, N, 2, 2, 2, &unit, h.a.data + 4, 2, 4, h.b.data + 4, 2,
                               4, &unit, h.c.data + 4, 2, 4, 2));
  h.check(1);
  OK(cublasHgemmBatched(handle(), N, N, 2, 2, 2, &unit, h.pa.data, 2, h.pb.data, 2, &unit,
                        h.pc.data, 2, 3));
  h.check(2);
  OK(cublasGemmStridedBatchedEx(handle(), N, N, 2, 2, 2, &single, h.a.data, CUDA_R_16F, 2, 4,
                                h.b.data, CUDA_R_16F, 2, 4, &single, h.c.data, CUDA_R_16F, 2, 4, 3,
                                CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  h.check(3);
  OK(cublasGemmBatchedEx(handle(), N, N, 2, 2, 2, &single, (const void**)h.pa.data, CUDA_R_16F, 2,
                         (const void**)h.pb.data, CUDA_R_16F, 2, &single, (void**)h.pc.data,
                         CUDA_R_16F, 2, 3, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  h.check(4);
}

// A product by cuBLASLt, of matrices by rows or by columns.
struct Lt {
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t desc;
  cublasLtMatrixLayout_t A, B, C;

  Lt(cudaDataType type, bool by_rows) {
    OK(cublasLtCreate(&handle));
    OK(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    OK(cublasLtMatrixLayoutCreate(&A, type, m, k, by_rows ? k : m));
    OK(cublasLtMatrixLayoutCreate(&B, type, k, n, by_rows ? n : k));
    OK(cublasLtMatrixLayoutCreate(&C, type, m, n, by_rows ? n : m));
    cublasLtOrder_t order = by_rows ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
    for (cublasLtMatrixLayout_t layout : {A, B, C})
      OK(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &order,
                                          sizeof order));
  }
  ~Lt() {
    cublasLtMatrixLayoutDestroy(A);
    cublasLtMatrixLayoutDestroy(B);
    cublasLtMatrixLayoutDestroy(C);
    cublasLtMatmulDescDestroy(desc);
    cublasLtDestroy(handle);
  }
  void set(cublasLtEpilogue_t epilogue, const void* bias) {
    OK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                      sizeof epilogue));
    OK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
  }
  cublasStatus_t run(const void* a, const void* b, void* d) {
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t result;
    int found = 0;
    size_t workspace = 1 << 20;
    OK(cublasLtMatmulPreferenceCreate(&preference));
    OK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                            &workspace, sizeof workspace));
    cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, desc, A, B, C, C, preference, 1, &result, &found);
    OK(cublasLtMatmulPreferenceDestroy(preference));
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    CHECK(found == 1);
    float alpha = 0.5f, beta = 0;
    return cublasLtMatmul(handle, desc, &alpha, a, A, b, B, &beta, d, C, d, C, &result.algo,
                          nullptr, 0, 0);
  }
};

static float last_step(float x, cublasLtEpilogue_t epilogue) {
  if (epilogue & CUBLASLT_EPILOGUE_RELU) return x > 0 ? x : 0;
  if (epilogue & CUBLASLT_EPILOGUE_GELU)
    return 0.5f * x * (1 + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
  return x;
}

template <typename T>
static void step(cudaDataType type, bool by_rows, cublasLtEpilogue_t epilogue, float tolerance) {
  std::vector<T> a = numbers<T>(m * k, 1), b = numbers<T>(k * n, 2), bias = numbers<T>(m, 4);
  Device<T> da(a), db(b), dbias(bias), d(m * n);
  Lt lt(type, by_rows);
  lt.set(epilogue, dbias.data);
  OK(lt.run(da.data, db.data, d.data));
  std::vector<T> got = d.get();
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int l = 0; l < k; ++l)
        sum += static_cast<float>(a[by_rows ? i * k + l : i + l * m]) *
               static_cast<float>(b[by_rows ? l * n + j : l + j * k]);
      sum *= 0.5f;
      if (epilogue & CUBLASLT_EPILOGUE_BIAS) sum += static_cast<float>(bias[i]);
      const float x = static_cast<float>(got[by_rows ? i * n + j : i + j * m]);
      CHECK(std::fabs(x - last_step(sum, epilogue)) <= tolerance);
    }
}

CASE(products_with_a_last_step) {
  for (cublasLtEpilogue_t epilogue :
       {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_BIAS,
        CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS})
    for (bool by_rows : {false, true}) {
      step<float>(CUDA_R_32F, by_rows, epilogue, 1e-5f);
      step<__half>(CUDA_R_16F, by_rows, epilogue, 2e-2f);
    }
}

CASE(other_last_steps_are_refused) {
  Device<float> a(m * k), b(k * n), d(m * n);
  Lt lt(CUDA_R_32F, false);
  lt.set(CUBLASLT_EPILOGUE_RELU_AUX, nullptr);
  CHECK(lt.run(a.data, b.data, d.data) == CUBLAS_STATUS_NOT_SUPPORTED);
  lt.set(CUBLASLT_EPILOGUE_BIAS, nullptr);
  CHECK(lt.run(a.data, b.data, d.data) == CUBLAS_STATUS_INVALID_VALUE);
}

CASE(transposes_and_batches_by_cublaslt) {
  // Two products of A^T (2 x 2) and B, each matrix 4 numbers after the last.
  Batch<float> batch;
  cublasLtMatmulDesc_t desc;
  cublasLtMatrixLayout_t layout;
  const cublasOperation_t T = CUBLAS_OP_T;
  const int32_t count = 3;
  const int64_t offset = 4;
  OK(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  OK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &T, sizeof T));
  OK(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 2, 2, 2));
  OK(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, 4));
  OK(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &offset,
                                      sizeof offset));
  std::vector<float> a = batch.a.get();
  for (int i = 0; i < 12; i += 4) std::swap(a[i + 1], a[i + 2]);
  Device<float> turned(a);
  float one = 1;
  OK(cublasLtMatmul(reinterpret_cast<cublasLtHandle_t>(handle()), desc, &one, turned.data, layout,
                    batch.b.data, layout, &one, batch.c.data, layout, batch.c.data, layout, nullptr,
                    nullptr, 0, 0));
  batch.check(1);
  OK(cublasLtMatrixLayoutDestroy(layout));
  OK(cublasLtMatmulDescDestroy(desc));
}
