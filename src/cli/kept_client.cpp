#include "cli/kept_client.h"

#include <signal.h>

#include "cli/verbs.h"
#include "host/kept_socket.h"

namespace sandy::cli {

using wire::Json;

Result<std::shared_ptr<KeptClient>> KeptClient::connect(asio::io_context& io, const std::string& id_or_name) {
  auto kept = session::find_kept(id_or_name);
  if (!kept) return std::unexpected(kept.error());
  const std::string what = "sandbox " + kept->record.id;
  if (!kept->running) return fail(what, "has stopped", "sandy create --resume " + kept->record.id + " goes on with its workspace");
  auto socket = host::connect_kept(kept->record.socket);
  if (!socket) return fail(what, "does not answer at " + socket.error().text());
  auto out = std::make_shared<KeptClient>(io, std::move(*socket));
  out->record_ = std::move(kept->record);
  return out;
}

KeptClient::KeptClient(asio::io_context& io, UniqueFd socket) : io_(io), channel_(wire::Channel::make(io.get_executor(), std::move(socket), wire::kMaxReplyPayload)) {}

void KeptClient::open(Json header, const std::string& payload) {
  header["id"] = ++id_;
  if (!record_.id.empty()) header["sandbox"] = record_.id;
  channel_->post(header, payload);
}

asio::awaitable<Result<wire::Frame>> KeptClient::request(Json header, std::string payload, std::function<void(wire::Frame)> on_event) {
  auto self = shared_from_this();
  open(std::move(header), payload);
  while (true) {
    auto frame = co_await channel_->read();
    if (!frame) co_return std::unexpected(frame.error());
    if (frame->id != id_) continue;
    if (frame->ev() == "end") co_return std::move(*frame);
    if (on_event) on_event(std::move(*frame));
  }
}

asio::awaitable<Result<wire::Frame>> KeptClient::begin(Json header, std::string payload) {
  auto self = shared_from_this();
  open(std::move(header), payload);
  co_return co_await channel_->read();
}

void KeptClient::relay(const std::shared_ptr<Relay>& to, Json header, std::string payload) {
  open(std::move(header), payload);
  asio::co_spawn(io_, pass_events(to), asio::detached);
}

asio::awaitable<void> KeptClient::pass_events(std::shared_ptr<Relay> to) {
  auto self = shared_from_this();
  while (true) {
    auto frame = co_await channel_->read();
    if (!frame) {
      wire::Frame end;
      end.header = {{"ev", "end"}, {"error", "no_sandbox"}, {"detail", "its server is gone"}};
      to->on_event(std::move(end));
      co_return;
    }
    const bool last = frame->ev() == "end";
    to->on_event(std::move(*frame));
    if (last) co_return;
  }
}

void KeptClient::follow(Json header, std::string payload) {
  header["id"] = id_;
  channel_->post(header, payload);
}

void KeptClient::answer(std::uint32_t, bool, bool) {}  // nobody here is asked

int run_in_loop(const std::function<asio::awaitable<int>(asio::io_context&)>& verb) {
  ::signal(SIGPIPE, SIG_IGN);
  // Never destroyed: it is stopped with work in it.
  static asio::io_context& io = *new asio::io_context(1);
  int status = kCouldNotStart;
  asio::co_spawn(io, verb(io), [&](std::exception_ptr failure, int result) {
    // Values of another type than the protocol's: nlohmann::json throws.
    if (failure) print_error({"the sandbox", "its agent broke the protocol", ""});
    if (!failure) status = result;
    io.stop();
  });
  io.run();
  return status;
}

Error error_of(const Json& end) {
  const std::string detail = end.value("detail", ""), word = end.value("error", "");
  return {"the sandbox", printable(detail.empty() ? word : detail), ""};
}

namespace {

asio::awaitable<int> end_each(asio::io_context& io, const std::vector<std::string>& ids, bool remove, bool also_running) {
  int status = 0;
  for (const auto& id : ids) {
    Result<void> done;
    auto kept = session::find_kept(id);
    if (!kept) {
      done = std::unexpected(kept.error());
    } else if (kept->running && !also_running) {
      done = fail("sandbox " + kept->record.id, "it runs", "stop it first (sandy stop), or give --force");
    } else if (kept->running) {
      auto client = KeptClient::connect(io, id);
      if (!client) {
        done = std::unexpected(client.error());
      } else {
        Json header = wire::request("close");
        if (!remove) header["stop"] = true;
        auto ended = co_await (*client)->request(std::move(header));
        if (!ended) done = fail("sandbox " + kept->record.id, "its server is gone");
        if (ended && ended->header.contains("error")) done = std::unexpected(error_of(ended->header));
        // Somebody else may have been stopping it.
        if (const auto left = session::find_kept(kept->record.id); done && remove && left && !left->running) done = session::remove_kept(kept->record.id);
      }
    } else if (remove) {
      done = session::remove_kept(kept->record.id);
    }
    if (done) {
      std::printf("%s\n", kept->record.id.c_str());
    } else {
      print_error(done.error());
      status = 1;
    }
  }
  co_return status;
}

}  // namespace

int end_kept(const std::vector<std::string>& ids, bool remove, bool also_running) {
  return run_in_loop([&](asio::io_context& io) { return end_each(io, ids, remove, also_running); });
}

}  // namespace sandy::cli
