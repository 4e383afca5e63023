/*!
 * \file lines.cc
 * \brief Reads the table of lines that -g1 leaves in a program or library.
 *
 * Of versions 2 to 5 of DWARF, uncompressed, in ELF files of 64 bits; of others nothing is known.
 * Chapter 6.2 of the standard describes the table.
 */
#include "lines.h"

#include <vector>

#ifdef __linux__
#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>

namespace emulator {
namespace {

/*! \brief Reads numbers and texts; behind the end all are 0 and empty. */
class Bytes {
 public:
  Bytes(const char* begin, const char* end) : at_(begin), end_(end) {}

  bool done() const { return at_ >= end_; }
  const char* at() const { return at_; }
  uint64_t number(size_t size) {
    uint64_t value = 0;
    if (size <= left()) std::memcpy(&value, at_, std::min<size_t>(size, 8));
    skip(size);
    return value;
  }
  uint64_t unsigned_leb() {
    bool is_negative;
    return static_cast<uint64_t>(leb(&is_negative));
  }
  int64_t signed_leb() {
    bool is_negative;
    int bits = 0;
    const int64_t value = leb(&is_negative, &bits);
    return is_negative && bits < 64 ? value - (int64_t(1) << bits) : value;
  }
  std::string text() {
    const char* end = std::find(at_, end_, '\0');
    std::string found(at_, end);
    skip(found.size() + 1);
    return found;
  }
  /*! \brief The next so many bytes, which are skipped. */
  Bytes part(size_t size) {
    size = std::min(size, left());
    at_ += size;
    return Bytes(at_ - size, at_);
  }
  void skip(size_t size) { at_ += std::min(size, left()); }

 private:
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  int64_t leb(bool* is_negative, int* bits = nullptr) {
    uint64_t value = 0, byte = 128;
    int shift = 0;
    for (; byte & 128; shift += 7) {
      byte = number(1);
      if (shift < 64) value |= (byte & 127) << shift;
    }
    *is_negative = (byte & 64) != 0;
    if (bits != nullptr) *bits = shift;
    return static_cast<int64_t>(value);
  }

  const char *at_, *end_;
};

/*! \brief Sections of a file, by name. */
class File {
 public:
  explicit File(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    content_.assign(std::istreambuf_iterator<char>(file), {});
    if (content_.size() < sizeof header_ || content_.compare(0, 5,
                                                             "\x7f"
                                                             "ELF\x02") != 0)
      return;
    std::memcpy(&header_, content_.data(), sizeof header_);
    for (int i = 0; i < header_.e_phnum; ++i) {
      const auto part = get<Elf64_Phdr>(header_.e_phoff + i * sizeof(Elf64_Phdr));
      if (part.p_type == PT_LOAD) base = std::min(base, part.p_vaddr);
    }
  }

  /*! \brief A section's content; empty if there is none, or it is compressed. */
  Bytes section(const char* name) const {
    const auto names = section(header_.e_shstrndx);
    for (int i = 0; i < header_.e_shnum; ++i) {
      const Elf64_Shdr found = section(i);
      const uint64_t at = names.sh_offset + found.sh_name;
      if (at >= content_.size() || std::strcmp(content_.c_str() + at, name) != 0) continue;
      if ((found.sh_flags & SHF_COMPRESSED) || found.sh_offset > content_.size()) break;
      const char* begin = content_.data() + found.sh_offset;
      return Bytes(begin, content_.data() + content_.size()).part(found.sh_size);
    }
    return Bytes(nullptr, nullptr);
  }

  uint64_t base = UINT64_MAX;  // the lowest address in it

 private:
  template <typename T>
  T get(uint64_t at) const {
    T value = {};
    if (at + sizeof value <= content_.size())
      std::memcpy(&value, content_.data() + at, sizeof value);
    return value;
  }
  Elf64_Shdr section(int i) const {
    return get<Elf64_Shdr>(header_.e_shoff + i * sizeof(Elf64_Shdr));
  }

  std::string content_;
  Elf64_Ehdr header_ = {};
};

struct Line {
  std::string folder, file;  // the compiler's folder, and the file as seen from there
  int line = 0;
};

/*! \brief One compiled source's part of the table. */
class Unit {
 public:
  Unit(const File& file, Bytes bytes) : file_(file), bytes_(bytes) { read_header(); }

