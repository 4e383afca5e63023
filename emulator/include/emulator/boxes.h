/*!
 * \file boxes.h
 * \brief Makers of the parts of a copy of a box.
 */
#ifndef EMULATOR_BOXES_H_
#define EMULATOR_BOXES_H_

#include "emulator/driver_types.h"

inline cudaPitchedPtr make_cudaPitchedPtr(void* ptr, size_t pitch, size_t xsize, size_t ysize) {
  return {ptr, pitch, xsize, ysize};
}
inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return {x, y, z}; }
/*! \brief `width` in bytes, `height` in rows, `depth` in slices. */
inline cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth) {
  return {width, height, depth};
}

#endif  // EMULATOR_BOXES_H_
