// A sandbox's network namespace, made by the process that is to become bubblewrap.
#pragma once

namespace sandy::launcher {

// Puts this process into a user namespace of its own and a network namespace that belongs to it, with nothing in it that leads anywhere: an interface to
// nowhere (programs look for one), and listening sockets to which nftables diverts all that is sent. Bubblewrap makes the sandbox's own user
// namespace below, so that no process in the sandbox has a right over this network, with whatever capabilities it has there.
//
// The listening sockets go over the Unix socket `to`, in one message of the byte 'n' with their descriptors: TCP and UDP of IPv4, then, where
// the kernel has IPv6, of IPv6. -1: they are closed again, which is a trial of whether this machine can do it. Before it go `inward` messages of the
// byte 'c' with two (or one) unconnected TCP sockets each, of IPv4 and IPv6: whoever has them can connect to servers in the sandbox.
void enter_network(int to, unsigned inward);

inline constexpr unsigned kMaxInward = 64;

}  // namespace sandy::launcher