  /*! \brief The last line of the user's at an address or before it, if the unit has the address. */
  bool find(uint64_t wanted, Line* found) {
    struct {
      uint64_t address = 0, file = 1;
      int64_t line = 1;
    } now, own, start;
    uint64_t before = 0;
    bool has_own = false, is_first = true;
    auto row = [&](bool is_end) {
      const bool hit = !is_first && before <= wanted && wanted < now.address && has_own;
      if (hit) *found = {folder(0), path(own.file), static_cast<int>(own.line)};
      before = now.address;
      is_first = is_end;
      if (is_end) has_own = false;
      if (!is_end && now.line > 0 && is_users(path(now.file))) own = now, has_own = true;
      return hit;
    };
    while (!bytes_.done()) {
      const unsigned code = static_cast<unsigned>(bytes_.number(1));
      if (code >= first_special_) {
        const unsigned step = code - first_special_;
        now.address += step / line_range_ * least_step_;
        now.line += line_base_ + static_cast<int>(step % line_range_);
        if (row(false)) return true;
      } else if (code == 0) {
        Bytes rest = bytes_.part(bytes_.unsigned_leb());
        const uint64_t what = rest.number(1);
        if (what == 1 && row(true)) return true;
        if (what == 1) now = start;
        if (what == 2) now.address = rest.number(8);
      } else if (code == 1) {
        if (row(false)) return true;
      } else if (code == 2) {
        now.address += bytes_.unsigned_leb() * least_step_;
      } else if (code == 3) {
        now.line += bytes_.signed_leb();
      } else if (code == 4) {
        now.file = bytes_.unsigned_leb();
      } else if (code == 8) {
        now.address += (255 - first_special_) / line_range_ * least_step_;
      } else if (code == 9) {
        now.address += bytes_.number(2);
      } else {
        for (unsigned i = 0; i < lengths_[code]; ++i) bytes_.unsigned_leb();
      }
    }
    return false;
  }

 private:
  void read_header() {
    version_ = bytes_.number(2);
    if (version_ >= 5) bytes_.skip(2);
    Bytes header = bytes_.part(bytes_.number(4));
    least_step_ = header.number(1);
    header.skip(version_ >= 4 ? 2 : 1);
    line_base_ = static_cast<signed char>(header.number(1));
    line_range_ = std::max(1u, static_cast<unsigned>(header.number(1)));
    first_special_ = static_cast<unsigned>(header.number(1));
    for (unsigned i = 1; i < first_special_; ++i)
      lengths_[i] = static_cast<unsigned>(header.number(1));
    if (version_ >= 5) {
      for (auto& entry : entries(&header)) folders_.push_back(entry.first);
      files_ = entries(&header);
      return;
    }
    folders_.push_back("");
    for (std::string name = header.text(); !name.empty(); name = header.text())
      folders_.push_back(name);
    files_.push_back({"", 0});
    for (std::string name = header.text(); !name.empty(); name = header.text()) {
      files_.push_back({name, header.unsigned_leb()});
      header.unsigned_leb(), header.unsigned_leb();
    }
  }

  // A table of version 5: names, and numbers of folders.
  std::vector<std::pair<std::string, uint64_t>> entries(Bytes* header) {
    std::vector<std::pair<uint64_t, uint64_t>> forms(header->number(1));
    for (auto& form : forms)
      form.first = header->unsigned_leb(), form.second = header->unsigned_leb();
    std::vector<std::pair<std::string, uint64_t>> found;
    for (uint64_t count = header->unsigned_leb(); count > 0 && !header->done(); --count) {
      found.push_back({"", 0});
      for (auto [content, form] : forms) {
        std::string text;
        uint64_t number = 0;
        read_form(header, form, &text, &number);
        if (content == 1) found.back().first = text;
        if (content == 2) found.back().second = number;
      }
    }
    return found;
  }

  void read_form(Bytes* header, uint64_t form, std::string* text, uint64_t* number) {
    auto text_of = [&](const char* section) {
      Bytes bytes = file_.section(section);
      bytes.skip(header->number(4));
      *text = bytes.text();
    };
    if (form == 0x08) *text = header->text();
    if (form == 0x1f) text_of(".debug_line_str");
    if (form == 0x0e) text_of(".debug_str");
    if (form == 0x0f) *number = header->unsigned_leb();
    if (form == 0x0b) *number = header->number(1);
    if (form == 0x05) *number = header->number(2);
    if (form == 0x1e) header->skip(16);
  }

  std::string folder(size_t i) const { return i < folders_.size() ? folders_[i] : ""; }

