/*!
 * \file nvtx3/nvtx3.hpp
 * \brief The same as nvToolsExt.h, as objects of C++.
 */
#ifndef EMULATOR_NVTX3_HPP_
#define EMULATOR_NVTX3_HPP_

#include "nvtx3/nvToolsExt.h"

namespace nvtx3 {

/*! \brief A range that would end with the object; any arguments that describe it. */
class scoped_range {
 public:
  template <typename... Args>
  explicit scoped_range(const Args&...) {}
  ~scoped_range() {}
};
template <typename Domain = void>
class scoped_range_in : public scoped_range {
 public:
  using scoped_range::scoped_range;
};
typedef scoped_range thread_range;

struct rgb {
  rgb(unsigned char, unsigned char, unsigned char) {}
};
struct argb {
  argb(unsigned char, unsigned char, unsigned char, unsigned char) {}
};
struct payload {
  template <typename T>
  explicit payload(T) {}
};
struct category {
  explicit category(uint32_t) {}
};
struct event_attributes {
  template <typename... Args>
  explicit event_attributes(const Args&...) {}
};

template <typename... Args>
void mark(const Args&...) {}

}  // namespace nvtx3

#define NVTX3_FUNC_RANGE() static_cast<void>(0)

#endif  // EMULATOR_NVTX3_HPP_
