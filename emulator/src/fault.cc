/*!
 * \file fault.cc
 * \brief The handler of SIGSEGV, SIGBUS and SIGFPE.
 *
 * Device memory that is closed is opened for a kernel that touches it; see protection.h. Else, in a
 * kernel a wrong address ends the launch: the handler jumps to the CPU thread's own stack
 * and never returns. A division of integers that the CPU can't do goes on there, as on a GPU, with
 * a result that nothing says. In host code it says what the address is, if it is the device's, and
 * lets the process die as it would have.
 */
#include "fault.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#include "arena.h"
#include "block.h"
#include "checked.h"
#include "instruction.h"
#include "lines.h"
#include "protection.h"

namespace emulator {
namespace {

const size_t kStackSize = 256 * 1024, kGuard = 64 * 1024;  // a page or several
const int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE};
struct sigaction previous[3];

// "0x7f00, 4 bytes past the end of an allocation of 400 bytes"
std::string describe(uintptr_t address) {
  char text[160];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  std::string where = text;
  Place place;
  if (address < 4096) return where + ", a null pointer";
  if (!try_locate(address, &place)) return where + " of device memory";
  if (!place.in_arena) return where + ", which is not device memory";
  if (!place.live) return where + " of device memory, which is not allocated";
  size_t offset = address - place.start;
  if (offset < place.size)
    std::snprintf(text, sizeof text, ", %zu bytes into an allocation of %zu bytes", offset,
                  place.size);
  else
    std::snprintf(text, sizeof text, ", %zu bytes past the end of an allocation of %zu bytes",
                  offset - place.size, place.size);
  return where + text;
}

[[noreturn]] void fail_kernel(Block* block, uintptr_t address, uintptr_t at) {
  block->leave_loops("accessed address " + describe(address));
  if (block->is_stack_guard(address))
    block->fail(cudaErrorIllegalAddress,
                "emulated GPU: " + block->where() + ": the stack overflowed; a thread has " +
                    std::to_string(kMostLocal / 1024) + " KB" + line_at(at).text +
                    "\nhint: endless recursion, or a large local array?");
  block->fail(cudaErrorIllegalAddress, "emulated GPU: " + block->where() + ": accessed address " +
                                           describe(address) + line_at(at).text);
}

// What an address should be a multiple of, for the widest accesses of the CPU that want it.
unsigned missing_alignment(uintptr_t address) {
  for (unsigned alignment : {16u, 32u, 64u})
    if (address % alignment != 0) return alignment;
  return 0;
}

[[noreturn]] void fail_misaligned(Block* block, uintptr_t address, unsigned alignment,
                                  uintptr_t at) {
  EMULATOR_CHECK(misaligned(address, alignment));
  std::string what = "accessed address " + describe(address) + ", which is no multiple of " +
                     std::to_string(alignment);
  block->leave_loops(what);
  block->fail(cudaErrorMisalignedAddress,
              "emulated GPU: " + block->where() + ": " + what + line_at(at).text);
}

void tell_host(uintptr_t address) {
  EMULATOR_CHECK(host_faulted(address));
  std::string message = "emulated GPU: host code touched device memory at " + describe(address) +
                        "\nhint: copy it to the host with cudaMemcpy first\n";
  ssize_t written = write(STDERR_FILENO, message.data(), message.size());
  (void)written;
}

// Lets the handler before ours, or the system, have the signal: it comes again on return.
void chain(int signal) {
  for (int i = 0; i < 3; ++i)
    if (kSignals[i] == signal) sigaction(signal, &previous[i], nullptr);
}

void handle(int signal, siginfo_t* info, void* context) {
  uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
  const int error = errno;
  if (signal == SIGFPE) {
    if (Block::running() == nullptr || !skip_division(context)) chain(signal);
    return;
  }
  if (open_by_need(address)) {
    errno = error;
    return;
  }
  if (Block* block = Block::running()) {
    unsigned alignment =
        find_address(signal, *info, context, &address) ? missing_alignment(address) : 0;
    const uintptr_t at = Interrupted(context).at;
    if (alignment != 0) fail_misaligned(block, address, alignment, at);
    EMULATOR_CHECK(faulted(address));
    fail_kernel(block, address, at);
  }
  if (in_arena(info->si_addr)) tell_host(address);
  chain(signal);
}

void install() {
  struct sigaction action;
  std::memset(&action, 0, sizeof action);
  action.sa_sigaction = handle;
  // Not blocked while the handler runs, since it may leave by a jump.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (int i = 0; i < 3; ++i) sigaction(kSignals[i], &action, &previous[i]);
}

// Taken back when its thread ends. It replaces one that is too small to look for lines on, such as
// that of Python's faulthandler, which has 10 KB.
struct FaultStack {
  void* memory = nullptr;

  FaultStack() {
    stack_t stack;
    if (sigaltstack(nullptr, &stack) != 0) return;
    if (!(stack.ss_flags & SS_DISABLE) && stack.ss_size >= kStackSize) return;
    // Below it lies a page that nobody may access.
    memory = mmap(nullptr, kStackSize + kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANON, -1, 0);
    if (memory == MAP_FAILED) memory = nullptr;
    if (memory == nullptr) return;
    std::memset(&stack, 0, sizeof stack);
    stack.ss_sp = static_cast<char*>(memory) + kGuard;
    stack.ss_size = kStackSize;
    if (mprotect(stack.ss_sp, kStackSize, PROT_READ | PROT_WRITE) == 0)
      sigaltstack(&stack, nullptr);
  }
  ~FaultStack() {
    if (memory == nullptr) return;
    stack_t none;
    std::memset(&none, 0, sizeof none);
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
    munmap(memory, kStackSize + kGuard);
  }
};

}  // namespace

void install_fault_handler() {
  static std::once_flag once;
  std::call_once(once, install);
}

bool opens_by_need() {
  install_fault_handler();
  struct sigaction now;
  return sigaction(SIGSEGV, nullptr, &now) == 0 && now.sa_sigaction == handle;
}

void prepare_fault_stack() {
  static thread_local FaultStack stack;
  (void)stack;
}

}  // namespace emulator
