/*!
 * \file ending.h
 * \brief What is known only when the program has come to its end, and what a call leaves until
 * then.
 */
#ifndef EMULATOR_CHECKED_ENDING_H_
#define EMULATOR_CHECKED_ENDING_H_

#include <string>

#include "finding.h"

namespace emulator {
namespace checked {

/*! \brief What a function of the runtime that the host called is to tell of itself. */
struct HostNote {
  const char* function = "";
  bool told = false;   // there is a finding about it already
  std::string detail;  // of its error
};

/*! \brief That of the call under way on this thread, or null. */
HostNote* note_of_host();
/*! \brief A finding about what the host does. */
Finding finding_of_host(Kind kind);
/*! \brief What was never freed. */
void report_leaks();
/*! \brief Handles of cuBLAS that are lost, see handles.cc. */
void report_handles();

}  // namespace checked
}  // namespace emulator

#endif  // EMULATOR_CHECKED_ENDING_H_
