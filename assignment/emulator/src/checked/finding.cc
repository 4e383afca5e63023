/*!
 * \file finding.cc
 * \brief The list of findings, and its file: a JSON object a line.
 */
#include "finding.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <tuple>

namespace emulator {
namespace checked {
namespace {

typedef std::tuple<std::string, std::string, const void*, const void*, std::string> Key;

std::mutex mutex;
std::map<Key, Finding>& found() {
  static auto* all = new std::map<Key, Finding>;  // used until the very end
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

std::string text_or_null(const std::string& text) { return text.empty() ? "null" : quoted(text); }

std::string json(const Site& site) {
  if (site.file != nullptr)
    return "{\"file\": " + quoted(site.file) + ", \"line\": " + std::to_string(site.line) + "}";
  Dl_info info;
  if (site.address == nullptr || dladdr(site.address, &info) == 0) return "null";
  int64_t place = static_cast<const char*>(site.address) - static_cast<char*>(info.dli_fbase);
  return "{\"module\": " + quoted(info.dli_fname) + ", \"place\": " + std::to_string(place) + "}";
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
    other = "{\"at\": " + json(f.other_at) + ", \"write\": " + json(f.other_write) + ", " +
            indices(f.other) + "}";
  return "{\"kind\": " + quoted(f.kind) + ", \"count\": " + std::to_string(f.count) +
         ", \"kernel\": " + text_or_null(f.kernel) + ", \"launch\": " + json(f.launch) +
         ", \"grid\": " + json(uint3(f.grid)) + ", \"block\": " + json(uint3(f.block)) +
         ", \"at\": " + json(f.at) + ", " + indices(f.who) +
         ", \"size\": " + std::to_string(f.size) + ", \"write\": " + json(f.write) +
         ", \"other\": " + other + ", \"memory\": " + json(f.memory) +
         ", \"detail\": " + text_or_null(f.detail) + ", \"order\": " + std::to_string(f.order) +
         "}\n";
}

void append(const std::string& text) {
  const char* path = std::getenv("EMULATOR_FINDINGS");
  if (path == nullptr) {
    std::fprintf(stderr, "emulated GPU: found: %s", text.c_str());
    return;
  }
  if (std::FILE* file = std::fopen(path, "a")) {
    std::fputs(text.c_str(), file);
    std::fclose(file);
  }
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

}  // namespace

void add_finding(const Finding& finding) {
  std::lock_guard<std::mutex> lock(mutex);
  const void* at = finding.at.address ? finding.at.address : finding.at.file + finding.at.line;
  Key key(finding.kind, finding.kernel, at, finding.other_at.address, finding.memory.name);
  auto entry = found().insert({key, finding});
  entry.first->second.order = entry.second ? order++ : entry.first->second.order;
  if (entry.second) return;
  Finding& first = entry.first->second;
  int64_t count = first.count + finding.count, told = first.order;
  if (finding.who.known && is_before(finding.who, first.who)) first = finding;
  first.count = count;
  first.order = told;
}

void write_findings() {
  std::lock_guard<std::mutex> lock(mutex);
  std::string text;
  for (const auto& entry : found()) text += json(entry.second);
  found().clear();
  if (!text.empty()) append(text);
}

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
