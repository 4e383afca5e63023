/*!
 * \file streams.h
 * \brief What is known to be done before what, among the host and the streams.
 *
 * Everything is done at once, in the order of the program; so no value ever depends on who
 * waits. But each launch and asynchronous copy gets a number, and the host, streams and events
 * keep vector clocks: the last number of each stream that they have waited for. Whoever touches
 * memory that is in use under a number that he has not waited for came too early.
 */
#ifndef EMULATOR_CHECKED_STREAMS_H_
#define EMULATOR_CHECKED_STREAMS_H_

#include <atomic>

#include "access.h"

namespace emulator {
namespace checked {

/*! \brief Whether memory of the host may be in use by work that it has not waited for. */
extern std::atomic<bool> host_memory_in_use;

/*! \brief Host code touches memory. */
void check_early_access(uintptr_t address, size_t size, bool write, const void* place);
/*! \brief A kernel touches memory; true if it is the host's, and for the device as well. */
bool use_host_memory(State* s, uintptr_t address, size_t size, Access access, const void* place);
/*! \brief Forgets which kernel's threads accessed what memory of the host. */
void forget_host_accesses();
/*! \brief A kernel touches bytes of a word that unordered launches or copies may have used. */
void check_other_streams(State* s, uintptr_t address, size_t size, Access access, const void* place,
                         const Word& word, unsigned bytes);

}  // namespace checked
}  // namespace emulator

#endif  // EMULATOR_CHECKED_STREAMS_H_
