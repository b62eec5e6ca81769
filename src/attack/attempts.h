// The attempts, by what they are against. Each gets its arguments (argv's rest, ended by a null pointer), and ends the process by a report (report.h).
// What succeeds is harmless: it touches nothing but what it is given, its own children and namespaces, and forks are counted.
#pragma once

namespace sandy::attack {

struct Attempt {
  const char* name;
  int least;  // arguments
  void (*run)(char** arguments);
};

// Each list ends with a null name.
extern const Attempt kCalls[], kFiles[], kLimits[], kNetwork[], kProcesses[], kSockets[];

}  // namespace sandy::attack
