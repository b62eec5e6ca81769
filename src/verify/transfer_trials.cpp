#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/use_awaitable.hpp>

#include "base/unique_fd.h"
#include "verify/special_trials.h"

namespace sandy::verify {
namespace {

using Words = std::vector<std::string>;

Finding finding(const char* name, std::vector<int> rows, const char* words, Judgement judgement) {
  return {{name, AttackClass::host_side, std::move(rows), words}, judgement.verdict, std::move(judgement.detail), ""};
}

// Of one that leads to `path`.
Finding finding(const Setting& setting, const std::string& path, bool writing, const char* name, std::vector<int> rows, const char* words, Judgement judgement) {
  Finding out = finding(name, std::move(rows), words, std::move(judgement));
  if (out.verdict == Verdict::fail) out.allowed_by = setting.shown_by({path}, writing);
  return out;
}

Words words(std::string first, std::string second = {}, std::string third = {}) {
  Words out;
  for (auto* word : {&first, &second, &third}) {
    if (!word->empty()) out.push_back(std::move(*word));
  }
  return out;
}

// An operation's end, as if it were an attempt's report.
Inside as_inside(const Answer& answer) {
  Inside out;
  if (answer.end.empty()) {
    out.end = "no answer";
  } else if (answer.end.contains("error")) {
    out.report = {AttemptReport::Word::refused, answer.end.value("error", "")};
  } else {
    out.report = {AttemptReport::Word::done, "it was done"};
  }
  return out;
}

bool has_escapes(const Json& value) {
  if (value.is_string()) return printable(value.get_ref<const std::string&>()) != value.get_ref<const std::string&>();
  if (!value.is_structured()) return false;
  for (const auto& item : value) {
    if (has_escapes(item)) return true;
  }
  return false;
}

}  // namespace

asio::awaitable<void> transfer_trials(Setting& setting, Sandboxed& sandbox, std::vector<Finding>& out) {
  const auto& place = setting.canaries.home.directory ? setting.canaries.home : setting.canaries.tmp;
  if (!place.directory) {
    out.push_back(finding("transfer", {30, 42}, "make a transfer of files follow a link", {Verdict::untried, place.directory.error().text()}));
    co_return;
  }
  const std::string secret = place.file("secret");
  // That the link is made inside, and that what is made there can be had, is the control; a reader outside that follows it gets the secret (read-home).
  const std::string link = sandbox.directory() + "/to-download";
  Words planting = words("plant-link", setting.shown_inside(secret), link);
  const Inside planted = co_await sandbox.attempt(std::move(planting));
  const Control reads = setting.outside.control(words("read", secret));
  const Control control{planted.report.word == AttemptReport::Word::done && reads.worked, "no link can be made in the workspace, or there is nothing to lead to"};
  const Answer downloaded = co_await sandbox.file("download", link);
  Inside download = as_inside(downloaded);
  download.arrived = downloaded.output.find(setting.canaries.secret) != std::string::npos;
  if (download.report.word == AttemptReport::Word::done) download.report = {AttemptReport::Word::refused, "it has other content"};
  out.push_back(finding(setting, secret, false, "download-link", {42}, "make a download follow a link to your file", judge(control, download, Proof::report)));

  // The link leads to a file that commands can't change, and an upload, which may do what they may, can't either.
  const Answer uploaded = co_await sandbox.file("write", link, "changed");
  Inside upload = as_inside(uploaded);
  upload.arrived = place.directory->content("secret") != setting.canaries.secret;
  if (upload.report.word == AttemptReport::Word::done) upload.report = {AttemptReport::Word::refused, "the link was replaced"};
  out.push_back(finding(setting, secret, true, "upload-link", {30, 42}, "make an upload follow a link to your file", judge(control, upload, Proof::report)));

  const std::string fifo = sandbox.directory() + "/fifo";
  Words piping = words("plant-fifo", fifo);
  const Inside piped = co_await sandbox.attempt(std::move(piping));
  const Control fifo_control{piped.report.word == AttemptReport::Word::done, "no FIFO can be made in the workspace"};
  const Answer stuck = co_await sandbox.file("download", fifo);
  out.push_back(finding("download-fifo", {42}, "make a download wait for a FIFO", judge(fifo_control, as_inside(stuck), Proof::report)));

  const std::string name = sandbox.directory() + "/\x1b[2J\x1b]0;x\x07/\x1b[31m";
  bool escaped = false, answered = true;
  for (const char* const operation : {"download", "stat", "ls", "delete"}) {
    const Answer answer = co_await sandbox.file(operation, name);
    answered = answered && !answer.end.empty();
    escaped = escaped || has_escapes(answer.end);
  }
  Inside told;
  told.arrived = escaped;
  told.end = "no answer";
  if (answered) told.report = {AttemptReport::Word::refused, "errors are printable"};
  // That a name may be like that.
  const Control escape_control = setting.outside.control(words("create", place.file("\x1b[2J\x1b]0;x\x07")));
  out.push_back(finding("error-escapes", {43}, "put terminal escapes into errors about files", judge(escape_control, told, Proof::report)));
}

}  // namespace sandy::verify
