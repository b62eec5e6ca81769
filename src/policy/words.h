// Values that are one of a few words.
#pragma once

#include <initializer_list>
#include <string_view>

#include "base/error.h"
#include "policy/draft.h"

namespace sandy::policy {

// The index of text.value in `words`; otherwise an error that lists them and suggests the nearest.
Result<std::size_t> choose(const Text& text, std::initializer_list<std::string_view> words);

}  // namespace sandy::policy
