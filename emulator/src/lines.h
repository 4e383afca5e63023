/*!
 * \file lines.h
 * \brief The line of source that an instruction comes of.
 */
#ifndef EMULATOR_LINES_H_
#define EMULATOR_LINES_H_

#include <cstdint>
#include <string>

namespace emulator {

/*! \brief A line of source; its file is "", and its text, where nothing is known. */
struct SourceLine {
  std::string file;  // as seen from the working folder, if it is below it
  int line = 0;
  std::string text;  // the place, and the lines around it, behind a line break
};

/*!
 * \brief The line at an address in a kernel, or where the loop around it begins. Its text:
 *
 *     src/gpu_op.cu:31
 *            30 |   for (int i = 0; i < n; ++i)
 *       >    31 |     sum += a[i];
 *
 */
SourceLine line_at(uintptr_t address);
SourceLine loop_at(uintptr_t address);

}  // namespace emulator

#endif  // EMULATOR_LINES_H_
