// Limits that the importers of jobs share: they bound memory and keep sums of times and sizes far
// from the ends of 64 bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline::workload {

inline constexpr std::size_t kLongestJobFile = std::size_t{1} << 28;
inline constexpr std::uint64_t kMostJobRanks = 524'288;
inline constexpr std::size_t kMostJobOps = std::size_t{1} << 24;
inline constexpr std::size_t kMostJobWaits = std::size_t{1} << 26;
inline constexpr std::uint64_t kMostJobBytes = 1'000'000'000'000'000;  // of one operation
inline constexpr std::uint64_t kMostJobNanos = 1'000'000'000'000'000;  // of one computation

}  // namespace paceline::workload
