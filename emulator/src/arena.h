/*!
 * \file arena.h
 * \brief The memory of the emulated GPU.
 *
 * One range of addresses is reserved at the start; allocations are cut from it in pages, each
 * with a page behind it that nobody may touch. An allocation ends where that page begins (or
 * less than 256 bytes before, since it must start at a multiple of 256), so that the first
 * element past the end is an error and not a neighbour's data.
 */
#ifndef EMULATOR_ARENA_H_
#define EMULATOR_ARENA_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "cuda_runtime_api.h"

namespace emulator {

/*! \brief What lies at an address of the arena. */
struct Place {
  bool in_arena;    // whether the address is the device's at all
  bool live;        // whether it is in, or a page at most behind, an allocation
  uintptr_t start;  // of the allocation
  size_t size;      // of the allocation
};

/*! \brief New memory, filled with NaN; null if `size` is 0. */
cudaError_t arena_allocate(void** ptr, size_t size);
cudaError_t arena_free(void* ptr);
void arena_free_all();

/*! \brief Whether an address belongs to the device. Safe in a signal handler. */
bool in_arena(const void* ptr);
/*! \brief Whether `size` bytes lie inside of one allocation. */
bool is_device_range(const void* ptr, size_t size);
/*! \brief What lies at an address; false if that cannot be told now. For signal handlers. */
bool try_locate(uintptr_t address, Place* place);

/*! \brief Calls a function with every allocation, as the program knows it. */
void for_each_allocation(const std::function<void(uintptr_t start, size_t size)>& function);

// Without protection keys memory is opened and closed for all threads; see protection.h.
enum class Opened { kNow, kBefore, kNever };
/*! \brief Opens the allocation in whose pages an address lies; never if there is none, or if that
 * cannot be told now. For signal handlers, too. */
Opened arena_open(uintptr_t address);
void arena_open_all();
/*! \brief Closes what is open, unless somebody uses it. */
void arena_close(const std::atomic<int>& users);
/*! \brief Whether anything is open. */
bool is_arena_open();

/*! \brief The size of the device's memory, and how much of it is allocated, in bytes. */
size_t arena_capacity();
size_t arena_used();

}  // namespace emulator

#endif  // EMULATOR_ARENA_H_
