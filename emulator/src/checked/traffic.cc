/*!
 * \file traffic.cc
 * \brief Counts what warps access.
 */
#include "traffic.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "../checked.h"
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

const uintptr_t kSector = 32;
// Bytes that an instruction loads or stores for a lane at most.
const uintptr_t kWidest = 16;

// Of the block that this CPU thread runs. Not within the thread's own storage: what is next to that
// of kernels is taken for theirs.
struct OfBlock {
  int thread = 0;
  size_t kept = 0;
  uintptr_t deepest = 0;  // bytes of a thread's own on its stack
  std::vector<uintptr_t> tops = std::vector<uintptr_t>(kMaxThreads);  // where those begin, or 0
  std::vector<LaneAccesses> threads = std::vector<LaneAccesses>(kMaxThreads);
  std::bitset<kMaxThreads / kWarp> working;  // warps that have accessed anything
  Numbers block = {};
};
OfBlock& of_block() {
  static thread_local auto* mine = new OfBlock;
  return *mine;
}

uintptr_t frame_address() { return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)); }

// Those that lie under rows of memory.
int64_t sectors_of_rows(const Rows& rows, size_t width, size_t height) {
  int64_t found = 0;
  for (size_t row = 0; row < height; ++row) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(rows.ptr) + row * rows.pitch;
    found += static_cast<int64_t>((begin + width - 1) / kSector - begin / kSector + 1);
  }
  return found;
}

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
    for (const Request& request : requests_of(lanes)) {
      mine->working.set(first / kWarp);
      count(request, &mine->block);
    }
    for (int lane = 0; lane < kWarp; ++lane) {
      mine->kept -= lanes[lane].size();
      lanes[lane].clear();
    }
  }
}

void keep(const char* name, const Numbers& numbers) {
  std::lock_guard<std::mutex> lock(mutex);
  Numbers& kernel = kernels()[name];
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
  // A struct is copied by one access after the other.
  for (const uintptr_t end = address + size; address < end; address += kWidest) {
    ++mine.kept;
    const unsigned part = static_cast<unsigned>(std::min<size_t>(end - address, kWidest));
    mine.threads[mine.thread].push_back({place, address, part, access, s->shared.has(address)});
  }
}

void count_shuffle() { add(&of_block().block, Traffic::shuffles, 1); }

void count_barrier(int threads) {
  OfBlock& mine = of_block();
  settle_warps(&mine);
  add(&mine.block, Traffic::barriers, (threads + kWarp - 1) / kWarp);
}

void count_launch(const Grid& grid) {
  Numbers numbers = {};
  add(&numbers, Traffic::launches, 1);
  keep(grid.site.name, numbers);
}

// As a kernel that gives each warp 32 sectors, and each block 8 warps.
void count_copy(const Rows& to, const Rows& from, size_t width, size_t height) {
  if (!counts_traffic()) return;
  Numbers numbers = {};
  const int64_t read = sectors_of_rows(from, width, height), warps = (read + kWarp - 1) / kWarp;
  add(&numbers, Traffic::launches, 1);
  add(&numbers, Traffic::blocks, (warps + 7) / 8);
  add(&numbers, Traffic::warps, warps);
  add(&numbers, Traffic::load_sectors, read);
  add(&numbers, Traffic::store_sectors, sectors_of_rows(to, width, height));
  keep("cudaMemcpy", numbers);
}

void count_block_end(const Grid& grid) {
  OfBlock& mine = of_block();
  settle_warps(&mine);
  add(&mine.block, Traffic::blocks, mine.working.any());
  add(&mine.block, Traffic::warps, static_cast<int64_t>(mine.working.count()));
  mine.working.reset();
  add(&mine.block, Traffic::own_bytes, static_cast<int64_t>(mine.deepest));
  keep(grid.site.name, mine.block);
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
