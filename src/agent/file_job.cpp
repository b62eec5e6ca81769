#include "agent/file_job.h"

#include <algorithm>
#include <array>
#include <boost/asio.hpp>

#include "agent/agent.h"
#include "agent/files/download.h"
#include "agent/files/edit.h"
#include "agent/files/glob.h"
#include "agent/files/grep.h"
#include "agent/files/list.h"
#include "agent/files/read.h"
#include "agent/files/remove.h"
#include "agent/files/stat.h"
#include "agent/files/workspace_path.h"
#include "agent/files/write.h"

namespace sandy::agent {
namespace {

using wire::Json;

constexpr std::array<std::string_view, 9> kOperations{"read", "write", "edit", "delete", "ls", "glob", "grep", "download", "stat"};

Json error_fields(const files::FileError& error) {
  Json fields{{"error", files::word(error.code)}};
  if (!error.detail.empty()) fields["detail"] = error.detail;
  if (error.code == files::Code::offset) {
    fields["offset"] = error.offset;
    fields["lines"] = error.lines;
  }
  if (error.code == files::Code::multiple_occurrences) fields["count"] = error.count;
  return fields;
}

Json optional_number(const std::optional<std::uint64_t>& number) { return number ? Json(*number) : Json(nullptr); }

std::optional<std::uint64_t> given(const wire::Frame& frame, const char* key) {
  const std::uint64_t value = frame.number(key, ~std::uint64_t{0});
  return value == ~std::uint64_t{0} ? std::nullopt : std::optional(value);
}

std::chrono::milliseconds budget(const wire::Frame& frame, std::uint64_t otherwise) {
  return std::chrono::milliseconds(std::min<std::uint64_t>(frame.number("budget_ms", otherwise), 86'400'000));
}

}  // namespace

bool is_file_operation(std::string_view op) { return std::ranges::find(kOperations, op) != kOperations.end(); }

void FileJob::start() {
  agent_.sync_names();
  asio::post(agent_.file_pool(), [self = shared_from_this()] { self->work(); });
}

void FileJob::on_frame(wire::Frame frame) {
  const std::lock_guard lock(mutex_);
  const auto op = frame.op();
  if (op == "data") {
    input_.push_back(std::move(frame.payload));
  } else if (op == "eof") {
    input_eof_ = true;
  } else if (op == "credit") {
    window_ = std::min<std::size_t>(wire::kWindowBytes, window_ + std::min<std::uint64_t>(frame.number("bytes", 0), wire::kWindowBytes));
  } else if (op == "cancel") {
    stop_.request_stop();
  }
  changed_.notify_all();
}

void FileJob::work() {
  Json fields = run();
  std::string rest = std::move(chunk_);
  if (!rest.empty() && !fields.contains("error")) {
    // The last piece goes with the end, in one system call, if there is credit for it.
    std::unique_lock lock(mutex_);
    const std::size_t charge = wire::stream_charge(rest.size());
    changed_.wait(lock, [&] { return window_ >= charge || stop_.stop_requested(); });
    window_ -= std::min(window_, charge);
  }
  asio::post(agent_.io(), [self = shared_from_this(), fields = std::move(fields), rest = std::move(rest)]() mutable {
    std::vector<std::pair<Json, std::string>> frames;
    if (!rest.empty()) frames.emplace_back(wire::event(self->id_, "data"), std::move(rest));
    self->agent_.end(self->id_, std::move(fields), std::move(frames));
  });
}

// Not inlined: of a string that it knows to be long, g++ 12 warns that the buffer for short ones is too small.
[[gnu::noinline]] std::string FileJob::take_chunk() { return std::exchange(chunk_, {}); }

bool FileJob::emit(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto piece = bytes.substr(0, wire::kChunkBytes - chunk_.size());
    chunk_ += piece;
    bytes.remove_prefix(piece.size());
    if (chunk_.size() == wire::kChunkBytes && !send_chunk(take_chunk())) return false;
  }
  return !stop_.stop_requested();
}

bool FileJob::send_chunk(std::string chunk) {
  {
    std::unique_lock lock(mutex_);
    const std::size_t charge = wire::stream_charge(chunk.size());
    changed_.wait(lock, [&] { return window_ >= charge || stop_.stop_requested(); });
    if (stop_.stop_requested()) return false;
    window_ -= charge;
  }
  asio::post(agent_.io(), [self = shared_from_this(), chunk = std::move(chunk)]() mutable {
    std::vector<std::pair<Json, std::string>> frames;
    frames.emplace_back(wire::event(self->id_, "data"), std::move(chunk));
    self->agent_.channel().post_all(std::move(frames));
  });
  return true;
}

std::optional<std::string> FileJob::next_input() {
  std::string piece;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !input_.empty() || input_eof_ || stop_.stop_requested(); });
    if (input_.empty() || stop_.stop_requested()) return std::nullopt;
    piece = std::move(input_.front());
    input_.pop_front();
  }
  asio::post(agent_.io(), [self = shared_from_this(), n = piece.size()] {
    self->agent_.channel().post(wire::credit_event(self->id_, n));
  });
  return piece;
}

