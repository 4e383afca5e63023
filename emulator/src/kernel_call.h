/*!
 * \file kernel_call.h
 * \brief A launch that is kept: the kernel with copies of its arguments.
 */
#ifndef EMULATOR_KERNEL_CALL_H_
#define EMULATOR_KERNEL_CALL_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "emulator/launch.h"

namespace emulator {

class KernelCall {
 public:
  KernelCall(const LaunchSite& site, const Config& config, const CallData& data);
  KernelCall(const KernelCall&) = delete;
  void operator=(const KernelCall&) = delete;

  /*! \brief Launches the kernel in a stream. */
  cudaError_t run(cudaStream_t stream) const;
  const LaunchSite& site() const { return site_; }
  const Config& config() const { return config_; }
  const void* code() const { return reinterpret_cast<const void*>(data_.function); }

  /*! \brief Of a node that was made by hand: what it was made of. */
  struct Given {
    const void* kernel = nullptr;
    std::vector<void*> arguments;  // where the copies lie
  } given;

 private:
  struct Bytes {
    void operator()(char* bytes) const;
  };
  typedef std::unique_ptr<char, Bytes> Storage;
  static Storage copy(const void* from, size_t size);
  bool lead_to_copies(const CallData& data);

  LaunchSite site_;
  Config config_;
  CallData data_;
  Storage call_;
  std::vector<Storage> arguments_;
  std::vector<const void*> pointers_;
};

/*! \brief Launches a kernel, which was checked, at once. */
void run_kernel(const LaunchSite& site, const Config& config, const CallData& data);
/*! \brief What a GPU refuses before it looks at a kernel; keeps the error, with the reason. */
cudaError_t check_launch(const LaunchSite& site, const Config& config);

/*! \brief The launch of a kernel of which the address is known; null if it never was kept, see
 * kept_kernel in emulator/graph_overloads.h. */
std::shared_ptr<const KernelCall> make_kernel_call(const cudaKernelNodeParams& params,
                                                   const char* file, int line);

}  // namespace emulator

#endif  // EMULATOR_KERNEL_CALL_H_
