#pragma once
#include <cuda_runtime.h>
#include <memory>
#include <stdexcept>
#include <vector>

inline void throwOnError(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

// A matrix on the device, shared by those who copy it.
class Tensor {
 public:
  Tensor(int rows, int cols) : rows(rows), cols(cols) {
    float* memory = nullptr;
    throwOnError(cudaMalloc(&memory, bytes()), "Tensor");
    device = std::shared_ptr<float>(memory, [](float* p) { cudaFree(p); });
  }
  Tensor(int rows, int cols, const std::vector<float>& values) : Tensor(rows, cols) {
    throwOnError(cudaMemcpy(device.get(), values.data(), bytes(), cudaMemcpyHostToDevice), "copy to the device");
  }
  std::vector<float> values() const {
    std::vector<float> result(rows * cols);
    throwOnError(cudaMemcpy(result.data(), device.get(), bytes(), cudaMemcpyDeviceToHost), "copy to the host");
    return result;
  }
  float* data() const { return device.get(); }
  size_t bytes() const { return sizeof(float) * rows * cols; }

  int rows, cols;

 private:
  std::shared_ptr<float> device;
};
