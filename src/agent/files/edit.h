// Replacing an exact string in a text file.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>

#include "agent/files/result.h"

namespace sandy::files {

inline constexpr std::size_t kEditCap = 64UL * 1024 * 1024;  // bytes of the file, before and after

// What an edit makes of `text`.
struct Replacement {
  std::string text;
  std::uint64_t occurrences = 0;  // of the old string; all of them were replaced, or the only one
};

// Looks for `old_string` as it is, then with CRLF line ends, then with LF line ends; the first form
// that occurs is replaced by `new_string` in the same form, so that a file keeps its line ends
// although a model sees and sends LF. Where all line ends of the text are CRLF, that form comes
// first. Occurrences don't overlap and are counted from the start. Pure. Errors: empty_old_string,
// not_a_text_file (text or a string is not UTF-8), no_change, string_not_found,
// multiple_occurrences, too_large.
FileResult<Replacement> replace(std::string_view text, std::string_view old_string,
                                std::string_view new_string, bool replace_all);

// Applies `replace` to the file at `path` and writes it as Writer does; returns the occurrences. On
// any error the file is as it was. Errors: also not_a_file (anything but a regular file),
// too_large.
FileResult<std::uint64_t> edit(const std::string& path, std::string_view old_string,
                               std::string_view new_string, bool replace_all,
                               std::stop_token stop = {});

}  // namespace sandy::files
