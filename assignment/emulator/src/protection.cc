/*!
 * \file protection.cc
 * \brief Protection keys, and toggling where the CPU has none.
 */
#include "protection.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include "arena.h"

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#if defined(SYS_pkey_alloc) && defined(SYS_pkey_mprotect)
#define EMULATOR_KEYS 1
#endif
#endif

namespace emulator {
namespace {

struct Setup {
  Protection kind = Protection::kNone;
  int key = -1;
};

#ifdef EMULATOR_KEYS

// The register with two bits for each of 16 keys: no access, no writing. The instructions are
// given as bytes because compilers know their names only with an option.
unsigned read_rights() {
  unsigned rights;
  asm volatile(".byte 0x0f,0x01,0xee" : "=a"(rights) : "c"(0) : "edx");
  return rights;
}
void write_rights(unsigned rights) {
  asm volatile(".byte 0x0f,0x01,0xef" : : "a"(rights), "c"(0), "d"(0) : "memory");
}

int allocate_key() {
  const int kNoAccess = 1;
  return static_cast<int>(syscall(SYS_pkey_alloc, 0, kNoAccess));
}
int tag(void* memory, size_t size, int key) {
  return static_cast<int>(syscall(SYS_pkey_mprotect, memory, size, PROT_READ | PROT_WRITE, key));
}

#else

unsigned read_rights() { return 0; }
void write_rights(unsigned) {}
int allocate_key() { return -1; }
int tag(void*, size_t, int) { return -1; }

#endif

Setup make_setup() {
  Setup setup;
  const char* wanted = std::getenv("EMULATOR_PROTECT");
  if (wanted && wanted[0] == '0') return setup;
  bool only_toggle = wanted && wanted[0] == 't';
  setup.key = only_toggle ? -1 : allocate_key();
  if (setup.key > 0)
    setup.kind = Protection::kKeys;
  else if (wanted)
    setup.kind = Protection::kToggle;
  return setup;
}

const Setup& setup() {
  static const Setup made = make_setup();
  return made;
}

unsigned key_bits() { return 3u << (2 * setup().key); }

// With toggling: how many kernels and copies run.
std::mutex users_mutex;
int users = 0;

void toggle(int change) {
  std::lock_guard<std::mutex> lock(users_mutex);
  bool was_open = users > 0;
  users += change;
  if (was_open == (users > 0)) return;
  int rights = users > 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
  for_each_range([rights](void* memory, size_t size) { mprotect(memory, size, rights); });
}

}  // namespace

Protection protection() { return setup().kind; }

bool open_device_memory(void* memory, size_t size) {
  if (protection() == Protection::kKeys) return tag(memory, size, setup().key) == 0;
  return mprotect(memory, size, PROT_READ | PROT_WRITE) == 0;
}

bool close_device_memory(void* memory, size_t size) {
  return mprotect(memory, size, PROT_NONE) == 0;
}

DeviceAccess::DeviceAccess() {
  if (protection() == Protection::kToggle) toggle(+1);
  if (protection() != Protection::kKeys) return;
  previous_ = read_rights();
  write_rights(previous_ & ~key_bits());
}

DeviceAccess::~DeviceAccess() {
  if (protection() == Protection::kToggle) toggle(-1);
  // Only what this object changed: the other keys may have been changed meanwhile.
  if (protection() == Protection::kKeys)
    write_rights((read_rights() & ~key_bits()) | (previous_ & key_bits()));
}

void DeviceAccess::renew() {
  if (protection() == Protection::kKeys) write_rights(read_rights() & ~key_bits());
}

}  // namespace emulator
