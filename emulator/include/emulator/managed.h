/*!
 * \file managed.h
 * \brief Tells the runtime which variables are `__managed__`: memory of both host and device.
 *
 * They lie in a section of their own, whose ends the linker names in each program and library.
 */
#ifndef EMULATOR_MANAGED_H_
#define EMULATOR_MANAGED_H_

#ifdef __ELF__
extern "C" {
extern char __start_emulator_managed[] __attribute__((weak, visibility("hidden")));
extern char __stop_emulator_managed[] __attribute__((weak, visibility("hidden")));
}

namespace emulator {

/*! \brief Makes the variables between two addresses count as managed; once for both. */
void add_managed_variables(const char* begin, const char* end);

struct ManagedVariables {
  ManagedVariables() {
    const char* const begin = __start_emulator_managed;  // null if there are none
    if (begin != nullptr) add_managed_variables(begin, __stop_emulator_managed);
  }
};
static const ManagedVariables managed_variables;

}  // namespace emulator
#endif

#endif  // EMULATOR_MANAGED_H_
