/*!
 * \file protection.cc
 * \brief Protection keys, and toggling where the CPU has none.
 */
#include "protection.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>

#include "arena.h"
#include "emulator/language.h"
#include "fault.h"

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
  else
    setup.kind = wanted ? Protection::kToggle : Protection::kSparingly;
  return setup;
}

const Setup& setup() {
  static const Setup made = make_setup();
  return made;
}

// Decided before anything of the program runs, so that no variable that it sets makes a difference.
__attribute__((constructor(101))) void decide() { setup(); }

unsigned key_bits() { return 3u << (2 * setup().key); }

typedef std::chrono::steady_clock Clock;

// How much of the program's time opening and closing may take, after so much that is free.
const int kShare = 100;
const Clock::duration kFree = std::chrono::milliseconds(10);

const int kMostTimes = 100;

// Without keys. How many kernels and copies run: while one does, what it touches is opened.
std::atomic<int> users(0);
std::atomic<Clock::rep> spent(0);

// For the system, and for page faults of those that come next.
struct Spend {
  const Clock::time_point begin = Clock::now();
  bool counts = true;
  ~Spend() {
    if (counts) spent += 2 * (Clock::now() - begin).count();
  }
};

bool is_affordable() {
  static const Clock::time_point first_use = Clock::now();
  const Clock::duration more = Clock::duration(spent) - kFree;
  if (protection() == Protection::kToggle || more < Clock::duration::zero()) return true;
  return more * kShare < Clock::now() - first_use;
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

bool is_toggled() {
  return protection() == Protection::kToggle || protection() == Protection::kSparingly;
}

void host_goes_on() {
  if (!is_toggled() || !is_arena_open() || !is_affordable()) return;
  Spend spend;
  arena_close(users);
}

bool open_by_need(uintptr_t address) {
  // Another thread may have opened it since. What comes again and again has another cause.
  static __thread uintptr_t last EMULATOR_FAST_TLS = 0;
  static __thread int times EMULATOR_FAST_TLS = 0;
  if (!is_toggled() || users == 0) return false;
  Spend spend;
  const Opened opened = arena_open(address);
  spend.counts = opened == Opened::kNow;
  times = opened == Opened::kBefore && address == last ? times + 1 : 0;
  last = address;
  return opened != Opened::kNever && times < kMostTimes;
}

DeviceAccess::DeviceAccess() {
  if (is_toggled()) {
    ++users;
    // A program may have put a handler of its own in the place of ours.
    if (!opens_by_need()) arena_open_all();
  }
  if (protection() != Protection::kKeys) return;
  previous_ = read_rights();
  write_rights(previous_ & ~key_bits());
}

DeviceAccess::~DeviceAccess() {
  if (is_toggled()) --users;
  // Only what this object changed: the other keys may have been changed meanwhile.
  if (protection() == Protection::kKeys)
    write_rights((read_rights() & ~key_bits()) | (previous_ & key_bits()));
}

void DeviceAccess::open(const void* ptr) {
  if (!is_toggled()) return;
  Spend spend;
  // What is open already took no time that closing less often would save.
  spend.counts = arena_open(reinterpret_cast<uintptr_t>(ptr)) == Opened::kNow;
}

void DeviceAccess::renew() {
  if (protection() == Protection::kKeys) write_rights(read_rights() & ~key_bits());
}

}  // namespace emulator
