/*!
 * \file traffic.h
 * \brief Counts what makes a kernel fast on a GPU, of each warp of each block.
 *
 * EMULATOR_TRAFFIC=FILE has a checked program count, and write a line for each kernel to the file.
 * It checks no access then. The lanes of a warp ran one after another here; what a GPU would have
 * done at once is each lane's k-th access of the same place between two waits.
 *
 * Memory that a thread has on its stack, its arguments and its indices count nothing: a GPU has
 * them in registers, if there is not too much of it. Everything else that is not shared is global.
 */
#ifndef EMULATOR_CHECKED_TRAFFIC_H_
#define EMULATOR_CHECKED_TRAFFIC_H_

#include "state.h"

namespace emulator {
namespace checked {

/*!
 * \brief What is counted: NUMBER(name, cost), where cost is what each is worth.
 *
 * The counted cost is their sum. Its unit is what a multiprocessor does at once, in a cycle: it
 * takes a turn at the banks of shared memory, shuffles, or has a warp wait at a barrier. Memory
 * gives it about 16 bytes in that time, so a sector takes two; a stored one three, since a cache
 * keeps what is read for other warps, and nothing that is written. A launch is worth 100.
 */
#define EMULATOR_TRAFFIC_NUMBERS(NUMBER)                                                        \
  NUMBER(launches, 100)                                                                         \
  NUMBER(blocks, 0) /* that access anything, as the warps do */                                 \
  NUMBER(warps, 0)                                                                              \
  NUMBER(own_bytes, 0)      /* of the thread that has most on its stack, summed over blocks */  \
  NUMBER(requests, 0)       /* accesses of global memory, by a warp as a whole */               \
  NUMBER(bytes, 0)          /* that the lanes asked for there, each its own */                  \
  NUMBER(load_sectors, 2)   /* of 32 bytes, that lie under a request's lanes */                 \
  NUMBER(store_sectors, 3)  /* the same; none is found in a cache */                            \
  NUMBER(atomic_sectors, 2) /* the same, as often as lanes meet at a word */                    \
  NUMBER(shared_requests, 0)                                                                    \
  NUMBER(shared_turns, 1) /* the most words that a request wants of one bank; atomics: lanes */ \
  NUMBER(replays, 0)      /* turns beyond those that as many words need in different banks */   \
  NUMBER(shuffles, 1)                                                                           \
  NUMBER(barriers, 1) /* of the block, for each warp that waits */

enum class Traffic {
#define NUMBER(name, cost) name,
  EMULATOR_TRAFFIC_NUMBERS(NUMBER)
#undef NUMBER
      cost
};
const int kTraffic = static_cast<int>(Traffic::cost) + 1;

/*! \brief Whether this program counts. */
bool counts_traffic();
/*! \brief A thread goes on, or begins. */
void count_thread(int thread);
void count_shuffle();
/*! \brief All threads of a block, of which there are so many, have met. */
void count_barrier(int threads);
void count_launch(const Grid& grid);
void count_block_end(const Grid& grid);
/*! \brief Writes what was counted to EMULATOR_TRAFFIC's file. */
void write_traffic();

}  // namespace checked
}  // namespace emulator

#endif  // EMULATOR_CHECKED_TRAFFIC_H_
