/*!
 * \file pool.cc
 * \brief A pool that is made at the first use, kept, and made again in a forked child.
 */
#include "pool.h"

#include <pthread.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace emulator {
namespace {

struct Job {
  const Work& work;
  const int64_t count, chunk;
  std::atomic<int64_t> next;

  void run() {
    for (;;) {
      int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= count) return;
      work(begin, std::min(begin + chunk, count));
    }
  }
};

// Helpers wait for a job. Those that have not come before the caller ran out of work need not
// come any more; those that came are waited for.
class Pool {
 public:
  explicit Pool(int helpers) {
    for (int i = 0; i < helpers; ++i) std::thread(&Pool::help, this).detach();
  }

  void run(Job* job) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      job_ = job;
    }
    wake_.notify_all();
    job->run();
    std::unique_lock<std::mutex> lock(mutex_);
    job_ = nullptr;
    done_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  void help() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return job_ != nullptr && job_->next < job_->count; });
      Job* job = job_;
      ++busy_;
      lock.unlock();
      job->run();
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  Job* job_ = nullptr;
  int busy_ = 0;
};

// Never deleted: its threads may outlive static objects at the end of the process.
Pool* pool = nullptr;
std::mutex turn;

int cores() {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

// A fork copies only the thread that calls it. Holding `turn` meanwhile makes sure that the
// child gets no half-done job; it starts without helpers.
void before_fork() { turn.lock(); }
void in_parent() { turn.unlock(); }
void in_child() {
  pool = nullptr;
  turn.unlock();
}

Pool* the_pool() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(before_fork, in_parent, in_child); });
  if (pool == nullptr) pool = new Pool(pool_size() - 1);
  return pool;
}

}  // namespace

int pool_size() {
  const char* wanted = std::getenv("EMULATOR_THREADS");
  int size = wanted ? std::atoi(wanted) : 0;
  return size > 0 ? std::min(size, 1024) : cores();
}

void parallel_for(int64_t count, int64_t chunk, const Work& work) {
  Job job{work, count, chunk, {0}};
  if (count <= chunk) return job.run();
  std::lock_guard<std::mutex> lock(turn);
  the_pool()->run(&job);
}

}  // namespace emulator
