// sandy-agent: the sandbox's pid 1. Its socket to `sandy` is descriptor 3; it has no arguments.
#include "agent/run_agent.h"

int main() { return sandy::agent::run_agent(); }
