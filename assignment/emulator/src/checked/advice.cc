/*!
 * \file advice.cc
 * \brief Sectors, banks, active lanes and occupancy.
 */
#include "advice.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
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
};
// By place and number of the execution: the accesses of the lanes.
typedef std::map<std::pair<const void*, int>, std::vector<Sample>> Samples;

thread_local Samples samples;
thread_local size_t sample_count = 0;
thread_local std::map<std::pair<const void*, int>, int> executions;  // by place and thread

double sectors_per_best(const std::vector<Sample>& lanes) {
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

void say(const char* kind, const void* place, const std::string& detail) {
  Finding finding = finding_here(kind, place, 0, false);
  finding.who.known = false;
  finding.detail = detail;
  add_finding(finding);
}

struct Sums {
  int times = 0;
  double value = 0, lanes = 0;
  bool shared = false;
};

void say_of(const void* place, const Sums& sums, int lanes_of_warp) {
  double mean = sums.value / sums.times, lanes = sums.lanes / sums.times;
  if (sums.shared && mean >= kManyWays)
    say("advice: bank conflict", place,
        "the lanes of a warp need " + number(mean) + " turns at the banks of shared memory, not 1");
  if (!sums.shared && mean >= kManySectors)
    say("advice: uncoalesced access", place,
        "a warp moves " + number(mean) + " times the sectors of 32 bytes that it needs");
  if (sums.times >= kEnough && lanes_of_warp == kWarp && lanes < kFewLanes)
    say("advice: divergent warp", place,
        number(lanes) + " of 32 lanes are active here, on average, while the others wait");
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
  finding.kind = "advice: low occupancy";
  finding.kernel = grid.site.name;
  finding.launch.file = finding.at.file = grid.site.file;
  finding.launch.line = finding.at.line = grid.site.line;
  finding.grid = blocks;
  finding.block = size;
  finding.detail = std::to_string(resident) + " blocks of " + std::to_string(threads) +
                   " threads fill " + number(share * 100) +
                   " % of the 2,048 threads of a multiprocessor";
  add_finding(finding);
}

}  // namespace

bool is_sampled(const State* s, int thread) {
  return s->block == 0 && thread < kWarp && sample_count < kMostSamples;
}

void sample(State* s, uintptr_t address, size_t size, const void* place) {
  bool shared = s->shared.has(address);
  if (!shared && !device_region.has(address)) return;
  int execution = executions[{place, s->thread()}]++;
  samples[{place, execution}].push_back({address, size, shared});
  ++sample_count;
}

void advise(State* s) {
  if (s->block != 0) return;
  say_occupancy(*s->grid, s->static_shared + s->grid->config.shared);
  std::map<const void*, Sums> places;
  for (const auto& entry : samples) {
    Sums& sums = places[entry.first.first];
    sums.shared = entry.second[0].shared;
    sums.value += sums.shared ? ways(entry.second) : sectors_per_best(entry.second);
    sums.lanes += static_cast<double>(entry.second.size());
    ++sums.times;
  }
  const dim3& size = s->grid->config.block;
  int lanes = static_cast<int>(std::min(size.x * size.y * size.z, unsigned(kWarp)));
  for (const auto& entry : places) say_of(entry.first, entry.second, lanes);
  samples.clear();
  executions.clear();
  sample_count = 0;
}

}  // namespace checked
}  // namespace emulator
