// A plug-in's states that the host keeps: of a port, of each sender to it, of each context. They
// start as zeroes, never move, and end in a word that a plug-in has no reason to write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace paceline::cc::plugin {

inline constexpr std::uint64_t kFence = 0x3D8E'71C2'A94B'065F;

inline void put_fence(std::byte* at) { std::memcpy(at, &kFence, sizeof kFence); }

inline bool has_fence(const std::byte* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word == kFence;
}

class FencedStates {
 public:
  // States of this size, aligned to 16; there are none at first.
  explicit FencedStates(std::size_t bytes)
      : bytes_(bytes), stride_((bytes + sizeof kFence + sizeof(Unit) - 1) / sizeof(Unit)) {}

  // Makes room for this number, and begins its state.
  void begin(std::uint32_t number) {
    while (blocks_.size() * kPerBlock <= number) {
      blocks_.push_back(std::make_unique<Unit[]>(kPerBlock * stride_));
    }
    std::byte* const state = at(number);
    std::memset(state, 0, stride_ * sizeof(Unit));
    put_fence(state + bytes_);
  }
  // Units lie side by side: overlong writes into one reach the next.
  std::byte* at(std::uint32_t number) const {
    return reinterpret_cast<std::byte*>(&blocks_[number / kPerBlock][number % kPerBlock * stride_]);
  }
  bool intact(std::uint32_t number) const { return has_fence(at(number) + bytes_); }

 private:
  struct alignas(16) Unit {
    std::byte bytes[16];
  };
  static constexpr std::size_t kPerBlock = 64;

  std::size_t bytes_;
  std::size_t stride_;  // units of a state, fence included
  std::vector<std::unique_ptr<Unit[]>> blocks_;
};

}  // namespace paceline::cc::plugin
