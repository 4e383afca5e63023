/*!
 * \file errors.cc
 * \brief Errors of calls and launches that nobody read, and assertions.
 *
 * The runtime cannot see whether a program looked at what a call returned. It says that the call
 * failed; report.py looks at the line, and drops what is not a statement of its own. Of a launch
 * there is nothing to look at but cudaGetLastError.
 */
#include <string>

#include "../checked.h"
#include "../lines.h"
#include "ending.h"
#include "state.h"

namespace emulator {
namespace checked {
namespace {

// The error that cudaGetLastError would tell on this thread; it has a kind if there is one.
Finding& unread() {
  static thread_local Finding* finding = new Finding;  // used until the very end
  return *finding;
}

// One that was not read before stays so for ever.
void leave(const Finding& finding) {
  unread() = finding;
  if (finding.kind != Kind::kNone) add_doubtful_finding(finding);
}

}  // namespace

void call_failed(const char* text) {
  const HostNote* note = note_of_host();
  if (note == nullptr) return;  // a launch, see launch_refused
  Finding finding;
  if (!note->told) finding = finding_of_host(Kind::kCallErrorUnread);
  finding.detail = std::string(note->function) + ": " + text + note->detail;
  leave(finding);
}

void launch_refused(const LaunchSite& site, const Config& config, const char* why) {
  if (note_of_host() != nullptr) return;  // by a call that returns it, see call_failed
  bool too_much = config.shared > 48 * 1024;
  Finding finding;
  finding.kind = too_much ? Kind::kSharedMemoryOver48KB : Kind::kLaunchErrorUnread;
  finding.kernel = site.name;
  finding.launch.file = finding.at.file = site.file;
  finding.launch.line = finding.at.line = site.line;
  finding.grid = config.grid;
  finding.block = config.block;
  finding.detail = why;
  if (!too_much) return leave(finding);
  leave(Finding());
  add_finding(finding);
}

void error_read() {
  if (unread().kind != Kind::kNone) take_back_finding(unread());
  unread() = Finding();
}

void assertion_failed(const char* text, const char* file, int line) {
  Finding finding = finding_here(Kind::kAssertionFailed, nullptr, 0, false);
  finding.at.file = file;
  finding.at.line = line;
  finding.detail = text;
  add_finding(finding);
}

void stop_soon() {
  if (state != nullptr) state->pending = true;  // so that the next access asks
}

void timed_out(uintptr_t at, const SourceLine& loop, const char* when) {
  if (state == nullptr) return;
  Finding finding =
      finding_here(Kind::kLaunchTimeout, reinterpret_cast<const void*>(at + 1), 0, false);
  finding.detail = when;
  if (!loop.file.empty()) finding.at.file = (new std::string(loop.file))->c_str();
  finding.at.line = loop.line;
  add_finding(finding);
}

void trapped(const void* place) {
  Finding finding = finding_here(Kind::kAssertionFailed, place, 0, false);
  finding.detail = "__trap()";
  add_finding(finding);
}

}  // namespace checked
}  // namespace emulator
