/*!
 * \file cuda_device_api.h
 * \brief Memory of CUDA devices.
 */
#ifndef DLSYS_RUNTIME_CUDA_DEVICE_API_H_
#define DLSYS_RUNTIME_CUDA_DEVICE_API_H_

#include "device_api.h"

namespace dlsys {
namespace runtime {

class CUDADeviceAPI : public DeviceAPI {
 public:
  void* AllocDataSpace(DLContext ctx, size_t size, size_t alignment) final;
  void FreeDataSpace(DLContext ctx, void* ptr) final;
  void CopyDataFromTo(const void* from, void* to, size_t size, DLContext ctx_from, DLContext ctx_to,
                      DLStreamHandle stream) final;
  void Check(const char* what) final;
  void Synchronize(const char* what) final;
  void Reset() final;
};

}  // namespace runtime
}  // namespace dlsys
#endif  // DLSYS_RUNTIME_CUDA_DEVICE_API_H_