std::string FileJob::locate(std::string_view path) const {
  const auto& configuration = agent_.configuration();
  if (!configuration.workspace_names) {
    // Every name in `/` is what it says; only relative ones are the workspace's.
    return path.empty() || path.starts_with('/') ? std::string(path) : configuration.workspace + "/" + std::string(path);
  }
  return agent_.locate(files::map_path(path, configuration.workspace, configuration.root_names));
}

Json FileJob::run() {
  const auto cut = frame_.cut();
  const auto op = frame_.op();
  const std::size_t wanted = op == "edit" || op == "grep" ? 3 : op == "glob" ? 2 : 1;
  if (!cut || cut->args.size() < wanted) return {{"error", "invalid_path"}, {"detail", "too few arguments"}};
  const std::string path = locate(cut->args[0]);
  if (op == "read") return read(path);
  if (op == "write") return write(path, cut->data);
  if (op == "glob") return glob(path, cut->args[1]);
  if (op == "grep") return grep(path, cut->args);
  if (op == "edit") {
    const auto result = files::edit(path, cut->args[1], cut->args[2], frame_.flag("replace_all", false), stop_.get_token());
    return result ? Json{{"occurrences", *result}} : error_fields(result.error());
  }
  if (op == "delete") {
    const auto result = files::remove(path, stop_.get_token());
    return result ? Json::object() : error_fields(result.error());
  }
  if (op == "ls") {
    const auto entries = files::list(path, stop_.get_token());
    if (!entries) return error_fields(entries.error());
    for (const auto& entry : *entries) {
      if (!emit((entry.directory ? "d" : "f") + entry.name + '\0')) return {{"error", "cancelled"}};
    }
    return Json::object();
  }
  if (op == "download") {
    const auto result = files::download(path, given(frame_, "max_bytes"), sink(), stop_.get_token());
    return result ? Json{{"bytes", *result}} : error_fields(result.error());
  }
  const auto info = files::stat_path(path);
  if (!info) return error_fields(info.error());
  return {{"type", info->type}, {"size", info->size}, {"mode", info->mode}, {"mtime_ns", info->mtime_ns}};
}

Json FileJob::read(const std::string& path) {
  const files::ReadOptions options{
      .offset = frame_.number("offset", 0), .limit = frame_.number("limit", 2000), .binary = frame_.flag("binary", false)};
  auto page = files::read(path, options, stop_.get_token());
  if (!page) return error_fields(page.error());
  if (!emit(page->content)) return {{"error", "cancelled"}};
  Json fields{{"encoding", page->binary ? "base64" : "utf-8"}, {"truncated", page->truncated}};
  if (page->empty) fields["empty"] = true;
  if (page->no_lines_requested) fields["no_lines_requested"] = true;
  if (page->repaired != 0) fields["repaired"] = page->repaired;
  if (page->window) {
    fields["start_line"] = page->window->start_line;
    fields["end_line"] = page->window->end_line;
    fields["total_lines"] = optional_number(page->window->total_lines);
    fields["next_offset"] = optional_number(page->window->next_offset);
  }
  return fields;
}

Json FileJob::write(const std::string& path, std::string_view data) {
  files::WriteOptions options{.parents = frame_.flag("parents", true), .mode = {}};
  if (const auto mode = given(frame_, "mode")) options.mode = static_cast<mode_t>(*mode & 07777);
  auto writer = files::Writer::open(path, options);
  if (!writer) return error_fields(writer.error());
  if (const auto r = writer->append(data); !r) return error_fields(r.error());
  if (frame_.flag("more", false)) {
    while (const auto piece = next_input()) {
      if (const auto r = writer->append(*piece); !r) return error_fields(r.error());
    }
  }
  if (stop_.stop_requested()) return {{"error", "cancelled"}};
  const auto written = writer->commit(stop_.get_token());
  return written ? Json{{"bytes", *written}} : error_fields(written.error());
}

Json FileJob::glob(const std::string& path, std::string_view pattern) {
  const files::GlobOptions options{.max_matches = frame_.number("max_matches", 10'000), .budget = budget(frame_, 5000)};
  const auto report = files::glob(path, pattern, options, sink(), stop_.get_token());
  if (!report) return error_fields(report.error());
  return {{"truncated", report->truncated}, {"truncation_reason", report->truncation_reason}, {"walk_errors", report->walk_errors}};
}

Json FileJob::grep(const std::string& path, const std::vector<std::string_view>& args) {
  files::GrepOptions options;
  options.glob = args[2];
  for (std::size_t i = 3; i < args.size(); ++i) options.exclude_dirs.emplace_back(args[i]);
  options.max_count = given(frame_, "max_count");
  options.budget = budget(frame_, 0);
  // Results start with the path as it was asked for, where it was one that we mapped.
  if (args[0].starts_with('/') && path != args[0]) options.shown_root = std::string(args[0]);
  const auto report = files::grep(path, args[1], options, sink(), stop_.get_token());
  if (!report) return error_fields(report.error());
  return {{"truncated", report->truncated}, {"walk_errors", report->walk_errors}, {"unreadable", report->unreadable}};
}

}  // namespace sandy::agent
