// In which order a rank issues operations that wait for one another.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace paceline::workload {

using OpPair = std::pair<std::uint32_t, std::uint32_t>;  // (an op, an op that must be before it)

// Sorts, and drops repetitions.
void sort_once(std::vector<OpPair>& pairs);

// Orders the ops 0 .. count - 1 so that each comes behind all of its dependencies, else as
// numbered. Ops in a circle, and those that wait for them, are left out. `waits` is sorted.
std::vector<std::uint32_t> issue_order(std::uint32_t count, std::span<const OpPair> waits);

// Ops of one circle among those that `order` leaves out, each waiting for the next and the last
// for the first; the op with the lowest number is the first. Empty: `order` has all of them.
std::vector<std::uint32_t> find_circle(std::uint32_t count, std::span<const OpPair> waits,
                                       std::span<const std::uint32_t> order);

}  // namespace paceline::workload
