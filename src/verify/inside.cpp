#include "verify/inside.h"

#include <boost/asio/use_awaitable.hpp>
#include <optional>

namespace sandy::verify {
namespace {

constexpr std::size_t kMaxOutput = 1 << 20;
constexpr std::chrono::seconds kPatience{5};  // beyond the agent's own limit

class Collector : public session::EventSink {
 public:
  explicit Collector(asio::any_io_executor executor) : ended_(executor, asio::steady_timer::time_point::max()) {}
  void on_event(wire::Frame event) override {
    if (event.ev() == "end") {
      end_ = std::move(event.header);
      ended_.cancel();
    } else if (answer_.output.size() < kMaxOutput) {
      answer_.output.append(event.payload, 0, kMaxOutput - answer_.output.size());
    }
  }
  // An end that doesn't come is one without a reason.
  asio::awaitable<Answer> wait(std::chrono::milliseconds limit) {
    const auto last = std::chrono::steady_clock::now() + limit;
    ended_.expires_at(last);
    while (!end_ && std::chrono::steady_clock::now() < last) co_await ended_.async_wait(asio::as_tuple(asio::use_awaitable));
    answer_.end = end_ ? std::move(*end_) : Json::object();
    co_return std::move(answer_);
  }

 private:
  asio::steady_timer ended_;
  std::optional<Json> end_;
  Answer answer_;
};

}  // namespace

asio::awaitable<Result<std::shared_ptr<Sandboxed>>> Sandboxed::start(asio::any_io_executor executor, session::PlannedSandbox planned, std::string program, std::string nonce) {
  std::shared_ptr<Sandboxed> out(new Sandboxed());
  out->executor_ = executor;
  out->nonce_ = std::move(nonce);
  auto sandbox = co_await session::Sandbox::start(executor, std::move(planned));
  if (!sandbox) co_return std::unexpected(sandbox.error());
  out->sandbox_ = std::move(*sandbox);
  const auto brought = co_await out->bring(std::move(program));
  if (!brought) {
    co_await out->close();
    co_return std::unexpected(brought.error());
  }
  co_return out;
}

asio::awaitable<Result<void>> Sandboxed::bring(std::string program) {
  const std::string workspace = sandbox_->plan().workspace, home = sandbox_->plan().home;
  directory_ = workspace + "/.sandy-verify-" + nonce_;
  std::string tried;
  for (const std::string* place : {static_cast<const std::string*>(nullptr), &home, &workspace}) {
    program_ = (place == nullptr ? "/tmp" : *place) + "/.sandy-attack-" + nonce_;
    Json header = wire::request("write");
    header["mode"] = 0755;
    std::vector<std::string> words;
    words.push_back(program_);
    const Answer written = co_await request(std::move(header), std::move(words), program);
    if (!written.end.contains("error") && written.end.contains("bytes")) {
      words.clear();
      words.emplace_back("make-directory");
      words.push_back(directory_);
      const Inside made = co_await attempt(std::move(words));
      if (made.report.word == AttemptReport::Word::done) co_return Result<void>();
      tried += "; " + shown(program_) + ": " + (made.report.word == AttemptReport::Word::none ? made.end : shown(made.report.detail));
    } else {
      tried += "; " + shown(program_) + ": " + shown(written.end.value("error", std::string("no answer")));
    }
  }
  co_return fail("the attacks", "can't be brought into a sandbox of this policy" + tried, "let commands write to the workspace, and run what is in it or in /tmp");
}

asio::awaitable<Answer> Sandboxed::request(Json header, std::vector<std::string> words, std::string data) {
  auto collector = std::make_shared<Collector>(executor_);
  const std::chrono::milliseconds limit(header.value("timeout_ms", std::uint64_t{10'000}));
  Json lengths = Json::array();
  std::string payload;
  for (const auto& word : words) {
    lengths.push_back(word.size());
    payload += word;
  }
  payload += data;
  header["args"] = std::move(lengths);
  const auto id = sandbox_->open(std::move(header), std::move(payload), collector);
  Answer answer = co_await collector->wait(limit + kPatience);
  if (answer.end.empty()) sandbox_->abandon(id);
  co_return answer;
}

asio::awaitable<Answer> Sandboxed::run(std::vector<std::string> words, std::chrono::milliseconds limit) {
  Json header = wire::request("exec");
  words.insert(words.begin(), nonce_);
  words.insert(words.begin(), program_);
  header["argc"] = words.size();
  header["shell"] = false;
  header["timeout_ms"] = limit.count();
  words.emplace_back();  // the working directory: the default
  co_return co_await request(std::move(header), std::move(words), std::string());
}

asio::awaitable<Inside> Sandboxed::attempt(std::vector<std::string> words, std::chrono::milliseconds limit) {
  const Answer answer = co_await run(std::move(words), limit);
  co_return judged(answer);
}

asio::awaitable<Answer> Sandboxed::file(std::string operation, std::string path, std::string data) {
  std::vector<std::string> words;
  words.push_back(std::move(path));
  co_return co_await request(wire::request(operation), std::move(words), std::move(data));
}

Inside Sandboxed::judged(const Answer& answer) const {
  Inside out;
  const std::string reason = answer.end.value("reason", answer.end.value("error", std::string("no answer")));
  const int code = answer.end.value("code", -1);
  // A report of one that then went wrong is none.
  if (reason == "exited" && code == 0) out.report = read_report(answer.output, nonce_);
  out.end = reason + (answer.end.contains("code") ? " " + std::to_string(code) : "") +
            (answer.end.contains("signal") ? " " + std::to_string(answer.end.value("signal", 0)) : "");
  return out;
}

asio::awaitable<void> Sandboxed::close() {
  if (sandbox_->alive()) {
    co_await file("delete", directory_);
    co_await file("delete", program_);
  }
  co_await sandbox_->close("the attacks are over");
}

}  // namespace sandy::verify
