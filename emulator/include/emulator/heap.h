/*!
 * \file heap.h
 * \brief malloc and its like in kernels: the checked build has to know what they give out.
 *
 * On a GPU such memory is the device's, and any thread may use it until it is freed. Here it is the
 * host's, which kernels may not touch otherwise. `new` comes to the runtime by itself.
 */
#ifndef EMULATOR_HEAP_H_
#define EMULATOR_HEAP_H_

// As in language.h: only what calls the hooks is a kernel's file.
#if defined(EMULATOR_CHECKED) && defined(__linux__)
#if defined(__SANITIZE_THREAD__)
#define EMULATOR_NAMES_HEAP
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define EMULATOR_NAMES_HEAP
#endif
#endif
#endif

#ifdef EMULATOR_NAMES_HEAP
#undef EMULATOR_NAMES_HEAP

#include <cstddef>

extern "C" {
void* malloc(size_t) noexcept __asm__("emulator_malloc");
void* calloc(size_t, size_t) noexcept __asm__("emulator_calloc");
void* realloc(void*, size_t) noexcept __asm__("emulator_realloc");
void free(void*) noexcept __asm__("emulator_free");
}

#endif

#endif  // EMULATOR_HEAP_H_
