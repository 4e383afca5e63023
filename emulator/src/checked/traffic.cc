/*!
 * \file traffic.cc
 * \brief Counts what warps access.
 */
#include "traffic.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "../counts.h"
#include "requests.h"

namespace emulator {
namespace checked {
namespace {

typedef std::array<int64_t, kTraffic> Numbers;

const char* const kNames[] = {
#define NUMBER(name, cost) #name,
    EMULATOR_TRAFFIC_NUMBERS(NUMBER)
#undef NUMBER
        "cost"};

const int64_t kCosts[] = {
#define NUMBER(name, cost) cost,
    EMULATOR_TRAFFIC_NUMBERS(NUMBER)
#undef NUMBER
        1};

void add(Numbers* to, Traffic what, int64_t count) {
  (*to)[static_cast<int>(what)] += count;
  (*to)[static_cast<int>(Traffic::cost)] += count * kCosts[static_cast<int>(what)];
}

std::mutex mutex;
std::map<std::string, Numbers>& kernels() {
  static auto* kept = new std::map<std::string, Numbers>;  // used until the very end
  return *kept;
}

// Accesses of a block that are kept. Who comes last to a barrier goes on first, so a warp's lanes
// need not run one after another; what takes too much room is counted, that warp's excepted.
const size_t kMostKept = 1 << 20;

// Of the block that this CPU thread runs. Not within the thread's own storage: what is next to that
// of kernels is taken for theirs.
struct OfBlock {
  int thread = 0;
  size_t kept = 0;
  uintptr_t deepest = 0;  // bytes of a thread's own on its stack
  std::vector<uintptr_t> tops = std::vector<uintptr_t>(kMaxThreads);  // where those begin, or 0
  std::vector<LaneAccesses> threads = std::vector<LaneAccesses>(kMaxThreads);
  Numbers block = {};
};
OfBlock& of_block() {
  static thread_local auto* mine = new OfBlock;
  return *mine;
}

uintptr_t frame_address() { return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)); }

void count(const Request& request, Numbers* to) {
  if (request.shared) {
    const Turns turns = turns_of(request);
    add(to, Traffic::shared_requests, 1);
    add(to, Traffic::shared_turns, turns.needed);
    add(to, Traffic::replays, turns.needed - turns.best);
    return;
  }
  add(to, Traffic::requests, 1);
  for (const Span& span : request.spans)
    add(to, Traffic::bytes, static_cast<int64_t>(span.end - span.begin));
  const Traffic kinds[] = {Traffic::load_sectors, Traffic::store_sectors, Traffic::atomic_sectors};
  add(to, kinds[static_cast<int>(request.access)], sectors_of(request));
}

// Counts what warps did since the last time, all but one.
void settle_warps(OfBlock* mine, int except = -1) {
  for (int first = 0; first < kMaxThreads; first += kWarp) {
    if (first / kWarp == except) continue;
    LaneAccesses* const lanes = &mine->threads[first];
    for (const Request& request : requests_of(lanes)) count(request, &mine->block);
    for (int lane = 0; lane < kWarp; ++lane) {
      mine->kept -= lanes[lane].size();
      lanes[lane].clear();
    }
  }
}

void keep(const Grid& grid, const Numbers& numbers) {
  std::lock_guard<std::mutex> lock(mutex);
  Numbers& kernel = kernels()[grid.site.name];
  for (int i = 0; i < kTraffic; ++i) kernel[i] += numbers[i];
  add_to_counts(Count::kTraffic, numbers.data(), kTraffic);
}

}  // namespace

bool counts_traffic() {
  static const bool counts = std::getenv("EMULATOR_TRAFFIC") != nullptr;
  return counts;
}

void count_thread(int thread) {
  OfBlock& mine = of_block();
  if (mine.kept > kMostKept) settle_warps(&mine, thread / kWarp);
  mine.thread = thread;
  if (mine.tops[thread] == 0) mine.tops[thread] = frame_address();  // it begins
}

void count_access(State* s, uintptr_t address, size_t size, Access access, const void* place) {
  OfBlock& mine = of_block();
  const uintptr_t here = frame_address(), top = mine.tops[mine.thread];
  if (here < top) mine.deepest = std::max(mine.deepest, top - here);
  if (s->owns(address)) return;
  ++mine.kept;
  mine.threads[mine.thread].push_back(
      {place, address, static_cast<unsigned>(size), access, s->shared.has(address)});
}

void count_shuffle() { add(&of_block().block, Traffic::shuffles, 1); }

void count_barrier(int threads) {
  OfBlock& mine = of_block();
  settle_warps(&mine);
  add(&mine.block, Traffic::barriers, (threads + kWarp - 1) / kWarp);
}

void count_launch(const Grid& grid) {
  Numbers numbers = {};
  const dim3& blocks = grid.config.grid;
  add(&numbers, Traffic::launches, 1);
  add(&numbers, Traffic::blocks, static_cast<int64_t>(blocks.x) * blocks.y * blocks.z);
  keep(grid, numbers);
}

void count_block_end(const Grid& grid) {
  OfBlock& mine = of_block();
  settle_warps(&mine);
  add(&mine.block, Traffic::own_bytes, static_cast<int64_t>(mine.deepest));
  keep(grid, mine.block);
  mine.block = {};
  mine.deepest = 0;
  std::fill(mine.tops.begin(), mine.tops.end(), 0);
}

void write_traffic() {
  const char* path = std::getenv("EMULATOR_TRAFFIC");
  if (path == nullptr) return;
  std::string text;
  std::lock_guard<std::mutex> lock(mutex);
  for (const auto& [kernel, numbers] : kernels()) {
    text += "{\"kernel\": \"" + kernel + "\"";
    for (int i = 0; i < kTraffic; ++i)
      text += std::string(", \"") + kNames[i] + "\": " + std::to_string(numbers[i]);
    text += "}\n";
  }
  const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return;
  const ssize_t written = write(file, text.data(), text.size());
  (void)written;
  close(file);
}

}  // namespace checked
}  // namespace emulator

const char* emulator_traffic_name(int number) {
  using namespace emulator::checked;
  return number >= 0 && number < kTraffic ? kNames[number] : nullptr;
}

int64_t emulator_traffic_cost(int number) {
  return emulator_traffic_name(number) == nullptr ? -1 : emulator::checked::kCosts[number];
}

int64_t emulator_traffic(int number) {
  using emulator::Count;
  if (emulator_traffic_name(number) == nullptr) return -1;
  return emulator::count_of(static_cast<Count>(static_cast<int>(Count::kTraffic) + number));
}
