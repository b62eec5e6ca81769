#include "cgroup/systemd_library.h"

#include <dlfcn.h>

#include <optional>

namespace sandy::cgroup {
namespace {

template <typename Function>
bool find(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(::dlsym(library, name));
  return out != nullptr;
}

std::optional<SystemdLibrary> load() {
  // Never closed: it is used until we end.
  void* const library = ::dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {};
  SystemdLibrary out;
  const bool whole =
      find(library, "sd_bus_new", out.bus_new) && find(library, "sd_bus_set_address", out.bus_set_address) && find(library, "sd_bus_set_bus_client", out.bus_set_bus_client) &&
      find(library, "sd_bus_start", out.bus_start) && find(library, "sd_bus_close_unref", out.bus_close_unref) && find(library, "sd_bus_get_fd", out.bus_get_fd) &&
      find(library, "sd_bus_get_events", out.bus_get_events) && find(library, "sd_bus_get_timeout", out.bus_get_timeout) && find(library, "sd_bus_process", out.bus_process) &&
      find(library, "sd_bus_add_match_async", out.bus_add_match_async) && find(library, "sd_bus_call_async", out.bus_call_async) &&
      find(library, "sd_bus_call_method_async", out.bus_call_method_async) && find(library, "sd_bus_message_new_method_call", out.message_new_method_call) &&
      find(library, "sd_bus_message_append", out.message_append) && find(library, "sd_bus_message_open_container", out.message_open_container) &&
      find(library, "sd_bus_message_close_container", out.message_close_container) && find(library, "sd_bus_message_read", out.message_read) &&
      find(library, "sd_bus_message_get_error", out.message_get_error) && find(library, "sd_bus_message_unref", out.message_unref);
  if (!whole) return {};
  return out;
}

}  // namespace

const SystemdLibrary* systemd_library() {
  static const std::optional<SystemdLibrary> library = load();
  return library ? &*library : nullptr;
}

}  // namespace sandy::cgroup
