#include "session/process.h"

#include <algorithm>
#include <chrono>

namespace sandy::session {
namespace {

constexpr std::size_t kLongestWord = 64;  // of the protocol's
constexpr std::size_t kGiveBackStep = wire::kWindowBytes / 4;  // less is not worth a frame

const char* name_of(OutputStream stream) { return stream == OutputStream::out ? "stdout" : "stderr"; }

wire::Json named(std::string_view ev) {
  wire::Json out = wire::Json::object();
  out["ev"] = ev;
  return out;
}

}  // namespace

Process::Process(std::shared_ptr<Sandbox> sandbox, std::uint32_t number, std::string words, bool tty, std::size_t log_bytes)
    : sandbox_(std::move(sandbox)), number_(number), words_(std::move(words)), tty_(tty), log_(log_bytes) {}

std::shared_ptr<Process> Process::start(std::shared_ptr<Sandbox> sandbox, std::uint32_t number, wire::Json header, std::string payload, std::string words) {
  const auto log_bytes = sandbox->plan().log_size;
  std::shared_ptr<Process> self(new Process(sandbox, number, std::move(words), header.contains("tty"), log_bytes));
  // What goes along with the request is input, and counts as such: the agent gives credit for it.
  header["op"] = "exec";
  header["stream"] = true;
  self->id_ = sandbox->open(std::move(header), std::move(payload), self);
  return self;
}

std::uint64_t Process::held() const {
  std::uint64_t out = UINT64_MAX;
  for (const auto& attached : attached_) {
    if (attached.hold) out = std::min(out, attached.position);
  }
  return out;
}

void Process::attach(ProcessReader& reader, Options options) {
  attached_.push_back({&reader, std::min(options.offset.value_or(log_.begin()), log_.end()), wire::kWindowBytes, options.follow, options.hold && options.follow});
  send_to(attached_.size() - 1);
}

void Process::forget(std::size_t index) {
  const auto* const reader = attached_[index].reader;
  attached_.erase(attached_.begin() + static_cast<std::ptrdiff_t>(index));
  for (auto& input : input_) {
    if (input.from == reader) input.from = nullptr;
  }
  std::ranges::replace(drains_, const_cast<ProcessReader*>(reader), static_cast<ProcessReader*>(nullptr));
}

void Process::detach(ProcessReader& reader) {
  for (std::size_t i = 0; i < attached_.size(); ++i) {
    if (attached_[i].reader != &reader) continue;
    forget(i);
    return give_back();
  }
}

// Sends what it can take; at the end, the end, and then it is not attached any more.
void Process::send_to(std::size_t index) {
  // Output may come first.
  if (!started_ && !end_) return;
  auto& to = attached_[index];
  if (started_ && !to.told_start) {
    to.told_start = true;
    wire::Json started = named("started");
    describe_start(started);
    started["offset"] = std::max(to.position, log_.begin());
    to.reader->on_process_event(std::move(started), {});
  }
  const auto tell_drained = [&] {
    while (!to.drained.empty() && to.drained.front() <= to.position) {
      to.drained.pop_front();
      to.reader->on_process_event(named("drained"), {});
    }
  };
  while (to.window > 0) {
    if (to.position < log_.begin()) {
      wire::Json lost = named("lost");
      lost["bytes"] = log_.begin() - to.position;
      to.position = log_.begin();
      to.reader->on_process_event(std::move(lost), {});
    }
    if (to.position == log_.end()) break;
    const auto piece = log_.at(to.position, std::min(wire::kChunkBytes, to.window));
    wire::Json output = named(name_of(piece.stream));
    output["offset"] = to.position;
    to.position += piece.bytes.size();
    to.window -= std::min(to.window, wire::stream_charge(piece.bytes.size()));
    to.reader->on_process_event(std::move(output), std::string(piece.bytes));
    tell_drained();
  }
  tell_drained();
  const bool all_sent = to.position == log_.end() && to.position >= log_.begin();
  if (all_sent && (end_ || !to.follow)) {
    wire::Json last = end_ ? *end_ : wire::Json::object();
    last["ev"] = "end";
    if (!could_not_start()) last["process"] = number_;
    if (!end_) last["running"] = true;
    last["offset"] = log_.end();
    auto& reader = *to.reader;
    forget(index);
    reader.on_process_event(std::move(last), {});
  }
  give_back();
}

void Process::send_to_all() {
  // Whoever has had the end is not there any more.
  for (std::size_t i = attached_.size(); i-- > 0;) send_to(i);
  give_back();
}

// The agent may send more of what nobody is waited for with.
void Process::give_back() {
  const auto passed = held();
  log_.trim(passed);
  while (!not_given_back_.empty() && not_given_back_.front().first <= passed) {
    to_give_back_ += not_given_back_.front().second;
    not_given_back_.pop_front();
  }
  if (to_give_back_ >= kGiveBackStep) pass_on(wire::credit_request(std::exchange(to_give_back_, 0)));
}

void Process::pass_on(wire::Json header, std::string payload) {
  if (sandbox_) sandbox_->follow(id_, std::move(header), std::move(payload));
}

void Process::pass_input() {
  while (!input_.empty() && (input_.front().bytes.empty() || input_window_ > 0)) {
    auto& next = input_.front();
    if (!next.bytes.empty()) {
      const auto size = std::min({next.bytes.size(), input_window_, wire::kChunkBytes});
      input_window_ -= size;
      const auto whole = size == next.bytes.size();
      std::string piece = whole ? std::move(next.bytes) : next.bytes.substr(0, size);
      if (whole) next.bytes.clear();
      if (!whole) next.bytes.erase(0, size);
      pass_on(wire::request("data"), std::move(piece));
      if (next.from != nullptr) {
        wire::Json credit = named("credit");
        credit["bytes"] = size;
        next.from->on_process_event(std::move(credit), {});
      }
      if (!whole) continue;
    }
    if (next.eof) pass_on(wire::request("eof"));
    input_.pop_front();
  }
}

void Process::follow(ProcessReader& reader, wire::Json header, std::string payload) {
  const auto at = std::ranges::find(attached_, &reader, &Attached::reader);
  if (at == attached_.end()) return;  // it has had the end
  const std::string op = header.value("op", "");
  if (op == "credit") {
    const auto bytes = header.find("bytes");
    const auto given = bytes != header.end() && bytes->is_number_unsigned() ? bytes->get<std::uint64_t>() : 0;
    at->window += static_cast<std::size_t>(std::min<std::uint64_t>(given, wire::kWindowBytes - std::min(at->window, wire::kWindowBytes)));
    send_to(static_cast<std::size_t>(at - attached_.begin()));
  } else if (op == "data" || op == "eof") {
    input_.push_back({&reader, std::move(payload), op == "eof"});
    pass_input();
  } else if (op == "drain") {
    drains_.push_back(&reader);
    pass_on(std::move(header));
  } else if (op == "cancel") {
    kill();
  } else {
    pass_on(std::move(header));
  }
}

void Process::signal(int number) {
  wire::Json frame = wire::request("signal");
  frame["signal"] = number;
  pass_on(std::move(frame));
}

void Process::kill() { pass_on(wire::request("cancel")); }

void Process::describe_start(wire::Json& out) const {
  out["process"] = number_;
  out["pid"] = pid_;
  out["started_ms"] = started_ms_;
  out["tty"] = tty_;
}

wire::Json Process::description() const {
  wire::Json out = wire::Json::object();
  // The agent may have put anything there; a list is no place for it.
  for (const char* key : {"reason", "error", "code", "signal", "core", "errno", "wall_ms", "user_ms", "system_ms", "max_rss_kib", "memory_peak", "cpu_us", "throttled_us", "oom_kills"}) {
    const auto found = end_ ? end_->find(key) : wire::Json::const_iterator();
    if (!end_ || found == end_->end() || !(found->is_number() || found->is_boolean() || (found->is_string() && found->get_ref<const std::string&>().size() < kLongestWord))) continue;
    out[key] = *found;
  }
  describe_start(out);
  out["offset"] = log_.end();
  if (!end_) out["running"] = true;
  return out;
}

void Process::on_event(wire::Frame event) {
  const auto ev = event.ev();
  if (ev == "started") {
    started_ = true;
    pid_ = event.number("pid", 0);
    started_ms_ = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count());
  } else if (ev == "stdout" || ev == "stderr") {
    const auto charge = wire::stream_charge(event.payload.size());
    log_.append(ev == "stdout" ? OutputStream::out : OutputStream::err, std::move(event.payload));
    not_given_back_.emplace_back(log_.end(), charge);
  } else if (ev == "credit") {
    input_window_ = std::min(wire::kWindowBytes, input_window_ + event.number("bytes", 0));
    return pass_input();
  } else if (ev == "drained") {
    if (drains_.empty()) return;
    auto* const reader = drains_.front();
    drains_.pop_front();
    const auto at = std::ranges::find(attached_, reader, &Attached::reader);
    if (at == attached_.end()) return;
    at->drained.push_back(log_.end());
    return send_to(static_cast<std::size_t>(at - attached_.begin()));
  } else if (ev == "end") {
    end_ = std::move(event.header);
    for (const char* key : {"id", "ev"}) end_->erase(key);
    log_.seal();
    sandbox_.reset();
  }
  send_to_all();
}

std::shared_ptr<Process> Processes::start(const std::shared_ptr<Sandbox>& sandbox, wire::Json header, std::string payload, std::string words) {
  sweep();
  processes_.push_back(Process::start(sandbox, next_++, std::move(header), std::move(payload), std::move(words)));
  return processes_.back();
}

std::shared_ptr<Process> Processes::find(std::uint64_t number) const {
  for (const auto& process : processes_) {
    if (process->number() == number && !process->could_not_start()) return process;
  }
  return nullptr;
}

const std::vector<std::shared_ptr<Process>>& Processes::all() {
  sweep();
  return processes_;
}

void Processes::sweep() {
  std::erase_if(processes_, [](const auto& process) { return process->could_not_start(); });
  std::size_t ended = 0, bytes = 0;
  for (std::size_t i = processes_.size(); i-- > 0;) {
    if (!processes_[i]->ended()) continue;
    bytes += processes_[i]->kept_bytes();
    // One at least, however large its log may be.
    if (++ended > kMaxEnded || (ended > 1 && bytes > kMaxEndedBytes)) processes_.erase(processes_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace sandy::session
