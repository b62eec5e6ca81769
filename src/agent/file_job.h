// A request for a file operation: done by blocking code (files/) on a worker thread, spoken to in frames by the agent's loop.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "agent/files/result.h"
#include "agent/request.h"

namespace sandy::agent {

class Agent;

bool is_file_operation(std::string_view op);

class FileJob : public Request, public std::enable_shared_from_this<FileJob> {
 public:
  FileJob(Agent& agent, wire::Frame frame) : agent_(agent), id_(frame.id), frame_(std::move(frame)) {}

  void start();
  void on_frame(wire::Frame frame) override;

 private:
  // On the worker thread:
  void work();
  wire::Json run();
  wire::Json read(const std::string& path);
  wire::Json write(const std::string& path, std::string_view data);
  wire::Json glob(const std::string& path, std::string_view pattern);
  wire::Json grep(const std::string& path, const std::vector<std::string_view>& args);
  std::string locate(std::string_view path) const;
  bool emit(std::string_view bytes);  // collects, and sends full chunks; waits for credit. False: stop
  std::string take_chunk();
  bool send_chunk(std::string chunk);
  std::optional<std::string> next_input();  // nothing at the end; waits
  files::Sink sink() {
    return [this](std::string_view bytes) { return emit(bytes); };
  }

  Agent& agent_;
  std::uint32_t id_;
  wire::Frame frame_;
  std::string chunk_;
  std::stop_source stop_;
  // Between the loop and the worker:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> input_;
  bool input_eof_ = false;
  std::size_t window_ = wire::kWindowBytes;
};

}  // namespace sandy::agent
