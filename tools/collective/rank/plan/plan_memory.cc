#include "tools/collective/rank/plan/plan_memory.h"

#include <algorithm>
#include <cstring>

#include "dataplane/base/numbers/random.h"

namespace paceline::rank {

namespace {

constexpr std::uint64_t kWordBytes = 8;
constexpr std::uint64_t kPlaces = 1 << 17;  // where messages can begin, a word each

// Bytes of the pattern that messages carry; in a plan without data, of memory that is only sent.
std::uint64_t pattern_bytes(const PlanPart& part) {
  std::uint64_t longest = 0;
  for (const PlanSend& s : part.sends) {
    if (!s.computes) longest = std::max(longest, s.bytes);
  }
  if (!part.data) return longest;
  for (const PlanArrival& a : part.arrivals) longest = std::max(longest, a.bytes);
  return longest + kPlaces * kWordBytes;
}

std::uint64_t place_of(std::uint32_t message) { return mix64(message) % kPlaces * kWordBytes; }

}  // namespace

std::uint64_t PlanMemory::bytes_of(const PlanPart& part) {
  return part.receive_bytes + pattern_bytes(part);
}

PlanMemory::PlanMemory(const PlanPart& part, std::byte* memory) : part_(part), memory_(memory) {
  if (!part.data) return;
  const std::uint64_t bytes = pattern_bytes(part);
  for (std::uint64_t at = 0; at < bytes; at += kWordBytes) {
    const std::uint64_t word = mix64(at);
    std::memcpy(memory_ + part.receive_bytes + at, &word, std::min(kWordBytes, bytes - at));
  }
}

std::uint64_t PlanMemory::source(std::uint32_t message) const {
  return part_.receive_bytes + (part_.data ? place_of(message) : 0);
}

WrongBytes PlanMemory::check(const PlanArrival& arrival) const {
  WrongBytes wrong;
  const std::byte* const got = memory_ + arrival.at;
  const std::byte* const expected = memory_ + source(arrival.id);
  if (!part_.data || std::memcmp(got, expected, arrival.bytes) == 0) return wrong;
  for (std::uint64_t i = 0; i < arrival.bytes; ++i) {
    if (got[i] == expected[i]) continue;
    if (wrong.count++ == 0) {
      wrong.first = i;
      wrong.expected = std::to_integer<std::uint8_t>(expected[i]);
      wrong.got = std::to_integer<std::uint8_t>(got[i]);
    }
  }
  return wrong;
}

}  // namespace paceline::rank
