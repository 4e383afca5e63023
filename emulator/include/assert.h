/*!
 * \file assert.h
 * \brief assert that knows kernels: there it ends the launch, elsewhere the process.
 *
 * It stands in for the C library's header, also below <cassert>, so that the order of a
 * program's includes does not matter. Included again, it looks at NDEBUG again.
 */
#ifndef EMULATOR_ASSERT_H_
#define EMULATOR_ASSERT_H_
/*! \brief Reports that `expression` is false. Ends the launch, or the process. */
extern "C" [[noreturn]] void emulator_assert_failed(const char* expression, const char* file,
                                                    int line, const char* function);
#endif  // EMULATOR_ASSERT_H_

#undef assert
#ifdef NDEBUG
#define assert(expression) (static_cast<void>(0))
#else
#define assert(expression)       \
  (static_cast<bool>(expression) \
       ? static_cast<void>(0)    \
       : emulator_assert_failed(#expression, __FILE__, __LINE__, __PRETTY_FUNCTION__))
#endif
