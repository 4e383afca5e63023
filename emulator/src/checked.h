/*!
 * \file checked.h
 * \brief What the runtime tells the checked build; in the fast build all of it is nothing.
 *
 *   EMULATOR_CHECK(freed(ptr));
 */
#ifndef EMULATOR_CHECKED_H_
#define EMULATOR_CHECKED_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda_runtime_api.h"

#ifdef EMULATOR_CHECKED
#define EMULATOR_CHECK(...) ::emulator::checked::__VA_ARGS__
// At the start of a function of the runtime: where the program called it.
#define EMULATOR_HOST_CALL() EMULATOR_HOST_CALL_OF(__func__)
// The same, of a function with another name than the program knows.
#define EMULATOR_HOST_CALL_OF(function) \
  ::emulator::checked::HostCall emulator_call(__builtin_return_address(0), function)
#else
#define EMULATOR_CHECK(...) ((void)0)
#define EMULATOR_HOST_CALL() ((void)0)
#define EMULATOR_HOST_CALL_OF(function) ((void)0)
#endif

namespace emulator {

struct Config;
struct Grid;
struct LaunchSite;
class Block;
struct Thread;
struct SourceLine;
enum class Wait;

namespace checked {

// Around an allocation and behind it, for accesses that miss it: the run goes on.
#ifdef EMULATOR_CHECKED
const size_t kPadding = 64 * 1024;
#else
const size_t kPadding = 0;
#endif

/*! \brief While one exists, findings of the host name the place of the outermost call. */
class HostCall {
 public:
  HostCall(const void* place, const char* function);
  ~HostCall();
};

/*! \brief Where the program called the runtime. */
struct CallPlace {
  const void* address = nullptr;
  const char* file = nullptr;
  int line = 0;
};
#ifdef EMULATOR_CHECKED
CallPlace call_place();
#else
inline CallPlace call_place() { return {}; }
#endif

/*! \brief While one exists, what is done was asked for at another place: by a node's call. */
class AtPlace {
 public:
  explicit AtPlace(const CallPlace& place);
  ~AtPlace();

 private:
  CallPlace before_;
};

/*! \brief While one exists, this thread launches a graph, or a graph in a graph. */
class GraphLaunch {
 public:
  GraphLaunch();
  ~GraphLaunch();
};

/*!
 * \brief A launch or a copy. Host threads take turns at them, and what they do with memory is
 * noted in that order.
 */
class Work {
 public:
  Work();
  ~Work();
};

// Device memory.
void arena_reserved(uintptr_t begin, size_t size);
void allocated(uintptr_t start, size_t size);
void freed(uintptr_t start);
void freed_wrongly(const void* ptr);
void copied(void* to, const void* from, size_t size);
void written(void* ptr, size_t size);
void refused_copy(const void* to, size_t to_span, const void* from, size_t from_span,
                  cudaMemcpyKind kind);
/*! \brief A matrix that cuBLAS reads, or writes, and whether it lies in device memory. */
void used_by_cublas(const char* function, const char* operand, const void* ptr, size_t span,
                    bool valid);
/*! \brief `variable` is where the program got it. */
void cublas_handle_created(const void* handle, const void* variable);
void cublas_handle_destroyed(const void* handle);

// Memory of the host that kernels may use.
void host_memory_made(void* ptr, size_t size);
void host_memory_dropped(void* ptr);

// Streams: who waits for whom.
void stream_created(cudaStream_t stream, bool blocking);
void stream_waits_for_event(cudaStream_t stream, cudaEvent_t event);
void event_recorded(cudaEvent_t event, cudaStream_t stream);
void event_forgotten(cudaEvent_t event);
void host_waits_for_event(cudaEvent_t event);
void host_waits_for_stream(cudaStream_t stream);
void host_waits_for_all();

/*! \brief Around a function of the host that a stream calls. */
class HostFunction {
 public:
  explicit HostFunction(cudaStream_t stream);
  ~HostFunction();
};

/*! \brief Memory of a copy, in rows that begin some bytes apart; null for the source of a memset.
 */
struct Rows {
  const void* ptr;
  size_t pitch;
};
void copy_submitted(const Rows& to, const Rows& from, size_t width, size_t height,
                    cudaStream_t stream, bool waits);
/*! \brief After copied() and written(). */
void copy_done(const Rows& to, size_t width, size_t height);
/*! \brief A copy from device memory to device memory, for what is counted. */
void count_copy(const Rows& to, const Rows& from, size_t width, size_t height);
void kernel_submitted(const Grid& grid);
/*! \brief Lines of a matrix, of which a function of cuBLAS reads or writes each element. */
struct Lines {
  Rows lines;
  size_t width, count;
};
void cublas_submitted(const char* function, cudaStream_t stream, const std::vector<Lines>& read,
                      const Lines& written);

// Launches.
void launch_begins(const Grid& grid);
void launch_refused(const LaunchSite& site, const Config& config, const char* why);
/*! \brief A call left an error, which cudaGetLastError tells until the next one. */
void call_failed(const char* text);
void error_read();

// Blocks: from the CPU thread that runs one.
void block_begins(const Grid& grid, int64_t number, char* shared, size_t dynamic_shared);
void block_ends();
/*! \brief Threads run on a stack from here on. */
void stack_is(const void* stack, size_t size);
/*! \brief A thread goes on behind a wait; how one begins and ends is in checked/threads.h. */
void thread_goes_on(int thread);
/*! \brief A thread arrived at a barrier of its block, called from `place`. */
void barrier_met(int thread, const void* place);
void barrier_released(const Block& block);
/*! \brief The running thread calls a function of the warp whose mask does not name it. */
void unnamed(unsigned mask, const void* place);
/*! \brief Lanes of a warp, by its first thread and its number, exchange values. */
void shuffled(const Thread* first, int number, unsigned lanes, int threads);
void warp_met(int first_thread, unsigned lanes);
/*! \brief A loop of the running thread that only waits, see cuda_source/waiting_loops.py. */
void wait_begins();
void wait_ends();
void deadlocked(const Block& block);
/*! \brief A kernel, or host code, was stopped at an address. */
void faulted(uintptr_t address);
void misaligned(uintptr_t address, unsigned alignment);
void host_faulted(uintptr_t address);
/*! \brief The running kernel is to be stopped; and it was, at an instruction. */
void stop_soon();
void timed_out(uintptr_t at, const SourceLine& loop, const char* when);
void assertion_failed(const char* text, const char* file, int line);
void trapped(const void* place);

}  // namespace checked
}  // namespace emulator

#endif  // EMULATOR_CHECKED_H_
