/*!
 * \file site.h
 * \brief Places in the program that calls the runtime, for the reports of the checked build.
 */
#ifndef EMULATOR_SITE_H_
#define EMULATOR_SITE_H_

namespace emulator {

/*! \brief The kernel that a launch names, and the line of the launch. */
struct LaunchSite {
  const char* name;
  const char* file;
  int line;
};

/*! \brief Tells the checked build where the call that follows stands. */
struct CallSite {
#ifdef EMULATOR_CHECKED
  CallSite(const char* file, int line);
#else
  CallSite(const char*, int) {}
#endif
};

}  // namespace emulator

// A function's last parameters: the file and line of its call.
#define EMULATOR_CALL_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

#endif  // EMULATOR_SITE_H_
