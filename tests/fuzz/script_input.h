// The input of fuzz_engine, read as a script, and the corner of the pair of engines that one of its
// commands is about. Values come from lists of what lies near limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/fuzz/engine_pair.h"

namespace paceline::fuzz {

// What the input still holds; zeros behind its end.
class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool empty() const { return at_ >= bytes_.size(); }
  std::uint8_t byte() { return empty() ? std::uint8_t{0} : bytes_[at_++]; }
  std::uint32_t word() {
    std::uint32_t w = 0;
    for (int i = 0; i < 4; ++i) w = w << 8 | byte();
    return w;
  }
  template <class T, std::size_t n>
  T pick(const T (&list)[n]) {
    return list[byte() % n];
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

// One end of the pair, one of its queue pairs, and what is picked for a command there.
struct Corner {
  static constexpr std::uint32_t kMtu = EnginePair::kMtu;

  Corner(Input& input, EnginePair& pair) : in(input), pair(pair) {}

  End& end() { return *pair.ends[side]; }
  End& other() { return *pair.ends[1 - side]; }
  std::uint32_t qp() { return end().qp[slot]; }

  std::uint64_t length() {
    const std::uint64_t list[] = {0,        1,    8,        255,          256,         257,
                                  kMtu - 1, kMtu, kMtu + 1, 3 * kMtu + 5, End::kBytes, in.byte()};
    return in.pick(list);
  }
  std::uint64_t address() {
    const std::uint64_t list[] = {0, 8, 3, End::kBytes - 8, End::kBytes / 2, ~std::uint64_t{0} - 4};
    return End::kBase + in.pick(list);
  }
  std::uint32_t key(const End& of) {
    const std::uint32_t list[] = {of.key, of.key, of.moody_key, of.key + 1, 0};
    return in.pick(list);
  }

  Input& in;
  EnginePair& pair;
  unsigned side = 0;
  std::size_t slot = 0;
};

}  // namespace paceline::fuzz
