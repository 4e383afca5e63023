/*!
 * \file counts.h
 * \brief What programs that watch the emulated GPU ask for: counts that only the runtime changes.
 *
 * They lie on a page that is closed for writing but while the runtime adds to one of them: code in
 * the same process that writes there crashes.
 */
#ifndef EMULATOR_COUNTS_H_
#define EMULATOR_COUNTS_H_

#include <cstdint>

namespace emulator {

enum class Count {
  kAllocations,  // of device memory
  kBytesToHost,  // copied there, or of memory that it shares with the device
  kTraffic,      // the first of those in checked/traffic.h
};

void add_to_count(Count count, int64_t number);
/*! \brief Adds to several in a row. */
void add_to_counts(Count first, const int64_t* numbers, int count);
int64_t count_of(Count count);

}  // namespace emulator

#endif  // EMULATOR_COUNTS_H_
