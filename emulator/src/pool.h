/*!
 * \file pool.h
 * \brief The CPU threads that stand for the GPU's multiprocessors.
 */
#ifndef EMULATOR_POOL_H_
#define EMULATOR_POOL_H_

#include <cstdint>
#include <functional>

namespace emulator {

/*! \brief Work on the items begin .. end - 1. */
typedef std::function<void(int64_t begin, int64_t end)> Work;

/*! \brief Number of threads, the calling one included: EMULATOR_THREADS, or the CPU's cores. */
int pool_size();

/*!
 * \brief Does the work on `count` items, in pieces of `chunk`, on all threads of the pool.
 *
 * Returns when all is done. The calling thread works too. Calls from several threads take turns.
 */
void parallel_for(int64_t count, int64_t chunk, const Work& work);

}  // namespace emulator

#endif  // EMULATOR_POOL_H_
