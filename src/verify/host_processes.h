// Processes of this machine, those in sandboxes too, found by an argument that nobody else has.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace sandy::verify {

std::vector<pid_t> processes_with(const std::string& argument);

// Whether there is none any more, or none within `patience`.
bool all_gone(const std::string& argument, std::chrono::milliseconds patience);

// Kills them, until there is none.
void end_processes_with(const std::string& argument);

}  // namespace sandy::verify
