/*!
 * \file advice.cc
 * \brief Sectors, banks, active lanes and occupancy.
 */
#include "advice.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace emulator {
namespace checked {
namespace {

const size_t kMostSamples = 1 << 18;
const uintptr_t kSector = 32;  // bytes that the memory moves at once
const unsigned kBanks = 32;
// What is said: far from the best, and not just once.
const double kManySectors = 4, kManyWays = 2, kFewLanes = 20;
const int kEnough = 8;
// Of a multiprocessor of a large GPU of today.
const unsigned kThreadsOfProcessor = 2048, kBlocksOfProcessor = 32;
const size_t kSharedOfProcessor = 228 * 1024, kSharedOfBlock = 1024;  // the system's own part

struct Sample {
  uintptr_t address;
  size_t size;
  bool shared;
  int lane;
};
// A function may be called for shared memory and for global memory.
typedef std::pair<const void*, bool> Where;
// By place and number of the execution: the accesses of the lanes.
typedef std::map<std::pair<Where, int>, std::vector<Sample>> Samples;

thread_local Samples samples;
thread_local size_t sample_count = 0;

// What a compiler here does one element at a time, a GPU does at once: the parts of one vector, of
// 16 bytes at most, that a thread accesses one soon after the other.
const uintptr_t kVector = 16;
const int kRecent = 8;

// An access that may be a part of another one of its lane: it is if all lanes have it.
struct Part {
  std::vector<Sample>* whole;
  int lane;
  uintptr_t offset;
  Sample sample;
  Where where;
  int execution;
};
thread_local std::vector<Part> parts;
thread_local std::map<std::pair<Where, int>, int> executions;  // by place and thread

struct Recent {
  std::vector<Sample>* lanes = nullptr;
  uintptr_t address = 0;
  uintptr_t begin = 0, end = 0;
  bool write = false;
  std::vector<const void*> places;  // a loop comes to one again, and is no vector

