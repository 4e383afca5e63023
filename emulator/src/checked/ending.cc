/*!
 * \file ending.cc
 * \brief The end of the program.
 *
 * Findings are written as they are made, so there is little to do. What was never freed is told
 * only of a program whose `main` returned 0: one that gave up on the way (exit, abort, a crash, a
 * kernel that failed, after which cudaFree does nothing) leaves its memory to the system.
 */
#include "ending.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "../error.h"
#include "advice.h"
#include "traffic.h"

namespace emulator {
namespace checked {
namespace {

bool gave_up = false;

#ifdef __GLIBC__
// For check_kernels.py, which sees how its own child ends, and not those of that one.
void tell(const char* what) {
  const char* path = std::getenv("EMULATOR_ENDS");
  int file = path == nullptr ? -1 : open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  std::string line = std::string(what) + " " + std::to_string(getpid()) + " ";
  line += std::string(program_invocation_name) + "\n";
  ssize_t written = write(file, line.data(), line.size());
  (void)written;
  close(file);
}
#else
void tell(const char*) {}
#endif

void end(int status) {
  if (counts_traffic()) return write_traffic();
  if (status == 0 && !gave_up && sticky_error() == cudaSuccess) {
    report_leaks();
    report_handles();
  }
  report_advice();
  write_counts(true);
  tell("ended");
}

#ifdef __GLIBC__

// Behind all destructors, the program's and the libraries', since it is registered first; so the
// library must not be unloaded.
const bool registered = [] {
  Dl_info info;
  if (dladdr(&gave_up, &info) != 0) dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  on_exit([](int status, void*) { end(status); }, nullptr);
  at_quick_exit([] {
    report_advice();
    write_counts(true);
    write_traffic();
    tell("ended");
  });
  tell("began");
  return true;
}();

#else

struct AtExit {
  ~AtExit() { end(0); }
} at_exit;

#endif

}  // namespace

#ifdef __GLIBC__
[[noreturn]] void call_exit(int status) {
  gave_up = true;
  auto* next = reinterpret_cast<void (*)(int)>(dlsym(RTLD_NEXT, "exit"));
  if (next != nullptr) next(status);
  _exit(status);
}
#endif

}  // namespace checked
}  // namespace emulator

extern "C" {

#ifdef __GLIBC__
/*! \brief The program's own call; what the system calls when `main` returns is not this one. */
__attribute__((noreturn)) void exit(int status) noexcept { emulator::checked::call_exit(status); }
#endif

/*!
 * \brief Writes what was found so far, for a process that will be ended rather than end, and a line
 * with the number, from which one knows that what is written arrives.
 */
void emulator_write_findings(int number) {
  emulator::checked::write_counts(true);
  emulator::checked::write_number(number);
}
}
