/*!
 * \file watchdog.cc
 * \brief The timer of each CPU thread, and its signal. On Linux alone; elsewhere nothing is
 * stopped.
 */
#include "watchdog.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "block.h"
#include "checked.h"
#include "error.h"
#include "instruction.h"
#include "lines.h"

#ifdef __linux__
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#endif

namespace emulator {
namespace {

#ifdef EMULATOR_CHECKED
const double kSeconds = 30;
#else
const double kSeconds = 10;
#endif
const double kOfKnown = 0.1;  // of the time, for kernels that were stopped before

std::mutex mutex;
std::set<std::string>& endless() {
  static auto* names = new std::set<std::string>;
  return *names;
}

double limit() {
  static const double seconds = [] {
    const char* wanted = std::getenv("EMULATOR_LAUNCH_SECONDS");
    return wanted == nullptr || *wanted == 0 ? kSeconds : std::strtod(wanted, nullptr);
  }();
  return seconds;
}

// The names of EMULATOR_ENDLESS are noted at the first launch.
std::atomic<bool> any_endless(false);

void read_endless() {
  const char* named = std::getenv("EMULATOR_ENDLESS");
  std::string left = named == nullptr ? "" : named;
  while (!left.empty()) {
    const size_t comma = left.find(',');
    if (comma != 0) note_endless(left.substr(0, comma).c_str());
    left = comma == std::string::npos ? "" : left.substr(comma + 1);
  }
}

__thread int unstoppable EMULATOR_FAST_TLS = 0;

// So many signals come after the limit before a kernel is stopped where it is: meanwhile it is
// where it calls the runtime, which may hold a lock.
const int kPatience = 3;
// Thread by thread a block gets this part of its time once more.
const double kOnceMore = 0.2;

const char kHint[] =
    "\nhint: does each turn change what ends the loop? What another thread writes is read as "
    "volatile or by an atomic function; better wait at a barrier. If the work is only slow, "
    "EMULATOR_LAUNCH_SECONDS gives a block more time";

}  // namespace

void Block::begin_watch() {
  watched_.limit = watched_.told = seconds_of_block(grid_->site.name);
  watched_.is_closer = false;
  ++watched_.launch;
}

bool Block::makes_progress() {
  const bool is_new = watched_.launch_seen != watched_.launch || watched_.next_seen != next_;
  watched_.launch_seen = watched_.launch;
  watched_.next_seen = next_;
  return is_new;
}

void Block::be_watched(const Interrupted& interrupted) {
  // Not on the stack of the scheduler, nor of another signal's handler.
  if (!Fibers::holds(fiber_, interrupted.stack)) return;
  const double now = processor_seconds();
  if (makes_progress()) {
    watched_.since = now;
    watched_.signals = 0;
    stop_wanted_ = false;
    return;
  }
  const bool is_over = grid_->failed && !watched_.is_closer;
  if (!is_over && now - watched_.since < watched_.limit) return;
  if (watched_.signals++ == 0) watch_closely(true);
  stop_wanted_ = true;
  EMULATOR_CHECK(stop_soon());
  if (watched_.signals <= kPatience || !grid_->code.has(interrupted.at)) return;
  stop(interrupted.at, interrupted.caller());
}

void Block::stop_here(const void* place) {
  if (!makes_progress()) stop(reinterpret_cast<uintptr_t>(place) - 1, 0);  // the call
  stop_wanted_ = false;
  watch_closely(false);
}

void Block::stop(uintptr_t at, uintptr_t caller) {
  stopped_at_ = at;
  stopped_below_ = grid_->code.has(caller) ? caller : 0;
  stop_wanted_ = false;
  switch_context(&fiber_->context, &base_);
  std::abort();
}

// Before the block runs once more, thread by thread; false if another block has failed. Those of
// other CPU threads are stopped meanwhile.
bool Block::look_closer() {
  watch_closely(false);
  stopped_at_ = 0;
  watched_.limit *= kOnceMore;
  ++watched_.launch;
  return watched_.is_closer = !grid_->failed.exchange(true);
}

void Block::tell_stopped(uintptr_t at, const std::string& who) {
  watch_closely(false);
  stopped_at_ = 0;
  if (!watched_.is_closer && grid_->failed.exchange(true)) return;
  char seconds[64];
  std::snprintf(seconds, sizeof seconds, "after %g s of processor time", watched_.told);
  SourceLine loop = loop_at(at);
  // Code that is nobody's: the linker's, which goes on to a function of another library.
  if (loop.text.empty() && stopped_below_ != 0) loop = loop_at(stopped_below_ - 1);
  EMULATOR_CHECK(timed_out(at, loop, seconds));
  note_endless(grid_->site.name);
  set_sticky_error(cudaErrorLaunchTimeout,
                   "emulated GPU: " + who + ": it did not end, and was stopped " + seconds +
                       (loop.text.empty() ? "" : " in this loop:" + loop.text) + kHint);
}

double seconds_of_block(const char* kernel) {
  static std::once_flag once;
  std::call_once(once, read_endless);
  if (!any_endless.load(std::memory_order_relaxed)) return limit();
  std::lock_guard<std::mutex> lock(mutex);
  return endless().count(kernel) != 0 ? limit() * kOfKnown : limit();
}

void note_endless(const char* kernel) {
  std::lock_guard<std::mutex> lock(mutex);
  endless().insert(kernel);
  any_endless = true;
}

Unstoppable::Unstoppable() { ++unstoppable; }
Unstoppable::~Unstoppable() { --unstoppable; }

#ifdef __linux__

namespace {

// Debuggers let it pass without a word, and hardly any program uses it.
const int kSignal = SIGVTALRM;
const long kOften = 5 * 1000 * 1000;  // nanoseconds
const long kSeldom = 100 * 1000 * 1000;

// How often this process was forked: a child has no timers.
std::atomic<unsigned> forks(0);

void handle(int, siginfo_t*, void* context) {
  Block* block = Block::running();
  if (block == nullptr || unstoppable != 0) return;
  const int error = errno;
  block->be_watched(Interrupted(context));
  errno = error;
}

// False if the program has a handler of its own.
bool install() {
  struct sigaction action, now;
  if (sigaction(kSignal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return false;
  std::memset(&action, 0, sizeof action);
  action.sa_sigaction = handle;
  // Not blocked while the handler runs, since it may leave by a jump.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
  pthread_atfork(nullptr, nullptr, [] { ++forks; });
  return sigaction(kSignal, &action, nullptr) == 0;
}

// By calls of the system: the library that has the functions differs from version to version.
struct Timer {
  bool is_tried = false, works = false;
  unsigned forks_before = 0;
  int number = 0;

  void make() {
    is_tried = true;
    forks_before = forks;
    struct sigevent event;
    std::memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = kSignal;
    event._sigev_un._tid = static_cast<int>(syscall(SYS_gettid));
    works = syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &number) == 0;
    set(kSeldom);
  }
  void set(long nanoseconds) {
    if (!works) return;
    const struct timespec often = {0, nanoseconds};
    const struct itimerspec time = {often, often};
    syscall(SYS_timer_settime, number, 0, &time, nullptr);
  }
  ~Timer() {
    if (works && forks_before == forks) syscall(SYS_timer_delete, number);
  }
};

thread_local Timer timer;

struct Search {
  uintptr_t address;
  Code found;
};

int find_code(dl_phdr_info* info, size_t, void* data) {
  Search* search = static_cast<Search*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    const Code code = {begin, begin + header.p_memsz};
    if (header.p_type != PT_LOAD || !code.has(search->address)) continue;
    search->found = code;
    return 1;
  }
  return 0;
}

}  // namespace

double processor_seconds() {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void watch_this_thread() {
  if (timer.is_tried && timer.forks_before == forks.load(std::memory_order_relaxed)) return;
  static const bool is_installed = limit() > 0 && install();
  if (is_installed) return timer.make();
  timer.is_tried = true;
  timer.forks_before = forks;
}

void watch_closely(bool closely) { timer.set(closely ? kOften : kSeldom); }

Code code_around(uintptr_t address) {
  Search search = {address, {0, 0}};
  dl_iterate_phdr(find_code, &search);
  return search.found;
}

#else

double processor_seconds() { return 0; }
void watch_this_thread() {}
void watch_closely(bool) {}
Code code_around(uintptr_t) { return {0, 0}; }

#endif

}  // namespace emulator
