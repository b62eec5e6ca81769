#include "cli/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/unique_fd.h"

namespace sandy::cli {

Output::Output(asio::io_context& io, int fd) : fd_(fd) {
  struct stat st{};
  if (::fstat(fd, &st) != 0 || !(S_ISFIFO(st.st_mode) || ::isatty(fd) == 1)) return;
  UniqueFd own(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (own) stream_.emplace(io, own.release());
}

asio::awaitable<int> Output::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(stream_ ? stream_->native_handle() : fd_, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN && stream_) {
      const auto [error] = co_await stream_->async_wait(asio::posix::descriptor_base::wait_write, asio::as_tuple(asio::use_awaitable));
      if (error || abandoned_) co_return EPIPE;
    } else if (errno != EINTR) {
      co_return errno;
    }
  }
  co_return 0;
}

void Output::abandon() {
  abandoned_ = true;
  if (stream_) stream_->cancel();
}

}  // namespace sandy::cli
