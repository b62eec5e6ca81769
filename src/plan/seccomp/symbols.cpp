#include "plan/seccomp/symbols.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/kd.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>

namespace sandy::seccomp {
namespace {

struct Symbol {
  std::string_view name;
  std::uint64_t value;
};

#define SANDY_SYMBOL(name) \
  { #name, static_cast < std::uint64_t>(name) }
constexpr Symbol kSymbols[] = {
    // socket(2)
    SANDY_SYMBOL(AF_UNSPEC),
    SANDY_SYMBOL(AF_UNIX),
    SANDY_SYMBOL(AF_INET),
    SANDY_SYMBOL(AF_INET6),
    SANDY_SYMBOL(AF_NETLINK),
    SANDY_SYMBOL(AF_PACKET),
    SANDY_SYMBOL(AF_ALG),
    SANDY_SYMBOL(AF_VSOCK),
    SANDY_SYMBOL(AF_BLUETOOTH),
    SANDY_SYMBOL(AF_KEY),
    SANDY_SYMBOL(AF_CAN),
    SANDY_SYMBOL(AF_TIPC),
    SANDY_SYMBOL(AF_RDS),
    SANDY_SYMBOL(AF_XDP),
    SANDY_SYMBOL(AF_NFC),
    SANDY_SYMBOL(AF_KCM),
    SANDY_SYMBOL(AF_QIPCRTR),
    SANDY_SYMBOL(SOCK_STREAM),
    SANDY_SYMBOL(SOCK_DGRAM),
    SANDY_SYMBOL(SOCK_RAW),
    SANDY_SYMBOL(SOCK_RDM),
    SANDY_SYMBOL(SOCK_SEQPACKET),
    SANDY_SYMBOL(SOCK_DCCP),
    SANDY_SYMBOL(SOCK_PACKET),
    SANDY_SYMBOL(SOCK_CLOEXEC),
    SANDY_SYMBOL(SOCK_NONBLOCK),
    {"SOCK_TYPE_MASK", 0xf},  // include/linux/net.h; the rest of the argument is flags
    SANDY_SYMBOL(IPPROTO_IP),
    SANDY_SYMBOL(IPPROTO_ICMP),
    SANDY_SYMBOL(IPPROTO_TCP),
    SANDY_SYMBOL(IPPROTO_UDP),
    SANDY_SYMBOL(IPPROTO_ICMPV6),
    SANDY_SYMBOL(IPPROTO_SCTP),
    SANDY_SYMBOL(IPPROTO_RAW),
    {"IPPROTO_SMC", 256},
    {"IPPROTO_MPTCP", 262},
    SANDY_SYMBOL(NETLINK_ROUTE),
    SANDY_SYMBOL(NETLINK_SOCK_DIAG),
    SANDY_SYMBOL(NETLINK_NETFILTER),
    SANDY_SYMBOL(NETLINK_AUDIT),
    SANDY_SYMBOL(NETLINK_KOBJECT_UEVENT),
    SANDY_SYMBOL(NETLINK_GENERIC),
    // clone(2), unshare(2)
    SANDY_SYMBOL(CLONE_VM),
    SANDY_SYMBOL(CLONE_FS),
    SANDY_SYMBOL(CLONE_FILES),
    SANDY_SYMBOL(CLONE_SIGHAND),
    SANDY_SYMBOL(CLONE_PTRACE),
    SANDY_SYMBOL(CLONE_VFORK),
    SANDY_SYMBOL(CLONE_THREAD),
    SANDY_SYMBOL(CLONE_SYSVSEM),
    SANDY_SYMBOL(CLONE_SETTLS),
    SANDY_SYMBOL(CLONE_PARENT_SETTID),
    SANDY_SYMBOL(CLONE_CHILD_CLEARTID),
    SANDY_SYMBOL(CLONE_CHILD_SETTID),
    SANDY_SYMBOL(CLONE_NEWNS),
    SANDY_SYMBOL(CLONE_NEWCGROUP),
    SANDY_SYMBOL(CLONE_NEWUTS),
    SANDY_SYMBOL(CLONE_NEWIPC),
    SANDY_SYMBOL(CLONE_NEWUSER),
    SANDY_SYMBOL(CLONE_NEWPID),
    SANDY_SYMBOL(CLONE_NEWNET),
    SANDY_SYMBOL(CLONE_NEWTIME),
    // personality(2)
    SANDY_SYMBOL(PER_LINUX),
    SANDY_SYMBOL(PER_LINUX32),
    SANDY_SYMBOL(UNAME26),
    SANDY_SYMBOL(ADDR_NO_RANDOMIZE),
    SANDY_SYMBOL(READ_IMPLIES_EXEC),
    SANDY_SYMBOL(MMAP_PAGE_ZERO),
    // open(2), mknod(2), chmod(2)
    SANDY_SYMBOL(O_CREAT),
    {"F_SETLEASE", 1024},  // F_LINUX_SPECIFIC_BASE, linux/fcntl.h
    {"O_TMPFILE_BIT", 020000000},  // __O_TMPFILE, asm-generic/fcntl.h
    SANDY_SYMBOL(S_ISUID),
    SANDY_SYMBOL(S_ISGID),
    SANDY_SYMBOL(S_IFMT),
    SANDY_SYMBOL(S_IFREG),
    SANDY_SYMBOL(S_IFIFO),
    SANDY_SYMBOL(S_IFSOCK),
    SANDY_SYMBOL(S_IFCHR),
    SANDY_SYMBOL(S_IFBLK),
    SANDY_SYMBOL(S_IFDIR),
    // ioctl_tty(2), ioctl_console(2): injecting and console-wide
    SANDY_SYMBOL(TIOCSTI),
    SANDY_SYMBOL(TIOCLINUX),
    SANDY_SYMBOL(TIOCCONS),
    SANDY_SYMBOL(TIOCSETD),
    SANDY_SYMBOL(KDSKBENT),
    SANDY_SYMBOL(KDSKBSENT),
    SANDY_SYMBOL(KDGKBMODE),
    // ioctl_tty(2): ordinary terminal work
    SANDY_SYMBOL(TCGETS),
    SANDY_SYMBOL(TCSETS),
    SANDY_SYMBOL(TCSETSW),
    SANDY_SYMBOL(TCSETSF),
    SANDY_SYMBOL(TCGETA),
    SANDY_SYMBOL(TCSETA),
    SANDY_SYMBOL(TCSETAW),
    SANDY_SYMBOL(TCSETAF),
    SANDY_SYMBOL(TCSBRK),
    SANDY_SYMBOL(TCSBRKP),
    SANDY_SYMBOL(TCXONC),
    SANDY_SYMBOL(TCFLSH),
    {"TCGETS2", 0x802c542a},
    {"TCSETS2", 0x402c542b},
    {"TCSETSW2", 0x402c542c},
    {"TCSETSF2", 0x402c542d},
    SANDY_SYMBOL(TIOCGWINSZ),
    SANDY_SYMBOL(TIOCSWINSZ),
    SANDY_SYMBOL(TIOCGPGRP),
    SANDY_SYMBOL(TIOCSPGRP),
    SANDY_SYMBOL(TIOCGSID),
    SANDY_SYMBOL(TIOCSCTTY),
    SANDY_SYMBOL(TIOCNOTTY),
    SANDY_SYMBOL(TIOCOUTQ),
    SANDY_SYMBOL(TIOCGPTN),
    SANDY_SYMBOL(TIOCSPTLCK),
    SANDY_SYMBOL(TIOCGPTLCK),
    SANDY_SYMBOL(TIOCGPTPEER),
    SANDY_SYMBOL(TIOCPKT),
    SANDY_SYMBOL(TIOCGPKT),
    SANDY_SYMBOL(TIOCEXCL),
    SANDY_SYMBOL(TIOCNXCL),
    SANDY_SYMBOL(TIOCGEXCL),
    SANDY_SYMBOL(TIOCGETD),
    // any descriptor
    SANDY_SYMBOL(FIONREAD),
    SANDY_SYMBOL(FIONBIO),
    SANDY_SYMBOL(FIOASYNC),
    SANDY_SYMBOL(FIOCLEX),
    SANDY_SYMBOL(FIONCLEX),
    SANDY_SYMBOL(FIOQSIZE),
    // files
    SANDY_SYMBOL(FICLONE),
    SANDY_SYMBOL(FICLONERANGE),
    SANDY_SYMBOL(FIDEDUPERANGE),
    SANDY_SYMBOL(FS_IOC_GETFLAGS),
    SANDY_SYMBOL(FS_IOC_SETFLAGS),
    SANDY_SYMBOL(FS_IOC_FSGETXATTR),
    {"FS_IOC_FIEMAP", 0xc020660b},
    // network interfaces, reading
    SANDY_SYMBOL(SIOCGIFCONF),
    SANDY_SYMBOL(SIOCGIFNAME),
    SANDY_SYMBOL(SIOCGIFINDEX),
    SANDY_SYMBOL(SIOCGIFFLAGS),
    SANDY_SYMBOL(SIOCGIFADDR),
    SANDY_SYMBOL(SIOCGIFNETMASK),
    SANDY_SYMBOL(SIOCGIFBRDADDR),
    SANDY_SYMBOL(SIOCGIFHWADDR),
    SANDY_SYMBOL(SIOCGIFMTU),
};
#undef SANDY_SYMBOL

std::optional<std::uint64_t> parse_number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text.front() == '0') {
    return std::nullopt;  // octal to some readers, decimal to others
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

}  // namespace

Result<std::uint64_t> parse_value(std::string_view text) {
  std::uint64_t value = 0;
  for (;;) {
    const std::size_t bar = text.find('|');
    const std::string_view term = text.substr(0, bar);
    const auto* symbol = std::ranges::find(kSymbols, term, &Symbol::name);
    if (symbol != std::end(kSymbols)) {
      value |= symbol->value;
    } else if (const auto number = parse_number(term)) {
      value |= *number;
    } else {
      return fail("",
                  "\"" + printable(term.substr(0, 64)) +
                      "\" is neither a known constant nor a number that fits 64 bits",
                  "write the number in decimal or as 0x… hexadecimal");
    }
    if (bar == std::string_view::npos) return value;
    text.remove_prefix(bar + 1);
  }
}

std::optional<int> errno_from_name(std::string_view name) {
  if (name == "ENOTSUP") return EOPNOTSUPP;
  if (name == "EWOULDBLOCK") return EAGAIN;
  for (int number = 1; number < 256; ++number) {
    const char* known = strerrorname_np(number);
    if (known != nullptr && name == known) return number;
  }
  return std::nullopt;
}

std::string errno_name(int number) {
  const char* known = strerrorname_np(number);
  return known != nullptr ? known : std::to_string(number);
}

}  // namespace sandy::seccomp
