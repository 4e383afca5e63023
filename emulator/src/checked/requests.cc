/*!
 * \file requests.cc
 * \brief Requests of a warp: sectors and banks.
 */
#include "requests.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

namespace emulator {
namespace checked {
namespace {

const uintptr_t kSector = 32, kWord = 4, kBanks = 32, kVector = 16;
// A part of a vector is not further from the part before.
const size_t kRecent = 8;

Request begun(const LaneAccess& first) { return {first.access, first.shared, {first.place}, {}}; }

void add(Request* request, int lane, const LaneAccess& one) {
  request->spans.push_back({lane, one.address, one.address + one.size});
}

// Whether all lanes that did anything went the same way.
bool is_uniform(const LaneAccesses* lanes, const LaneAccesses& way) {
  return std::all_of(lanes, lanes + kWarp, [&](const LaneAccesses& lane) {
    return lane.empty() ||
           std::equal(lane.begin(), lane.end(), way.begin(), way.end(),
                      [](const LaneAccess& a, const LaneAccess& b) {
                        return a.place == b.place && a.shared == b.shared && a.access == b.access;
                      });
  });
}

std::vector<Request> side_by_side(const LaneAccesses* lanes, const LaneAccesses& way) {
  std::vector<Request> found;
  for (size_t i = 0; i < way.size(); ++i) {
    found.push_back(begun(way[i]));
    for (int lane = 0; lane < kWarp; ++lane)
      if (!lanes[lane].empty()) add(&found.back(), lane, lanes[lane][i]);
  }
  return found;
}

// By place, and how often the lane has been there. A function may be called for both memories.
std::vector<Request> by_place(const LaneAccesses* lanes) {
  std::vector<Request> found;
  std::map<std::pair<std::pair<const void*, int>, int>, size_t> known;
  for (int lane = 0; lane < kWarp; ++lane) {
    std::map<std::pair<const void*, int>, int> times;
    for (const LaneAccess& one : lanes[lane]) {
      const std::pair<const void*, int> where(one.place,
                                              static_cast<int>(one.access) * 2 + one.shared);
      const auto entry = known.insert({{where, times[where]++}, found.size()});
      if (entry.second) found.push_back(begun(one));
      add(&found[entry.first->second], lane, one);
    }
  }
  return found;
}

// Whether every lane's part lies beside what it has already, and the whole is no larger than a
// vector. A loop comes to a place again, and is none.
bool is_part(const Request& whole, const Request& part) {
  if (whole.access != part.access || whole.shared != part.shared ||
      whole.spans.size() != part.spans.size() ||
      std::count(whole.places.begin(), whole.places.end(), part.places[0]) != 0)
    return false;
  return std::equal(
      whole.spans.begin(), whole.spans.end(), part.spans.begin(), [](const Span& a, const Span& b) {
        const bool beside = a.end == b.begin || b.end == a.begin;
        return a.lane == b.lane && beside && a.end - a.begin + (b.end - b.begin) <= kVector;
      });
}

bool is_vector(const Request& request) {
  return std::all_of(request.spans.begin(), request.spans.end(), [](const Span& span) {
    const uintptr_t size = span.end - span.begin;
    return (size == kVector || size == kVector / 2) && span.begin % size == 0;
  });
}

// A request that others may be parts of.
struct Open {
  Request whole;
  std::vector<Request> parts;
};

void join(Open* open, const Request& part) {
  open->parts.push_back(part);
  open->whole.places.push_back(part.places[0]);
  for (size_t i = 0; i < part.spans.size(); ++i) {
    Span& span = open->whole.spans[i];
    span.begin = std::min(span.begin, part.spans[i].begin);
    span.end = std::max(span.end, part.spans[i].end);
  }
}

void close(const Open& open, std::vector<Request>* found) {
  if (open.parts.size() > 1 && is_vector(open.whole))
    found->push_back(open.whole);
  else
    found->insert(found->end(), open.parts.begin(), open.parts.end());
}

std::vector<Request> with_vectors(const std::vector<Request>& requests) {
  std::vector<Request> found;
  std::vector<Open> recent;
  for (const Request& request : requests) {
    const auto whole = std::find_if(recent.begin(), recent.end(),
                                    [&](const Open& open) { return is_part(open.whole, request); });
    if (whole != recent.end()) {
      join(&*whole, request);
      continue;
    }
    if (recent.size() == kRecent) {
      close(recent.front(), &found);
      recent.erase(recent.begin());
    }
    recent.push_back({request, {request}});
  }
  for (const Open& open : recent) close(open, &found);
  return found;
}

// The units of a size under all spans, each with the number of lanes that want it.
std::vector<std::pair<uintptr_t, int>> units_of(const Request& request, uintptr_t size) {
  std::vector<uintptr_t> all;
  for (const Span& span : request.spans)
    for (uintptr_t at = span.begin / size; at <= (span.end - 1) / size; ++at) all.push_back(at);
  std::sort(all.begin(), all.end());
  std::vector<std::pair<uintptr_t, int>> units;
  for (uintptr_t unit : all) {
    if (units.empty() || units.back().first != unit) units.push_back({unit, 0});
    ++units.back().second;
  }
  return units;
}

}  // namespace

std::vector<Request> requests_of(const LaneAccesses lanes[kWarp]) {
  const auto way =
      std::find_if(lanes, lanes + kWarp, [](const LaneAccesses& lane) { return !lane.empty(); });
  if (way == lanes + kWarp) return {};
  return with_vectors(is_uniform(lanes, *way) ? side_by_side(lanes, *way) : by_place(lanes));
}

int64_t sectors_of(const Request& request) {
  if (request.access != Access::kAtomic)
    return static_cast<int64_t>(units_of(request, kSector).size());
  std::map<uintptr_t, int> most;
  for (const auto& [word, lanes] : units_of(request, kWord)) {
    int& of_sector = most[word * kWord / kSector];
    of_sector = std::max(of_sector, lanes);
  }
  int64_t sum = 0;
  for (const auto& sector : most) sum += sector.second;
  return sum;
}

Turns turns_of(const Request& request) {
  int64_t of_bank[kBanks] = {}, words = 0;
  for (const auto& [word, lanes] : units_of(request, kWord)) {
    const int64_t turns = request.access == Access::kAtomic ? lanes : 1;
    of_bank[word % kBanks] += turns;
    ++words;
  }
  const int64_t best = (words + kBanks - 1) / kBanks;
  return {*std::max_element(of_bank, of_bank + kBanks), best};
}

}  // namespace checked
}  // namespace emulator
