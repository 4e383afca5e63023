/*!
 * \file protection.cc
 * \brief Protection keys, and toggling where the CPU has none.
 */
#include "protection.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
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
  else
    setup.kind = wanted ? Protection::kToggle : Protection::kSparingly;
  return setup;
}

const Setup& setup() {
  static const Setup made = make_setup();
  return made;
}

unsigned key_bits() { return 3u << (2 * setup().key); }

typedef std::chrono::steady_clock Clock;

// How much of the program's time opening and closing may take, after so much that is free.
const int kShare = 100;
const Clock::duration kFree = std::chrono::milliseconds(10);

// Without keys. How many kernels and copies run, and whether memory is closed for all threads.
// A kernel that begins counts itself, then looks whether it is closed; who closes says so, then
// looks whether a kernel is counted: one of them sees the other.
std::atomic<int> users(0);
std::atomic<bool> closed(true);
std::mutex toggle_mutex;
Clock::time_point first_use;
Clock::duration spent(0);

// For the system, and for page faults of those that come next.
struct Spend {
  const Clock::time_point begin = Clock::now();
  ~Spend() { spent += 2 * (Clock::now() - begin); }
};

bool is_toggled() {
  return protection() == Protection::kToggle || protection() == Protection::kSparingly;
}

void set_rights(int rights) {
  for_each_range([rights](void* memory, size_t size) { mprotect(memory, size, rights); });
}

void open_all() {
  std::lock_guard<std::mutex> lock(toggle_mutex);
  if (!closed) return;
  Spend spend;
  set_rights(PROT_READ | PROT_WRITE);
  closed = false;
}

// Those of new memory, unless all was opened meanwhile.
void set_new_rights(void* memory, size_t size, int rights) {
  std::lock_guard<std::mutex> lock(toggle_mutex);
  Spend spend;
  if (closed) mprotect(memory, size, rights);
}

// A forked child must not inherit the lock from a thread that it has not. Behind the arena's own,
// which is taken under this one.
void first_toggle() {
  static std::once_flag once;
  std::call_once(once, [] {
    first_use = Clock::now();
    auto unlock = [] { toggle_mutex.unlock(); };
    pthread_atfork([] { toggle_mutex.lock(); }, unlock, unlock);
  });
}

bool is_affordable() {
  if (protection() == Protection::kToggle || spent < kFree) return true;
  return (spent - kFree) * kShare < Clock::now() - first_use;
}

void close_all() {
  if (closed || users > 0) return;
  std::lock_guard<std::mutex> lock(toggle_mutex);
  if (closed || !is_affordable()) return;
  Spend spend;
  closed = true;
  if (users > 0)
    closed = false;  // one began meanwhile
  else
    set_rights(PROT_NONE);
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

void fill_device_memory(void* memory, int value, size_t size) {
  if (!is_toggled()) {
    DeviceAccess access;
    std::memset(memory, value, size);
    return;
  }
  // The rest may stay as it is. Nobody closes anything while there is a user.
  ++users;
  first_toggle();
  if (closed) set_new_rights(memory, size, PROT_READ | PROT_WRITE);
  std::memset(memory, value, size);
  --users;
  if (closed) set_new_rights(memory, size, PROT_NONE);
}

void host_goes_on() {
  if (is_toggled()) close_all();
}

DeviceAccess::DeviceAccess() {
  if (is_toggled()) {
    ++users;
    if (closed) open_all();
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

void DeviceAccess::renew() {
  if (protection() == Protection::kKeys) write_rights(read_rights() & ~key_bits());
}

}  // namespace emulator
