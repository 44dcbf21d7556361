// Figures of messages, by size: how many were begun and finished, and the distribution of their
// slowdown (completion time over that in an empty network). Cumulative, so that the figures of any
// span of time are the difference of two samples. One thread counts.
//
// A message belongs to the epoch in which it was begun. A message that finishes in another epoch,
// or was posted before its block began, is `crossed`: it is counted, but has no slowdown.
// Unfinished messages are begun - completed - failed - crossed. A comparison must include them (an
// arm that stalls would otherwise look fast).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "dataplane/base/units.h"

namespace paceline::telemetry {

// Bounds of the sizes, inclusive: up to 64 KiB, up to 1 MiB, beyond.
inline constexpr std::size_t kMessageSizes = 3;
inline constexpr std::array<std::uint64_t, 2> kMessageSizeBounds{64 * 1024, 1024 * 1024};

constexpr std::size_t message_size(std::uint64_t bytes) {
  return bytes <= kMessageSizeBounds[0] ? 0 : bytes <= kMessageSizeBounds[1] ? 1 : 2;
}

// Bucket k holds slowdowns from 2^(k/8) up to 2^((k+1)/8), 9 % apart; the last all beyond (2^12).
inline constexpr std::size_t kSlowdownBuckets = 96;
// Sums of logarithms to the base of 2 are in this part of one.
inline constexpr std::uint64_t kLogUnit = 1U << 20;

struct MessageFigures {
  std::uint64_t begun = 0;
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;   // completed in error
  std::uint64_t crossed = 0;  // begun in another epoch than finished
  std::uint64_t begun_bytes = 0;
  std::uint64_t completed_bytes = 0;
  std::uint64_t fct_ns = 0;         // sum, of those completed
  std::uint64_t log2_slowdown = 0;  // sum, in 1/kLogUnit, of those completed
  std::array<std::uint64_t, kSlowdownBuckets> slowdown{};
};
static_assert(std::is_trivially_copyable_v<MessageFigures>);
static_assert(sizeof(MessageFigures) == 8 * (8 + kSlowdownBuckets));

// Adds what was counted between two reads. False if a total went back: the samples are of different
// services, and `sum` is useless.
inline bool add_growth(MessageFigures& sum, const MessageFigures& before,
                       const MessageFigures& after) {
  using Words = std::array<std::uint64_t, sizeof(MessageFigures) / 8>;
  auto total = std::bit_cast<Words>(sum);
  const auto first = std::bit_cast<Words>(before);
  const auto last = std::bit_cast<Words>(after);
  bool forward = true;
  for (std::size_t i = 0; i < total.size(); ++i) {
    forward = forward && last[i] >= first[i];
    total[i] += last[i] - first[i];
  }
  sum = std::bit_cast<MessageFigures>(total);
  return forward;
}

inline void add(MessageFigures& into, const MessageFigures& from) {
  add_growth(into, MessageFigures{}, from);
}

using MessagesBySize = std::array<MessageFigures, kMessageSizes>;

}  // namespace paceline::telemetry
