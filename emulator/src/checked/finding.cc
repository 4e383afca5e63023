/*!
 * \file finding.cc
 * \brief The list of findings, and its file: a JSON object a line.
 *
 * A finding is a line as soon as it is made, so that it is there however the program ends. If it
 * is made again, a later line says how often since: the lines of one finding are to be added up.
 * A line that counts -1 takes one back.
 */
#include "finding.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace emulator {
namespace checked {
namespace {

typedef std::tuple<Kind, std::string, const void*, const void*, std::string,
                   std::vector<const void*>>
    Key;

struct Entry {
  Finding finding;
  int64_t written = 0;  // how many of its count
  int taken_back = 0;
};

// Of a program that makes errors on purpose, and reads them, no more is written at once.
const int kMostTakenBack = 16;

std::mutex mutex;
std::map<Key, Entry>& found() {
  static auto* all = new std::map<Key, Entry>;  // used until the very end
  return *all;
}
int64_t order = 0;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    char escaped[8];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      out += escaped;
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "\"";
}

const char* text_of(Kind kind) {
#define TEXT(name, text)
#define CANDIDATE(name, text, becomes) text,
#define KIND(name, text, title, cause, hint, sentence) text,
  static const char* const texts[] = {
      "",
#include "kinds.h"
  };
#undef TEXT
#undef CANDIDATE
#undef KIND
  return texts[static_cast<int>(kind)];
}

std::string text_or_null(const std::string& text) { return text.empty() ? "null" : quoted(text); }

std::string json(const Site& site) {
  std::string text;
  if (site.file != nullptr)
    text = "\"file\": " + quoted(site.file) + ", \"line\": " + std::to_string(site.line);
  Dl_info info;
  if (site.address != nullptr && dladdr(site.address, &info) != 0) {
    int64_t place = static_cast<const char*>(site.address) - static_cast<char*>(info.dli_fbase);
    text += (text.empty() ? "" : ", ") + std::string("\"module\": ") + quoted(info.dli_fname) +
            ", \"place\": " + std::to_string(place);
  }
  return text.empty() ? "null" : "{" + text + "}";
}

// The innermost first.
std::string json(const Calls& calls) {
  std::string text;
  for (int i = calls.known() - 1; i >= 0; --i) {
    Site site;
    site.address = calls.from[i];
    text += (text.empty() ? "" : ", ") + json(site);
  }
  return "[" + text + "]";
}

std::string json(const uint3& v) {
  return "[" + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + "]";
}

std::string indices(const Who& who) {
  return "\"block_index\": " + (who.known ? json(who.block) : "null") +
         ", \"thread_index\": " + (who.known ? json(who.thread) : "null");
}

std::string json(const Memory& memory) {
  if (!memory.known) return "null";
  return "{\"name\": " + text_or_null(memory.name) + ", \"space\": " + quoted(memory.space) +
         ", \"size\": " + std::to_string(memory.size) +
         ", \"offset\": " + std::to_string(memory.offset) +
         ", \"allocated\": " + json(memory.allocated) + ", \"freed\": " + json(memory.freed) + "}";
}

const char* json(bool value) { return value ? "true" : "false"; }

std::string json(const Finding& f) {
  std::string other = "null";
  if (f.has_other)
    other = "{\"at\": " + json(f.other_at) + ", \"calls\": " + json(f.other_calls) +
            ", \"write\": " + json(f.other_write) + ", " + indices(f.other) + "}";
  return "{\"kind\": " + quoted(text_of(f.kind)) + ", \"count\": " + std::to_string(f.count) +
         ", \"kernel\": " + text_or_null(f.kernel) + ", \"launch\": " + json(f.launch) +
         ", \"grid\": " + json(uint3(f.grid)) + ", \"block\": " + json(uint3(f.block)) +
         ", \"at\": " + json(f.at) + ", \"calls\": " + json(f.calls) + ", " + indices(f.who) +
         ", \"size\": " + std::to_string(f.size) + ", \"write\": " + json(f.write) +
         ", \"other\": " + other + ", \"memory\": " + json(f.memory) +
         ", \"detail\": " + text_or_null(f.detail) + ", \"order\": " + std::to_string(f.order) +
         "}\n";
}

std::string shown(const uint3& index) {
  return "(" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " +
         std::to_string(index.z) + ")";
}

// What a program says by itself, whose findings go to no file: places need a debugger's tables.
std::string sentence(const Finding& f) {
  std::string text = text_of(f.kind);
  if (!f.kernel.empty()) text += " in kernel " + f.kernel;
  if (f.who.known) text += ", block " + shown(f.who.block) + ", thread " + shown(f.who.thread);
  if (f.memory.known && !f.memory.name.empty())
    text += ", " + f.memory.name + " of " + std::to_string(f.memory.size) + " bytes at " +
            std::to_string(f.memory.offset);
  return f.detail.empty() ? text : text + ": " + f.detail;
}

// In one piece: other processes may write to the same file.
void append(const std::string& text) {
  const char* path = std::getenv("EMULATOR_FINDINGS");
  if (path == nullptr) {
    std::fprintf(stderr, "emulated GPU: %s", text.c_str());
    return;
  }
  int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return;
  ssize_t written = write(file, text.data(), text.size());
  (void)written;
  close(file);
}

void write_growth(Entry* entry) {
  Finding growth = entry->finding;
  growth.count -= entry->written;
  const bool is_new = entry->written == 0;
  entry->written = entry->finding.count;
  if (std::getenv("EMULATOR_FINDINGS") != nullptr) return append(json(growth));
  if (!is_new) return;  // on a terminal, each once
  static bool is_hinted = false;
  std::fprintf(stderr, "emulated GPU: found: %s%s\n", sentence(growth).c_str(),
               is_hinted ? "" : "; hint: check_kernels.py -- PROGRAM shows where");
  is_hinted = true;
}

bool is_before(const uint3& a, const uint3& b) {
  return std::tie(a.z, a.y, a.x) < std::tie(b.z, b.y, b.x);
}

// Whether one example comes before another, so that the same is told however blocks are spread.
bool is_before(const Who& a, const Who& b) {
  if (is_before(a.block, b.block) || is_before(b.block, a.block))
    return is_before(a.block, b.block);
  return is_before(a.thread, b.thread);
}

Key key_of(const Finding& finding) {
  const void* at = finding.at.address ? finding.at.address : finding.at.file + finding.at.line;
  const bool of_call = finding.kind == Kind::kCallErrorUnread;  // the detail names it
  const Calls& calls = finding.calls;
  // In parentheses: braces would make a vector of the two addresses.
  std::vector<const void*> chain(calls.from, calls.from + calls.known());
  return Key(finding.kind, finding.kernel, at, finding.other_at.address,
             of_call ? finding.detail : finding.memory.name, chain);
}

// Keeps a finding, or adds it to what is kept. Under the mutex.
Entry* count(const Finding& finding) {
  auto inserted = found().insert({key_of(finding), {}});
  Entry& entry = inserted.first->second;
  Finding& kept = entry.finding;
  int64_t total = kept.count + finding.count, told = kept.order;
  if (inserted.second) total = finding.count, told = order++;
  if (inserted.second || (finding.who.known && is_before(finding.who, kept.who))) kept = finding;
  kept.count = total;
  kept.order = told;
  return &entry;
}

}  // namespace

