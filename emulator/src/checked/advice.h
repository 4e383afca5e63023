/*!
 * \file advice.h
 * \brief Advice on speed: how the lanes of a warp access memory together, and occupancy.
 *
 * The first warp of the first block is watched. Its lanes ran one after another here; what a GPU
 * would have done at once is each lane's k-th access of the same place.
 */
#ifndef EMULATOR_CHECKED_ADVICE_H_
#define EMULATOR_CHECKED_ADVICE_H_

#include "state.h"

namespace emulator {
namespace checked {

/*! \brief Whether a thread of the running block is watched. */
bool is_sampled(const State* s, int thread);
void sample(State* s, uintptr_t address, size_t size, bool write, const void* place);
/*! \brief Notes what the samples of the block showed, if it was watched. */
void advise(State* s);
/*! \brief Says it, at the end: of each kernel's largest launch. */
void report_advice();

}  // namespace checked
}  // namespace emulator

#endif  // EMULATOR_CHECKED_ADVICE_H_
