// What the soak writes and expects to read. A message's bytes follow from its key alone, so whoever
// checks needs no copy; memory that belongs to no message holds one value everywhere, so anything
// that writes where it should not, or again when it should not, leaves a trace.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace paceline::soak {

inline constexpr std::byte kPoison{0xA7};

// Bytes [8 i, 8 i + 8) of the pattern of `key`.
constexpr std::uint64_t pattern_word(std::uint64_t key, std::uint64_t i) {
  std::uint64_t x = (key + i) * 0x9E37'79B9'7F4A'7C15U;
  x ^= x >> 29;
  return x * 0xBF58'476D'1CE4'E5B9U;
}

inline std::byte pattern_byte(std::uint64_t key, std::uint64_t at) {
  return static_cast<std::byte>(pattern_word(key, at / 8) >> (at % 8 * 8));
}

// Writes the pattern from its byte `from` on.
inline void fill_pattern(std::span<std::byte> memory, std::uint64_t key, std::uint64_t from) {
  std::size_t i = 0;
  for (; i < memory.size() && (from + i) % 8 != 0; ++i) memory[i] = pattern_byte(key, from + i);
  for (; i + 8 <= memory.size(); i += 8) {
    const std::uint64_t word = pattern_word(key, (from + i) / 8);
    std::memcpy(memory.data() + i, &word, 8);
  }
  for (; i < memory.size(); ++i) memory[i] = pattern_byte(key, from + i);
}

// Place of the first byte that is not the pattern's, memory.size() when all are.
inline std::size_t pattern_mismatch(std::span<const std::byte> memory, std::uint64_t key,
                                    std::uint64_t from) {
  std::size_t i = 0;
  for (; i < memory.size() && (from + i) % 8 != 0; ++i) {
    if (memory[i] != pattern_byte(key, from + i)) return i;
  }
  for (; i + 8 <= memory.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, memory.data() + i, 8);
    if (word != pattern_word(key, (from + i) / 8)) break;
  }
  for (; i < memory.size(); ++i) {
    if (memory[i] != pattern_byte(key, from + i)) return i;
  }
  return i;
}

inline void poison(std::span<std::byte> memory) {
  if (!memory.empty()) std::memset(memory.data(), static_cast<int>(kPoison), memory.size());
}

// Place of the first byte that is not poison, memory.size() when all are.
inline std::size_t poison_mismatch(std::span<const std::byte> memory) {
  // Equal to itself one byte further on, and the first byte is right: then all are.
  if (memory.empty() || (memory[0] == kPoison &&
                         std::memcmp(memory.data(), memory.data() + 1, memory.size() - 1) == 0)) {
    return memory.size();
  }
  const auto wrong =
      std::find_if(memory.begin(), memory.end(), [](std::byte byte) { return byte != kPoison; });
  return static_cast<std::size_t>(wrong - memory.begin());
}

}  // namespace paceline::soak
