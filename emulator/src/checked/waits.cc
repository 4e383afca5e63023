/*!
 * \file waits.cc
 * \brief What the threads of a block waited for in loops.
 */
#include "waits.h"

#include <algorithm>

#include "../checked.h"

namespace emulator {
namespace checked {
namespace {

unsigned char waiting_places[(1u << kPlaceBits) / 8];

// The thread waited for what the last writer of a word wrote there.
void note_waited(State* s, const Word* word) {
  const Record last(__atomic_load_n(&word->write, __ATOMIC_RELAXED));
  const unsigned thread = static_cast<unsigned>(s->thread());
  auto is_same = [&](const Waited& one) {
    return one.word == word && (one.waiter & (kMaxThreads - 1)) == thread;
  };
  auto known = std::find_if(s->waited.begin(), s->waited.end(), is_same);
  if (known == s->waited.end()) known = s->waited.insert(known, Waited());
  *known = {word, last.who(), s->who};
}

}  // namespace

void begin_waits(State* s) {
  if (!s->any_poll) return;
  std::fill(s->polls, s->polls + kMaxThreads, Poll());
  s->waited.clear();
  s->any_poll = false;
}

void note_poll(State* s, const Word* word, uint32_t place) {
  Poll& mine = s->polls[s->thread()];
  if (mine.words[0] != word) mine.words[1] = mine.words[0], mine.words[0] = word;
  const unsigned char bit = static_cast<unsigned char>(1u << place % 8);
  if (place != kNoPlace) __atomic_fetch_or(&waiting_places[place / 8], bit, __ATOMIC_RELAXED);
}

bool is_waiting_place(uint32_t place) {
  return (__atomic_load_n(&waiting_places[place / 8], __ATOMIC_RELAXED) >> place % 8 & 1) != 0;
}

bool has_waited(const State* s, const Word* word, const Record& last) {
  return std::any_of(s->waited.begin(), s->waited.end(), [&](const Waited& one) {
    return one.word == word && one.writer == last.who() &&
           is_ordered(s, Record(one.waiter, kNoPlace, false, 0, 0));
  });
}

// For warp.cc.

void wait_begins() {
  State* s = state;
  if (s == nullptr) return;
  s->any_poll = true;
  s->polls[s->thread()] = Poll();
  s->polls[s->thread()].is_on = true;
}

void wait_ends() {
  State* s = state;
  if (s == nullptr) return;
  Poll& mine = s->polls[s->thread()];
  mine.is_on = false;
  for (const Word* word : mine.words)
    if (word != nullptr) note_waited(s, word);
}

}  // namespace checked
}  // namespace emulator
