/*!
 * \file cublas_lt_objects.cc
 * \brief cuBLASLt's handles, layouts, descriptions and preferences.
 */
#include <cstring>
#include <mutex>
#include <set>

#include "cublas_handle.h"
#include "cublas_lt.h"
#include "error.h"

struct cublasLtContext {};
struct cublasLtMatmulPreference {
  uint64_t workspace;
};

namespace emulator {
namespace {

std::mutex mutex;
std::set<const void*> lt_handles;

// An attribute: which one, and where and how large its value is.
struct Field {
  int attribute;
  void* value;
  size_t size;
};

cublasStatus_t set(const Field& field, const void* value, size_t size) {
  if (value == nullptr || size < field.size) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(field.value, value, field.size);
  return CUBLAS_STATUS_SUCCESS;
}

// Without a place for it, only the size is asked for.
cublasStatus_t get(const Field& field, void* value, size_t size, size_t* written) {
  if (value == nullptr && (size != 0 || written == nullptr)) return CUBLAS_STATUS_INVALID_VALUE;
  if (size != 0 && size < field.size) return CUBLAS_STATUS_INVALID_VALUE;
  if (size != 0) std::memcpy(value, field.value, field.size);
  if (written != nullptr) *written = field.size;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
Field field(int attribute, T* value) {
  return {attribute, value, sizeof *value};
}

Field find(cublasLtMatrixLayout* layout, int attribute) {
  const Field fields[] = {field(CUBLASLT_MATRIX_LAYOUT_TYPE, &layout->type),
                          field(CUBLASLT_MATRIX_LAYOUT_ORDER, &layout->order),
                          field(CUBLASLT_MATRIX_LAYOUT_ROWS, &layout->rows),
                          field(CUBLASLT_MATRIX_LAYOUT_COLS, &layout->columns),
                          field(CUBLASLT_MATRIX_LAYOUT_LD, &layout->ld),
                          field(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &layout->count),
                          field(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &layout->offset)};
  for (const Field& known : fields)
    if (known.attribute == attribute) return known;
  return {attribute, nullptr, 0};
}

Field find(cublasLtMatmulDesc* desc, int attribute) {
  const Field fields[] = {field(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, &desc->compute),
                          field(CUBLASLT_MATMUL_DESC_SCALE_TYPE, &desc->scale),
                          field(CUBLASLT_MATMUL_DESC_POINTER_MODE, &desc->pointer_mode),
                          field(CUBLASLT_MATMUL_DESC_TRANSA, &desc->transa),
                          field(CUBLASLT_MATMUL_DESC_TRANSB, &desc->transb),
                          field(CUBLASLT_MATMUL_DESC_TRANSC, &desc->transc),
                          field(CUBLASLT_MATMUL_DESC_EPILOGUE, &desc->epilogue),
                          field(CUBLASLT_MATMUL_DESC_BIAS_POINTER, &desc->bias),
                          field(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &desc->bias_offset),
                          field(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &desc->bias_type)};
  for (const Field& known : fields)
    if (known.attribute == attribute) return known;
  return {attribute, nullptr, 0};
}

// What would change the result, were it heeded. Other unknown attributes are about speed.
const char* refusal_of(int attribute) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_FILL_MODE:
      return "a fill mode";
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_C_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_D_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_AMAX_D_POINTER:
      return "a scale of numbers of 8 bits";
    default:
      return nullptr;
  }
}

}  // namespace

bool is_lt_handle(cublasLtHandle_t handle) {
  std::lock_guard<std::mutex> lock(mutex);
  return lt_handles.count(handle) > 0;
}

}  // namespace emulator

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (emulator::sticky_error() != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  emulator::use_own_threads();
  std::lock_guard<std::mutex> lock(emulator::mutex);
  *handle = new cublasLtContext;
  emulator::lt_handles.insert(*handle);
  return CUBLAS_STATUS_SUCCESS;
}

// The memory is kept, so that no new handle can be taken for one that was destroyed.
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  std::lock_guard<std::mutex> lock(emulator::mutex);
  return emulator::lt_handles.erase(handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
size_t cublasLtGetCudartVersion() { return CUDART_VERSION; }
const char* cublasLtGetStatusName(cublasStatus_t status) { return cublasGetStatusName(status); }
const char* cublasLtGetStatusString(cublasStatus_t status) { return cublasGetStatusString(status); }

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld) {
  if (layout == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *layout = new cublasLtMatrixLayout{type, CUBLASLT_ORDER_COL, rows, columns, ld, 1, 0};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t size) {
  if (layout == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const emulator::Field field = emulator::find(layout, attribute);
  return field.value ? emulator::set(field, value, size) : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                void* value, size_t size, size_t* written) {
  if (layout == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const emulator::Field field = emulator::find(layout, attribute);
  return field.value ? emulator::get(field, value, size, written) : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType scale) {
  if (desc == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *desc = new cublasLtMatmulDesc{compute,
                                 scale,
                                 CUBLASLT_POINTER_MODE_HOST,
                                 CUBLAS_OP_N,
                                 CUBLAS_OP_N,
                                 CUBLAS_OP_N,
                                 CUBLASLT_EPILOGUE_DEFAULT,
                                 nullptr,
                                 0,
                                 -1,
                                 nullptr};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t size) {
  if (desc == nullptr || value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const emulator::Field field = emulator::find(desc, attribute);
  if (field.value != nullptr) return emulator::set(field, value, size);
  if (emulator::refusal_of(attribute)) desc->refused = emulator::refusal_of(attribute);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute, void* value,
                                              size_t size, size_t* written) {
  if (desc == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const emulator::Field field = emulator::find(desc, attribute);
  return field.value ? emulator::get(field, value, size, written) : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  if (preference == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *preference = new cublasLtMatmulPreference{0};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

// All of them are about speed.
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void* value, size_t size) {
  if (preference == nullptr || value == nullptr || size == 0) return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}
