/*!
 * \file device_api.h
 * \brief What the runtime needs of a device.
 */
#ifndef DLSYS_RUNTIME_DEVICE_API_H_
#define DLSYS_RUNTIME_DEVICE_API_H_

#include "c_runtime_api.h"

namespace dlsys {
namespace runtime {

/*! \brief Memory of one kind of device. Every member throws std::runtime_error on failure. */
class DeviceAPI {
 public:
  virtual ~DeviceAPI() {}

  /*! \brief Allocates `size` bytes, aligned to at least `alignment` bytes. */
  virtual void* AllocDataSpace(DLContext ctx, size_t size, size_t alignment) = 0;

  /*! \brief Frees what AllocDataSpace returned. */
  virtual void FreeDataSpace(DLContext ctx, void* ptr) = 0;

  /*! \brief Copies `size` bytes; at least one of the contexts is of this device. */
  virtual void CopyDataFromTo(const void* from, void* to, size_t size, DLContext ctx_from,
                              DLContext ctx_to, DLStreamHandle stream) = 0;

  /*! \brief Throws if an earlier operation failed, and clears that error. */
  virtual void Check(const char* what) = 0;

  /*! \brief Waits until the device is done with everything, then does as Check. */
  virtual void Synchronize(const char* what) = 0;

  /*! \brief Frees all its memory, and forgets errors; throws if it goes on failing. */
  virtual void Reset() = 0;
};

/*! \brief The device API of a kind of device. */
DeviceAPI* GetDeviceAPI(DLDeviceType type);

}  // namespace runtime
}  // namespace dlsys
#endif  // DLSYS_RUNTIME_DEVICE_API_H_
