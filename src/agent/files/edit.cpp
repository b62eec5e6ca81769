#include "agent/files/edit.h"

#include <fcntl.h>

#include <utility>
#include <vector>

#include "agent/files/regular_file.h"
#include "agent/files/utf8.h"
#include "agent/files/write.h"

namespace sandy::files {
namespace {

std::string to_lf(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    out += text[i];
  }
  return out;
}

std::string to_crlf(std::string_view text) {
  const std::string lf = to_lf(text);
  std::string out;
  out.reserve(lf.size());
  for (const char c : lf) {
    if (c == '\n') out += '\r';
    out += c;
  }
  return out;
}

std::uint64_t count(std::string_view text, std::string_view part) {
  std::uint64_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++found;
  }
  return found;
}

// True if the text has line ends, and all of them are CRLF.
bool only_crlf(std::string_view text) {
  std::size_t at = text.find('\n');
  if (at == std::string_view::npos) return false;
  for (; at != std::string_view::npos; at = text.find('\n', at + 1)) {
    if (at == 0 || text[at - 1] != '\r') return false;
  }
  return true;
}

FileResult<std::string> put_in(std::string_view text, std::string_view old_string,
                               std::string_view new_string, std::uint64_t occurrences) {
  // No overflow: the removed bytes are part of the text, and the added ones are checked by
  // division.
  const std::size_t kept = text.size() - occurrences * old_string.size();
  if (kept > kEditCap ||
      (!new_string.empty() && occurrences > (kEditCap - kept) / new_string.size())) {
    return file_error(Code::too_large,
                      "the edited file would exceed " + std::to_string(kEditCap) + " bytes");
  }
  std::string out;
  out.reserve(kept + occurrences * new_string.size());
  while (true) {
    const std::size_t at = text.find(old_string);
    if (at == std::string_view::npos) break;
    out.append(text.substr(0, at)).append(new_string);
    text.remove_prefix(at + old_string.size());
  }
  out.append(text);
  return out;
}

}  // namespace

FileResult<Replacement> replace(std::string_view text, std::string_view old_string,
                                std::string_view new_string, bool replace_all) {
  if (old_string.empty()) return file_error(Code::empty_old_string);
  if (!is_utf8(text)) return file_error(Code::not_a_text_file);
  // Bytes that are no text could be found inside a character, and would break it.
  if (!is_utf8(old_string) || !is_utf8(new_string)) {
    return file_error(Code::not_a_text_file, "the old or the new string is not UTF-8");
  }
  if (old_string == new_string) {
    return file_error(Code::no_change, "the old and the new string are the same");
  }
  struct Form {
    std::string old_string;
    std::string new_string;
  };
  std::vector<Form> forms;
  forms.push_back({std::string(old_string), std::string(new_string)});
  const auto has_newline = [](std::string_view part) { return part.find('\n') != part.npos; };
  if (has_newline(old_string) || has_newline(new_string)) {
    forms.push_back({to_crlf(old_string), to_crlf(new_string)});
    forms.push_back({to_lf(old_string), to_lf(new_string)});
    // Also "\nb" and "b" are found in such a text as sent, and their replacement would bring in a
    // bare LF.
    if (only_crlf(text)) std::swap(forms[0], forms[1]);
  }
  std::uint64_t occurrences = 0;
  std::size_t chosen = 0;
  for (; chosen < forms.size(); ++chosen) {
    occurrences = count(text, forms[chosen].old_string);
    if (occurrences > 0) break;
  }
  if (occurrences == 0) return file_error(Code::string_not_found);
  if (occurrences > 1 && !replace_all) {
    auto error = file_error(Code::multiple_occurrences);
    error.error().count = occurrences;
    return error;
  }
  auto edited = put_in(text, forms[chosen].old_string, forms[chosen].new_string, occurrences);
  if (!edited) return std::unexpected(edited.error());
  return Replacement{std::move(*edited), occurrences};
}

FileResult<std::uint64_t> edit(const std::string& path, std::string_view old_string,
                               std::string_view new_string, bool replace_all,
                               std::stop_token stop) {
  if (old_string.empty()) return file_error(Code::empty_old_string);
  auto file = open_regular(AT_FDCWD, path);
  if (!file) {
    if (file.error().code == Code::is_directory) file.error().code = Code::not_a_file;
    return std::unexpected(file.error());
  }
  std::string text;
  // Read in steps, so that a size that a sparse file claims, or hides, allocates nothing.
  while (true) {
    if (stop.stop_requested()) return file_error(Code::cancelled);
    const std::size_t before = text.size();
    const auto claimed = static_cast<std::uint64_t>(file->info.st_size);
    if (claimed > kEditCap || before > kEditCap) {
      return file_error(Code::too_large, "the file exceeds " + std::to_string(kEditCap) + " bytes");
    }
    text.resize(before + (claimed > before ? claimed - before + 1 : 65'536));
    auto got = read_full(file->fd.get(), std::span(text).subspan(before));
    if (!got) return std::unexpected(got.error());
    const bool end = *got < text.size() - before;
    text.resize(before + *got);
    if (end) break;
  }
  auto edited = replace(text, old_string, new_string, replace_all);
  if (!edited) return std::unexpected(edited.error());
  WriteOptions options;
  options.parents = false;
  auto writer = Writer::open(path, options);
  if (!writer) return std::unexpected(writer.error());
  if (auto ok = writer->append(edited->text); !ok) return std::unexpected(ok.error());
  if (auto bytes = writer->commit(stop); !bytes) return std::unexpected(bytes.error());
  return edited->occurrences;
}

}  // namespace sandy::files