  bool includes(uintptr_t address, size_t size) const {
    const bool beside = address == end || address + size == begin;
    return beside && end - begin + size <= kVector;
  }
  bool has(const void* place) const {
    return std::find(places.begin(), places.end(), place) != places.end();
  }
};
// Not within the thread's own storage: what is next to that of kernels is taken for theirs.
struct RecentOfLane {
  Recent all[kRecent];
  int next = 0;
};
thread_local std::vector<RecentOfLane> recent(kWarp);

// Whether an access goes on with a recent one. It is noted as a part of that.
bool is_part(const Sample& sample, bool write, const Where& where, int execution) {
  for (Recent& one : recent[sample.lane].all) {
    if (one.lanes == nullptr || one.write != write || !one.includes(sample.address, sample.size))
      continue;
    if (one.has(where.first)) continue;
    one.places.push_back(where.first);
    one.begin = std::min(one.begin, sample.address);
    one.end = std::max(one.end, sample.address + sample.size);
    parts.push_back(
        {one.lanes, sample.lane, sample.address - one.address, sample, where, execution});
    return true;
  }
  return false;
}

// Puts together what all lanes have side by side; the rest are accesses of their own.
void join_parts() {
  std::map<std::tuple<std::vector<Sample>*, Where, uintptr_t>, size_t> lanes_with;
  std::map<std::vector<Sample>*, size_t> lanes;
  for (const auto& entry : samples) lanes[&samples[entry.first]] = entry.second.size();
  for (const Part& part : parts) ++lanes_with[{part.whole, part.where, part.offset}];
  for (const Part& part : parts) {
    if (lanes_with[{part.whole, part.where, part.offset}] < lanes[part.whole]) {
      samples[{part.where, part.execution}].push_back(part.sample);
      continue;
    }
    for (Sample& whole : *part.whole) {
      if (whole.lane != part.lane) continue;
      const uintptr_t end =
          std::max(whole.address + whole.size, part.sample.address + part.sample.size);
      whole.address = std::min(whole.address, part.sample.address);
      whole.size = end - whole.address;
      break;
    }
  }
}

// Whether the lanes that are there access neighbours: those between them may have nothing to do.
bool side_by_side(const std::vector<Sample>& lanes) {
  return std::all_of(lanes.begin(), lanes.end(), [&](const Sample& one) {
    const int64_t distance = one.lane - lanes[0].lane;
    return one.address == lanes[0].address + distance * static_cast<int64_t>(one.size);
  });
}

double sectors_per_best(const std::vector<Sample>& lanes) {
  if (side_by_side(lanes)) return 1;
  std::set<uintptr_t> sectors, starts;
  for (const Sample& lane : lanes) {
    starts.insert(lane.address);
    for (uintptr_t at = lane.address / kSector; at <= (lane.address + lane.size - 1) / kSector;
         ++at)
      sectors.insert(at);
  }
  double best = static_cast<double>((starts.size() * lanes[0].size + kSector - 1) / kSector);
  return static_cast<double>(sectors.size()) / best;
}

// How many turns the banks need; 8 and 16 bytes a lane are served by half or quarter warps.
double ways(const std::vector<Sample>& lanes) {
  size_t at_once = std::max<size_t>(1, kBanks * 4 / std::max<size_t>(4, lanes[0].size));
  double turns = 0, best = 0;
  for (size_t first = 0; first < lanes.size(); first += at_once, ++best) {
    std::map<unsigned, std::set<uintptr_t>> banks;
    size_t most = 1;
    for (size_t i = first; i < std::min(lanes.size(), first + at_once); ++i)
      for (uintptr_t word = lanes[i].address / 4; word * 4 < lanes[i].address + lanes[i].size;
           ++word) {
        std::set<uintptr_t>& bank = banks[word % kBanks];
        bank.insert(word);
        most = std::max(most, bank.size());
      }
    turns += static_cast<double>(most);
  }
  return turns / best;
}

std::string number(double value) {
  std::string text = std::to_string(value);
  return text.substr(0, text.find('.') + 2);
}

// What is said of each kernel's largest launch: small ones are made by tests, and tell nothing of
// how fast a kernel is.
struct OfKernel {
  uint64_t threads = 0;
  std::vector<Finding> findings;
};
std::mutex mutex;
std::map<std::string, OfKernel>& advice() {
  static auto* kept = new std::map<std::string, OfKernel>;  // used until the very end
  return *kept;
}

thread_local std::vector<Finding> said;  // of the launch under way

void say(Kind kind, const void* place, const std::string& detail) {
  Finding finding = finding_here(kind, place, 0, false);
  finding.who.known = false;
  finding.detail = detail;
  said.push_back(finding);
}

void keep(const Grid& grid) {
  const dim3 &blocks = grid.config.grid, &block = grid.config.block;
  const uint64_t threads =
      uint64_t{1} * blocks.x * blocks.y * blocks.z * block.x * block.y * block.z;
  std::lock_guard<std::mutex> lock(mutex);
  OfKernel& kernel = advice()[grid.site.name];
  if (threads > kernel.threads) kernel = {threads, {}};
  if (threads == kernel.threads)
    kernel.findings.insert(kernel.findings.end(), said.begin(), said.end());
  said.clear();
}

struct Sums {
  int times = 0;
  double value = 0, lanes = 0;
  bool shared = false;
  int several = 0;      // how often there was more than one lane
  int scattered = 0;    // and they did not stand side by side
  unsigned active = 0;  // the lanes that ever were here
};

unsigned mask_of(const std::vector<Sample>& lanes) {
  unsigned mask = 0;
  for (const Sample& lane : lanes) mask |= 1u << lane.lane;
  return mask;
}

// Whether the lanes that are there do not stand side by side.
bool is_scattered(unsigned mask) {
  const unsigned from_first = mask >> __builtin_ctz(mask);
  return (from_first & (from_first + 1)) != 0;
}

// Lanes that have nothing to do, since there are few elements, take no other way. Those that do
// something else meanwhile, or that lie between the active ones, could be in another warp.
bool is_divergent(const Sums& sums, const std::map<Where, Sums>& places) {
  unsigned all = 0;
  bool others_work = false;
  for (const auto& entry : places) {
    all |= entry.second.active;
    others_work =
        others_work || (entry.second.times >= kEnough && (entry.second.active & sums.active) == 0);
  }
  const double lanes = sums.lanes / sums.times;
  const double share = lanes / __builtin_popcount(all);
  return sums.times >= kEnough && lanes < kFewLanes && share < kFewLanes / kWarp &&
         (others_work || 2 * sums.scattered > sums.several);
}

void say_of(const void* place, const Sums& sums, bool divergent) {
  double mean = sums.value / sums.times;
  if (sums.shared && mean >= kManyWays)
    say(Kind::kBankConflict, place,
        "the lanes of a warp need " + number(mean) + " turns at the banks of shared memory, not 1");
  if (!sums.shared && mean >= kManySectors)
    say(Kind::kUncoalescedAccess, place,
        "a warp moves " + number(mean) + " times the sectors of 32 bytes that it needs");
  if (divergent)
    say(Kind::kDivergentWarp, place,
        number(sums.lanes / sums.times) +
            " of 32 lanes are active here, on average, while the others wait");
}

// Whether the launch leaves most of a multiprocessor idle.
void say_occupancy(const Grid& grid, size_t shared) {
  const dim3 &size = grid.config.block, &blocks = grid.config.grid;
  unsigned threads = size.x * size.y * size.z;
  unsigned warps = (threads + kWarp - 1) / kWarp;
  uint64_t resident = std::min<uint64_t>(kBlocksOfProcessor, kThreadsOfProcessor / (warps * kWarp));
  resident = std::min<uint64_t>(resident, kSharedOfProcessor / (shared + kSharedOfBlock));
  double share = static_cast<double>(resident * threads) / kThreadsOfProcessor;
  // A grid that fits on a few multiprocessors tells nothing.
  if (share >= 0.5 || static_cast<uint64_t>(blocks.x) * blocks.y * blocks.z < 256) return;
  Finding finding;
  finding.kind = Kind::kLowOccupancy;
  finding.kernel = grid.site.name;
  finding.launch.file = finding.at.file = grid.site.file;
  finding.launch.line = finding.at.line = grid.site.line;
  finding.grid = blocks;
  finding.block = size;
  finding.detail = std::to_string(resident) + " blocks of " + std::to_string(threads) +
                   " threads fill " + number(share * 100) +
                   " % of the 2,048 threads of a multiprocessor";
  said.push_back(finding);
}

}  // namespace

bool is_sampled(const State* s, int thread) {
  return s->block == 0 && thread < kWarp && sample_count < kMostSamples;
}

void sample(State* s, uintptr_t address, size_t size, bool write, const void* place) {
  bool shared = s->shared.has(address);
  if (!shared && !device_region.has(address)) return;
  const int lane = s->thread() % kWarp;
  const Where where(place, shared);
  const Sample found = {address, size, shared, lane};
  int execution = executions[{where, s->thread()}]++;
  if (is_part(found, write, where, execution)) return;
  std::vector<Sample>& lanes = samples[{where, execution}];
  lanes.push_back(found);
  Recent& mine = recent[lane].all[recent[lane].next++ % kRecent];
  mine = {&lanes, address, address, address + size, write, {place}};
  ++sample_count;
}

void advise(State* s) {
  if (s->block != 0) return;
  say_occupancy(*s->grid, s->static_shared + s->grid->config.shared);
  join_parts();
  std::map<Where, Sums> places;
  for (const auto& entry : samples) {
    Sums& sums = places[entry.first.first];
    sums.shared = entry.second[0].shared;
    sums.value += sums.shared ? ways(entry.second) : sectors_per_best(entry.second);
    sums.lanes += static_cast<double>(entry.second.size());
    const unsigned mask = mask_of(entry.second);
    sums.active |= mask;
    sums.several += (mask & (mask - 1)) != 0;
    sums.scattered += is_scattered(mask);
    ++sums.times;
  }
  const dim3& size = s->grid->config.block;
  const bool whole = size.x * size.y * size.z >= kWarp;
  for (const auto& entry : places)
    say_of(entry.first.first, entry.second, whole && is_divergent(entry.second, places));
  keep(*s->grid);
  samples.clear();
  parts.clear();
  recent.assign(kWarp, RecentOfLane());
  executions.clear();
  sample_count = 0;
}

void report_advice() {
  std::lock_guard<std::mutex> lock(mutex);
  for (const auto& kernel : advice())
    for (const Finding& finding : kernel.second.findings) add_finding(finding);
}

}  // namespace checked
}  // namespace emulator
