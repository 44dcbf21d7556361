// A streaming 64-bit hash of content: equal results have equal hashes. It goes into results files,
// so its value is fixed for good: FNV-1a (Fowler, Noll and Vo; RFC 9923), which anyone can
// recompute with a few lines. It is not meant for hash tables and does not protect against an
// adversary.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace paceline {

class ContentHash {
 public:
  constexpr ContentHash& bytes(std::span<const std::byte> data) {
    for (const std::byte b : data) byte(std::to_integer<std::uint8_t>(b));
    return *this;
  }

  // An integer as 8 bytes, least significant first, whatever its type and the machine's byte order;
  // signed values are extended. So an int 5 and a uint64 5 hash alike.
  template <std::integral T>
  constexpr ContentHash& number(T value) {
    auto rest = static_cast<std::uint64_t>(value);
    for (int i = 0; i < 8; ++i, rest >>= 8) byte(static_cast<std::uint8_t>(rest & 0xFF));
    return *this;
  }

  // The bits of a double; -0 counts as 0 and every NaN as the same one.
  constexpr ContentHash& number(double value) {
    if (value != value) return number(std::uint64_t{0x7FF8'0000'0000'0000});
    return number(std::bit_cast<std::uint64_t>(value == 0.0 ? 0.0 : value));
  }

  // The characters alone: text("a").text("b") equals text("ab"). For a field among others use
  // field.
  constexpr ContentHash& text(std::string_view characters) {
    for (const char c : characters) byte(static_cast<std::uint8_t>(c));
    return *this;
  }

  // Text with its length before it, so that the border between two fields counts.
  constexpr ContentHash& field(std::string_view characters) {
    return number(characters.size()).text(characters);
  }

  constexpr std::uint64_t value() const { return state_; }

 private:
  constexpr void byte(std::uint8_t b) { state_ = (state_ ^ b) * 0x100'0000'01B3U; }

  std::uint64_t state_ = 0xCBF2'9CE4'8422'2325U;
};

}  // namespace paceline
