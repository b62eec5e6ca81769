// A sandbox that is attacked: commands in it, and the operations on its files.
#pragma once

#include <boost/asio.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "session/sandbox.h"
#include "verify/judge.h"

namespace sandy::verify {

namespace asio = boost::asio;
using wire::Json;

struct Answer {
  Json end;
  std::string output;  // at most 1 MiB of it
};

class Sandboxed {
 public:
  // `program`: the bytes of sandy-attack, which is put where commands can run it.
  static asio::awaitable<Result<std::shared_ptr<Sandboxed>>> start(asio::any_io_executor executor, session::PlannedSandbox planned, std::string program, std::string nonce);

  session::Sandbox& sandbox() { return *sandbox_; }
  // A directory of our own in the workspace, as it is called inside.
  const std::string& directory() const { return directory_; }

  // One attempt. `arrived` is false: what is seen outside, the caller looks for.
  asio::awaitable<Inside> attempt(std::vector<std::string> words, std::chrono::milliseconds limit = kLimit);
  // The same, with all that the command's end says.
  asio::awaitable<Answer> run(std::vector<std::string> words, std::chrono::milliseconds limit = kLimit);
  // An operation of PROTOCOL.md on a file.
  asio::awaitable<Answer> file(std::string operation, std::string path, std::string data = {});

  // Removes what it has brought, and ends the sandbox.
  asio::awaitable<void> close();

  Inside judged(const Answer& answer) const;

 private:
  static constexpr std::chrono::milliseconds kLimit{10'000};
  Sandboxed() = default;
  asio::awaitable<Answer> request(Json header, std::vector<std::string> words, std::string data);
  asio::awaitable<Result<void>> bring(std::string program);

  asio::any_io_executor executor_;
  std::shared_ptr<session::Sandbox> sandbox_;
  std::string nonce_, program_, directory_;
};

}  // namespace sandy::verify
