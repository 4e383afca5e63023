/*!
 * \file runtime_base.h
 * \brief Turns C++ exceptions into return codes at the border of the C interface.
 */
#ifndef DLSYS_RUNTIME_RUNTIME_BASE_H_
#define DLSYS_RUNTIME_RUNTIME_BASE_H_

#include <exception>

#include "c_runtime_api.h"

/*! \brief Opens the body of a C function. */
#define API_BEGIN() try {
/*! \brief Closes it: 0, or -1 with the message of the exception. */
#define API_END()                            \
  }                                          \
  catch (const std::exception& error) {      \
    return DLSetLastError(error.what(), -1); \
  }                                          \
  return 0

#endif  // DLSYS_RUNTIME_RUNTIME_BASE_H_
