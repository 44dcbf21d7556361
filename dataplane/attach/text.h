// Names in messages: characters of fixed room, with a closing zero if the sender followed the
// rules.
#pragma once

#include <cstring>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace paceline::attach {

template <std::size_t N>
std::string text_of(const std::array<char, N>& chars) {
  return {chars.data(), ::strnlen(chars.data(), N)};
}

// Truncates the text if it does not fit; the last character stays zero.
template <std::size_t N>
void put_text(std::array<char, N>& to, std::string_view text) {
  std::copy_n(text.data(), std::min(text.size(), N - 1), to.data());
}

}  // namespace paceline::attach
