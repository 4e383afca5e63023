/*!
 * \file heap.h
 * \brief malloc, new and their like in CUDA sources: what kernels get is memory of the device.
 *
 * On a GPU any thread may use it until it is freed, and the host never does. The checked build
 * has to know what was given out instead: there it is the host's, which kernels may not touch
 * otherwise, and `new` comes to the runtime by itself.
 */
#ifndef EMULATOR_HEAP_H_
#define EMULATOR_HEAP_H_

#if defined(__linux__) && defined(EMULATOR_CUDA_SOURCE)

#include <cstddef>

extern "C" {
void* malloc(size_t) noexcept __asm__("emulator_malloc");
void free(void*) noexcept __asm__("emulator_free");
void* calloc(size_t, size_t) noexcept __asm__("emulator_calloc");
#ifdef EMULATOR_CHECKED
void* realloc(void*, size_t) noexcept __asm__("emulator_realloc");
#endif
}

#endif

#endif  // EMULATOR_HEAP_H_
