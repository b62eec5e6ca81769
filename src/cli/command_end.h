// What became of a command, as this process's exit status and in words.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/relay.h"

namespace sandy::cli {

// The exit status for `sandy` (verbs.h), of a command's `end` (session/PROTOCOL.md). What needs words is told on stderr. `cwd`: where the command was to begin.
// Throws what nlohmann::json throws, or std::invalid_argument, where it isn't as the protocol has it.
int status_of(const nlohmann::json& end, const RelayOptions& options, const std::string& cwd, int cancelled_by);

// On stderr: what the network refused, which limits it met.
void note_refusals(const nlohmann::json& end);

}  // namespace sandy::cli
