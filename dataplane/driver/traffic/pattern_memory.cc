#include "dataplane/driver/traffic/pattern_memory.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "dataplane/base/numbers/random.h"
#include "dataplane/wire/bytes/endian.h"

namespace paceline {

namespace {

constexpr std::size_t kWord = 8;

std::array<std::byte, kWord> bytes_of(std::uint64_t word) {
  std::array<std::byte, kWord> bytes;
  wire::store_be64(bytes.data(), word);  // the same on every machine
  return bytes;
}

// Calls use(at, bytes) for the pattern of [offset, offset + length), word by word; stops when it
// returns false.
template <class WordAt, class Use>
bool walk(std::uint64_t offset, std::size_t length, WordAt&& word_at, Use&& use) {
  for (std::size_t at = 0; at < length;) {
    const std::uint64_t address = offset + at;
    const auto bytes = bytes_of(word_at(address / kWord));
    const std::size_t skip = address % kWord;
    const std::size_t n = std::min(kWord - skip, length - at);
    if (!use(at, std::span(bytes).subspan(skip, n))) return false;
    at += n;
  }
  return true;
}

}  // namespace

std::uint64_t PatternMemory::word_at(std::uint64_t index) const {
  return mix64(seed_ ^ mix64(index));
}

transport::MemoryResult PatternMemory::read(const transport::MemoryCaller&, std::uint64_t offset,
                                            std::span<std::byte> out) {
  walk(
      offset, out.size(), [this](std::uint64_t index) { return word_at(index); },
      [&](std::size_t at, std::span<const std::byte> bytes) {
        std::memcpy(out.data() + at, bytes.data(), bytes.size());
        return true;
      });
  return transport::MemoryResult::done;
}

transport::MemoryResult PatternMemory::write(const transport::MemoryCaller&, std::uint64_t offset,
                                             std::span<const std::byte> in) {
  const bool same = walk(
      offset, in.size(), [this](std::uint64_t index) { return word_at(index); },
      [&](std::size_t at, std::span<const std::byte> bytes) {
        return std::memcmp(in.data() + at, bytes.data(), bytes.size()) == 0;
      });
  return same ? transport::MemoryResult::done : transport::MemoryResult::fault;
}

}  // namespace paceline
