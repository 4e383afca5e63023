/*!
 * \file finding.h
 * \brief What was found, folded over the threads that did it, and written for report.py.
 */
#ifndef EMULATOR_CHECKED_FINDING_H_
#define EMULATOR_CHECKED_FINDING_H_

#include <cstdint>
#include <string>

#include "emulator/vector_types.h"

namespace emulator {
namespace checked {

/*! \brief A place in the program: an address in its code, or a line. */
struct Site {
  const void* address = nullptr;
  const char* file = nullptr;
  int line = 0;
};

/*! \brief A thread of a grid. */
struct Who {
  bool known = false;
  uint3 block = {0, 0, 0}, thread = {0, 0, 0};
};

/*! \brief What an address belongs to. */
struct Memory {
  bool known = false;
  std::string name;
  const char* space = "global";
  size_t size = 0;
  int64_t offset = 0;
  Site allocated, freed;
};

/*! \brief One thing that is wrong. */
struct Finding {
  std::string kind;
  std::string kernel;
  Site launch;
  dim3 grid, block;
  Site at;
  Who who;
  size_t size = 0;
  bool write = false;
  bool has_other = false, other_write = false;
  Site other_at;
  Who other;
  Memory memory;
  std::string detail;
  int64_t count = 1;
  int64_t order = 0;  // in which findings were first made
};

/*! \brief Keeps a finding, or counts it with those of the same kind and places. */
void add_finding(const Finding& finding);
/*! \brief Writes what was found to the file that EMULATOR_FINDINGS names, and forgets it. */
void write_findings();
/*! \brief Writes one access of the thread that EMULATOR_THREAD names. */
void write_trace(const Site& at, bool write, size_t size, const Memory& memory, const void* value);

}  // namespace checked
}  // namespace emulator

#endif  // EMULATOR_CHECKED_FINDING_H_
