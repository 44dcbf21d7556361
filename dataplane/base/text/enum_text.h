// Enums whose values have a text in files and answers: one table per enum, readable either way.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace paceline {

// In the order of the enum, whose values count from 0.
template <std::size_t N>
using EnumTexts = std::array<std::string_view, N>;

template <class E, std::size_t N>
constexpr std::string_view enum_text(const EnumTexts<N>& texts, E value) {
  const auto at = static_cast<std::size_t>(value);
  return at < N ? texts[at] : "?";
}

template <class E, std::size_t N>
constexpr std::optional<E> enum_value(const EnumTexts<N>& texts, std::string_view text) {
  for (std::size_t i = 0; i < N; ++i) {
    if (texts[i] == text) return static_cast<E>(i);
  }
  return std::nullopt;
}

}  // namespace paceline