void add_finding(const Finding& finding) {
  std::lock_guard<std::mutex> lock(mutex);
  Entry* entry = count(finding);
  if (entry->written == 0) write_growth(entry);
}

void add_doubtful_finding(const Finding& finding) {
  std::lock_guard<std::mutex> lock(mutex);
  Entry* entry = count(finding);
  // On a terminal nothing can be taken back.
  bool at_once = std::getenv("EMULATOR_FINDINGS") != nullptr && entry->taken_back < kMostTakenBack;
  if (entry->written == 0 && at_once) write_growth(entry);
}

void take_back_finding(const Finding& finding) {
  std::lock_guard<std::mutex> lock(mutex);
  auto entry = found().find(key_of(finding));
  if (entry == found().end()) return;
  --entry->second.finding.count;
  ++entry->second.taken_back;
  if (entry->second.written > entry->second.finding.count) write_growth(&entry->second);
}

void write_counts(bool all) {
  std::lock_guard<std::mutex> lock(mutex);
  for (auto& entry : found()) {
    Entry& one = entry.second;
    int64_t count = one.finding.count;
    bool much = one.written > 0 && count >= 2 * one.written;
    if (count > one.written && (all || much)) write_growth(&one);
  }
}

void write_number(int number) { append("{\"written\": " + std::to_string(number) + "}\n"); }

void write_trace(const Site& at, bool write, size_t size, const Memory& memory, const void* value) {
  std::string bytes;
  for (size_t i = 0; value != nullptr && i < size; ++i) {
    char hex[4];
    std::snprintf(hex, sizeof hex, "%02x", static_cast<const unsigned char*>(value)[i]);
    bytes += hex;
  }
  append("{\"trace\": true, \"at\": " + json(at) + ", \"write\": " + json(write) +
         ", \"size\": " + std::to_string(size) + ", \"memory\": " + json(memory) +
         ", \"value\": " + text_or_null(bytes) + "}\n");
}

}  // namespace checked
}  // namespace emulator
