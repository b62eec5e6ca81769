// An output of this process, written to without holding up its loop.
#pragma once

#include <boost/asio.hpp>
#include <optional>
#include <string_view>

namespace sandy::cli {

namespace asio = boost::asio;

// Its descriptor's flags are shared with whoever gave it to us, so it is opened anew to be non-blocking (pipes, terminals); where
// that can't be had, writes may block.
class Output {
 public:
  Output(asio::io_context& io, int fd);

  // The errno of a failure; EPIPE: nobody reads any more.
  asio::awaitable<int> write(std::string_view bytes);

  // Ends a write that waits for a reader.
  void abandon();

 private:
  int fd_;
  std::optional<asio::posix::stream_descriptor> stream_;
  bool abandoned_ = false;
};

}  // namespace sandy::cli