  // As seen from the compiler's folder.
  std::string path(uint64_t number) const {
    if (number >= files_.size()) return "";
    const auto& [name, in] = files_[number];
    const std::string above = in == 0 ? "" : folder(in);
    std::string path = above.empty() || name[0] == '/' ? name : above + "/" + name;
    for (size_t at; (at = path.find("/./")) != std::string::npos;) path.erase(at, 2);
    return path;
  }

  static bool is_users(const std::string& path) {
    return !path.empty() && path.compare(0, 5, "/usr/") != 0 && path[0] != '<' &&
           path.find("emulator/include/") == std::string::npos &&
           path.find("emulator/src/") == std::string::npos;
  }

  const File& file_;
  Bytes bytes_;
  uint64_t version_ = 0, least_step_ = 1;
  int line_base_ = 0;
  unsigned line_range_ = 1, first_special_ = 13, lengths_[256] = {};
  std::vector<std::string> folders_;
  std::vector<std::pair<std::string, uint64_t>> files_;
};

bool find_line(uintptr_t address, Line* found) {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(address), &info) == 0) return false;
  File file(info.dli_fname);
  if (file.base == UINT64_MAX) file = File("/proc/self/exe");
  const auto offset = address - reinterpret_cast<uintptr_t>(info.dli_fbase);
  Bytes table = file.section(".debug_line");
  while (!table.done()) {
    Unit unit(file, table.part(table.number(4)));
    if (unit.find(offset + file.base, found)) return true;
  }
  return false;
}

std::vector<std::string> source(const Line& line) {
  std::vector<std::string> lines;
  std::ifstream file(line.file);
  if (!file && line.file[0] != '/') file.open(line.folder + "/" + line.file);
  for (std::string text; std::getline(file, text);) lines.push_back(text);
  return lines;
}

bool begins_loop(const std::string& text) {
  for (const char* word : {"for", "while", "do"}) {
    const size_t length = std::strlen(word);
    const size_t at = text.find_first_not_of(" \t}");
    if (at == std::string::npos || text.compare(at, length, word) != 0) continue;
    const char next = at + length < text.size() ? text[at + length] : ' ';
    if (next == ' ' || next == '(' || next == '{') return true;
  }
  return false;
}

// The line where the loop around a line begins: the next one above that is not closed before it.
int loop_of(const std::vector<std::string>& lines, int line) {
  int closed = 0;
  for (int i = line; i >= 1 && i > line - 60; --i) {
    const std::string& text = lines[i - 1];
    bool opens = i == line;
    for (size_t k = text.size(); k-- > 0 && i < line;) {
      if (text[k] == '}') ++closed;
      if (text[k] == '{' && closed-- == 0) opens = true, closed = 0;
    }
    const size_t last = text.find_last_not_of(" \t\\");
    const bool goes_on = last != std::string::npos && text[last] == ')';
    if (begins_loop(text) && (opens || (closed == 0 && goes_on))) return i;
  }
  // A loop that is one jump may count as the line before it.
  for (int i = line + 1; i <= static_cast<int>(lines.size()) && lines[i - 1][0] != '}'; ++i)
    if (begins_loop(lines[i - 1])) return i;
  return line;
}

// As seen from the working folder, if it is below it.
std::string shown(const std::string& path) {
  char here[4096];
  if (getcwd(here, sizeof here) == nullptr) return path;
  const std::string above = std::string(here) + "/";
  return path.compare(0, above.size(), above) == 0 ? path.substr(above.size()) : path;
}

SourceLine described(uintptr_t address, bool loop) {
  Line found;
  if (address == 0 || !find_line(address, &found)) return SourceLine();
  const std::vector<std::string> lines = source(found);
  const int last = static_cast<int>(lines.size());
  if (loop && found.line <= last) found.line = loop_of(lines, found.line);
  SourceLine place = {shown(found.file), found.line, ""};
  std::string& text = place.text = "\n  " + place.file + ":" + std::to_string(place.line);
  for (int i = std::max(1, found.line - 2); i <= std::min(last, found.line + 2); ++i) {
    std::string number = std::to_string(i);
    number.insert(0, number.size() < 5 ? 5 - number.size() : 0, ' ');
    text += std::string(i == found.line ? "\n    > " : "\n      ") + number + " | " + lines[i - 1];
  }
  return place;
}

}  // namespace

SourceLine line_at(uintptr_t address) { return described(address, false); }
SourceLine loop_at(uintptr_t address) { return described(address, true); }

}  // namespace emulator

#else

namespace emulator {

SourceLine line_at(uintptr_t) { return SourceLine(); }
SourceLine loop_at(uintptr_t) { return SourceLine(); }

}  // namespace emulator

#endif
