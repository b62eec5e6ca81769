// libsystemd's D-Bus client, sd-bus(3), loaded when it is first needed: there is no static libsystemd, and where it is missing there is no systemd.
#pragma once

#include <systemd/sd-bus.h>

namespace sandy::cgroup {

struct SystemdLibrary {
  decltype(&sd_bus_new) bus_new = nullptr;
  decltype(&sd_bus_set_address) bus_set_address = nullptr;
  decltype(&sd_bus_set_bus_client) bus_set_bus_client = nullptr;
  decltype(&sd_bus_start) bus_start = nullptr;
  decltype(&sd_bus_close_unref) bus_close_unref = nullptr;
  decltype(&sd_bus_get_fd) bus_get_fd = nullptr;
  decltype(&sd_bus_get_events) bus_get_events = nullptr;
  decltype(&sd_bus_get_timeout) bus_get_timeout = nullptr;
  decltype(&sd_bus_process) bus_process = nullptr;
  decltype(&sd_bus_add_match_async) bus_add_match_async = nullptr;
  decltype(&sd_bus_call_async) bus_call_async = nullptr;
  decltype(&sd_bus_call_method_async) bus_call_method_async = nullptr;
  decltype(&sd_bus_message_new_method_call) message_new_method_call = nullptr;
  decltype(&sd_bus_message_append) message_append = nullptr;
  decltype(&sd_bus_message_open_container) message_open_container = nullptr;
  decltype(&sd_bus_message_close_container) message_close_container = nullptr;
  decltype(&sd_bus_message_read) message_read = nullptr;
  decltype(&sd_bus_message_get_error) message_get_error = nullptr;
  decltype(&sd_bus_message_unref) message_unref = nullptr;
};

// Null: it can't be loaded, or is too old.
const SystemdLibrary* systemd_library();

}  // namespace sandy::cgroup
