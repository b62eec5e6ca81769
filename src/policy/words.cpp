#include "policy/words.h"

#include <span>

#include "policy/json_keys.h"
#include "policy/sizes.h"

namespace sandy::policy {

Result<std::size_t> choose(const Text& text, std::initializer_list<std::string_view> words) {
  std::string list;
  std::size_t index = 0;
  for (const std::string_view word : words) {
    if (word == text.value) return index;
    ++index;
    if (!list.empty()) list += index == words.size() ? " or " : ", ";
    list += '"' + std::string(word) + '"';
  }
  const std::string meant = nearest_word(text.value, std::span(words.begin(), words.size()));
  return fail(quoted(text.key, text.value), "must be " + list,
              meant.empty() ? "" : "did you mean \"" + meant + "\"?");
}

}  // namespace sandy::policy
