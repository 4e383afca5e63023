/*!
 * \file requests.h
 * \brief What the lanes of a warp access at once: puts their accesses side by side, and measures.
 */
#ifndef EMULATOR_CHECKED_REQUESTS_H_
#define EMULATOR_CHECKED_REQUESTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "access.h"

namespace emulator {
namespace checked {

/*! \brief An access of one lane. */
struct LaneAccess {
  const void* place;
  uintptr_t address;
  unsigned size;
  Access access;
  bool shared;
};
typedef std::vector<LaneAccess> LaneAccesses;

/*! \brief The bytes that a lane wants by a request. */
struct Span {
  int lane;
  uintptr_t begin, end;
};

/*! \brief One instruction of a warp: of lanes that are active. */
struct Request {
  Access access;
  bool shared;
  std::vector<const void*> places;  // of its parts
  std::vector<Span> spans;
};

/*!
 * \brief The requests of a warp, from its lanes' accesses, each in its order.
 *
 * A compiler here reads and writes a vector one element at a time. The parts of one, of 8 or 16
 * bytes that lie as vectors do, are one request again if all lanes have them.
 */
std::vector<Request> requests_of(const LaneAccesses lanes[kWarp]);

/*! \brief Sectors of 32 bytes under a request; of an atomic, each as often as lanes meet there. */
int64_t sectors_of(const Request& request);

/*! \brief Turns that the banks of shared memory need, and those that as many words need at best. */
struct Turns {
  int64_t needed, best;
};
Turns turns_of(const Request& request);

}  // namespace checked
}  // namespace emulator

#endif  // EMULATOR_CHECKED_REQUESTS_H_
