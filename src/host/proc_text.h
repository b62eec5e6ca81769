// What the texts of /proc, of uname(2) and of `bwrap --version` say. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandy::host {

// The first number with at least one dot: "bubblewrap 0.11.1" and "6.1.0-18-amd64" are {0,11,1} and {6,1,0}. A part that is missing is 0.
using Version = std::array<unsigned, 3>;
std::optional<Version> find_version(std::string_view text);

// Whether `id` has a meaning in a user namespace with this /proc/self/uid_map or gid_map (user_namespaces(7)).
bool maps_id(std::string_view map, std::uint32_t id);

// Whether the capability with this number (capabilities(7)) is effective, by a /proc/self/status.
bool has_capability(std::string_view status, unsigned number);

// Mount points below `directory` in a /proc/self/mountinfo (proc_pid_mountinfo(5)), each once, in its order.
std::vector<std::string> mounts_below(std::string_view mountinfo, std::string_view directory);

// Mount points, in a /proc/self/mountinfo, of file systems that are no files but the kernel's own state (proc, sysfs, cgroup2, devtmpfs, ...), each
// once, in its order.
std::vector<std::string> kernel_mounts(std::string_view mountinfo);

// Whether mountinfo shows a mount at "/": in a chroot(2) to a plain directory there is none.
bool has_root_mount(std::string_view mountinfo);

// Names in a /proc/net/unix (unix(7)) that are absolute paths, each once, sorted: of sockets that are bound, also of connections to them. A name
// may have any byte but NUL. With a newline in it, it goes on in the next line, if that doesn't look like an entry.
std::vector<std::string> socket_names(std::string_view net_unix);

// 0: not the Windows Subsystem for Linux; else its generation, from /proc/version. Both generations' kernels name Microsoft; the second's is a
// real Linux, whose name has "microsoft-standard" or "WSL2".
int wsl_generation(std::string_view proc_version);

// Whether /proc/sys/fs/binfmt_misc/WSLInterop's text says that Windows programs are started.
bool wsl_interop_enabled(std::string_view binfmt_entry);

// The profile in an AppArmor label "docker-default (enforce)"; "" where the label confines nothing ("unconfined", or no AppArmor).
std::string apparmor_profile(std::string_view label);

// All of a list of the kernel's, at most 64 MiB; the error: why it can't be read, in words.
std::expected<std::string, std::string> read_list(const char* path);
// At most 64 KiB of a file's start; "" where it can't be read.
std::string read_text(const char* path);
// The same, without what follows the first newline.
std::string read_line(const char* path);

}  // namespace sandy::host
