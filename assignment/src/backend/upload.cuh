/*!
 * \file upload.cuh
 * \brief Copies to the GPU beside its kernels: a stream of their own, and memory for two calls.
 *
 * While the default stream computes from one half of that memory, the next values arrive in the
 * other one. Two kinds of events keep them apart: `arrived` has the kernels wait for their values,
 * `read` has the next values of a half wait for the kernels that read the last ones. The copies
 * come from the host's memory as it is; a GPU reads it by itself if it is pinned, and else the
 * driver has to copy it to such memory first, piece by piece.
 */
#ifndef DLSYS_BACKEND_UPLOAD_CUH_
#define DLSYS_BACKEND_UPLOAD_CUH_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace dlsys {
namespace backend {

/*! \brief The stream and the events of a step's uploads. All functions say whether they worked. */
class Uploads {
 public:
  Uploads() {
    good_ = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess;
    for (cudaEvent_t* each : {&arrived_, &read_[0], &read_[1]})
      good_ = cudaEventCreateWithFlags(each, cudaEventDisableTiming) == cudaSuccess && good_;
  }
  ~Uploads() {
    for (cudaEvent_t each : {arrived_, read_[0], read_[1]})
      if (each != nullptr) cudaEventDestroy(each);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  Uploads(const Uploads&) = delete;
  Uploads& operator=(const Uploads&) = delete;

  bool good() const { return good_; }

  /*!
   * \brief Begins to fill a half, and has what the default stream does next wait for it.
   *
   * The host's arrays are read until `leave` returns; it launches kernels meanwhile.
   */
  bool fill(int half, int64_t count, void* const* to, const void* const* from,
            const int64_t* bytes) {
    bool good = cudaStreamWaitEvent(stream_, read_[half], 0) == cudaSuccess;
    for (int64_t i = 0; i < count; ++i)
      if (bytes[i] > 0)
        good = good && cudaMemcpyAsync(to[i], from[i], static_cast<size_t>(bytes[i]),
                                       cudaMemcpyHostToDevice, stream_) == cudaSuccess;
    return good && cudaEventRecord(arrived_, stream_) == cudaSuccess &&
           cudaStreamWaitEvent(nullptr, arrived_, 0) == cudaSuccess;
  }

  /*!
   * \brief All that reads a half was given to the default stream.
   *
   * The host waits for what arrives, so that it may overwrite its arrays.
   */
  bool leave(int half) { return cudaEventRecord(read_[half], nullptr) == cudaSuccess && settle(); }

  /*! \brief Waits for what arrives. */
  bool settle() { return cudaEventSynchronize(arrived_) == cudaSuccess; }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t arrived_ = nullptr, read_[2] = {};
  bool good_;
};

/*! \brief New uploads; null if CUDA refuses. */
inline Uploads* make_uploads() {
  Uploads* const made = new Uploads();
  if (made->good()) return made;
  delete made;
  return nullptr;
}

/*! \brief Memory of the host that a GPU reads by itself; null if there is none. */
inline void* pinned(int64_t bytes) {
  void* found = nullptr;
  return cudaMallocHost(&found, static_cast<size_t>(bytes)) == cudaSuccess ? found : nullptr;
}

/*!
 * \brief Bytes of the device, as the default stream leaves them where it is now.
 *
 * They come to the host on a stream of their own, beside what the default stream is given next.
 */
class Look {
 public:
  explicit Look(int64_t count) : count_(count), found_(static_cast<char*>(pinned(count))) {
    good_ = found_ != nullptr &&
            cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess &&
            cudaEventCreateWithFlags(&there_, cudaEventDisableTiming) == cudaSuccess;
  }
  ~Look() {
    if (there_ != nullptr) cudaEventDestroy(there_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
    if (found_ != nullptr) cudaFreeHost(found_);
  }
  Look(const Look&) = delete;
  Look& operator=(const Look&) = delete;

  bool good() const { return good_; }

  /*! \brief Begins to read a byte from each place. */
  bool begin(const void* const* from) {
    bool good = cudaEventRecord(there_, nullptr) == cudaSuccess &&
                cudaStreamWaitEvent(stream_, there_, 0) == cudaSuccess;
    for (int64_t i = 0; i < count_; ++i)
      good = good && cudaMemcpyAsync(found_ + i, from[i], 1, cudaMemcpyDeviceToHost, stream_) ==
                         cudaSuccess;
    return good;
  }

  /*! \brief Waits for them; null if the GPU has failed. */
  const char* end() { return cudaStreamSynchronize(stream_) == cudaSuccess ? found_ : nullptr; }

 private:
  const int64_t count_;
  char* const found_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t there_ = nullptr;
  bool good_;
};

/*! \brief A new look; null if CUDA refuses. */
inline Look* make_look(int64_t count) {
  Look* const made = new Look(count);
  if (made->good()) return made;
  delete made;
  return nullptr;
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_UPLOAD_CUH_
