/*!
 * \file host_regions.h
 * \brief Memory of the host that the device may use, and who used it.
 */
#ifndef EMULATOR_CHECKED_HOST_REGIONS_H_
#define EMULATOR_CHECKED_HOST_REGIONS_H_

#include "shadow.h"

namespace emulator {
namespace checked {

/*! \brief One allocation. */
struct HostRegion {
  // A Word's halves are an operation's number, shifted by 5, whether the access was atomic, and its
  // bytes.
  Region operations;
  Region accesses;  // of the running launch, as of device memory
};

/*! \brief The one that an address is in. */
bool find_region(uintptr_t address, HostRegion* region);
bool find_region(uintptr_t address, Region* operations);

}  // namespace checked
}  // namespace emulator

#endif  // EMULATOR_CHECKED_HOST_REGIONS_H_
