// Sanitizer settings of a development build. The agent can't be traced (PR_SET_DUMPABLE), which leak checking needs.
extern "C" const char* __asan_default_options() { return "detect_leaks=0:abort_on_error=1"; }
