/*!
 * \file finding.h
 * \brief What was found, folded over the threads that did it, and written for report.py.
 */
#ifndef EMULATOR_CHECKED_FINDING_H_
#define EMULATOR_CHECKED_FINDING_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "emulator/vector_types.h"

namespace emulator {
namespace checked {

/*! \brief What is wrong: the rows of kinds.h, in their order. */
enum class Kind {
  kNone,
#define TEXT(name, text)
#define CANDIDATE(name, text, becomes) name,
#define KIND(name, text, title, cause, hint, sentence) name,
#include "kinds.h"
#undef TEXT
#undef CANDIDATE
#undef KIND
};

/*! \brief A place in the program: an address in its code, or a line. */
struct Site {
  const void* address = nullptr;
  const char* file = nullptr;
  int line = 0;
};

/*! \brief The calls that a thread is in, outermost first: the kernel's, a function's of it. */
struct Calls {
  static const int kMost = 8;
  int depth = 0;            // the kernel itself, and what it called
  const void* from[kMost];  // where each of the first calls in the kernel returns to

  void enter(const void* place) {
    if (depth > 0 && depth <= kMost) from[depth - 1] = place;
    ++depth;
  }
  void leave() { --depth; }
  bool are(const Calls& other) const {
    return depth == other.depth && std::equal(from, from + known(), other.from);
  }
  int known() const { return depth <= 1 ? 0 : depth <= kMost ? depth - 1 : kMost; }
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
  Kind kind = Kind::kNone;
  std::string kernel;
  Site launch;
  dim3 grid, block;
  Site at;
  Calls calls;  // that led there
  Who who;
  size_t size = 0;
  bool write = false;
  bool has_other = false, other_write = false;
  Site other_at;
  Calls other_calls;
  Who other;
  Memory memory;
  std::string detail;
  int64_t count = 1;
  int64_t order = 0;  // in which findings were first made
};

/*!
 * \brief Writes a finding to the file that EMULATOR_FINDINGS names, at once, since the program may
 * end in any way; or counts it with those of the same kind and places.
 */
void add_finding(const Finding& finding);
/*! \brief Adds one that may turn out to be none, and takes it back then. */
void add_doubtful_finding(const Finding& finding);
void take_back_finding(const Finding& finding);
/*! \brief Writes by how much counts have grown: those that doubled, or all. */
void write_counts(bool all);
/*! \brief Writes a line that is no finding, with a number. */
void write_number(int number);
/*! \brief Writes one access of the thread that EMULATOR_THREAD names. */
void write_trace(const Site& at, bool write, size_t size, const Memory& memory, const void* value);

}  // namespace checked
}  // namespace emulator

#endif  // EMULATOR_CHECKED_FINDING_H_
