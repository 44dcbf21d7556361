// Where the bytes of messages lie: pieces of memory within slots that a stream takes and gives back
// in order, the same slot in both hosts' memories.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "dataplane/base/numbers/random.h"

namespace paceline::soak {

struct Piece {
  std::uint64_t offset = 0;  // in the host's memory
  std::uint64_t length = 0;
};

struct Pieces {
  static constexpr unsigned kMost = 4;
  std::array<Piece, kMost> list{};
  unsigned count = 0;

  std::span<const Piece> all() const { return std::span(list).first(count); }
  void shift(std::uint64_t by) {
    for (unsigned i = 0; i < count; ++i) list[i].offset += by;
  }
  std::uint64_t end() const {
    std::uint64_t end = 0;
    for (const Piece& p : all()) end = std::max(end, p.offset + p.length);
    return end;
  }
};

// `length` bytes in up to `most` pieces from 0 on, with gaps between them and before the first.
inline Pieces lay_out(Random& random, std::uint64_t length, unsigned most) {
  Pieces pieces;
  pieces.count = 1 + static_cast<unsigned>(random.below(most));
  std::uint64_t at = random.below(8);
  std::uint64_t left = length;
  for (unsigned i = 0; i < pieces.count; ++i) {
    const std::uint64_t bytes = i + 1 == pieces.count ? left : random.below(left + 1);
    pieces.list[i] = {at, bytes};
    at += bytes + 1 + random.below(7);
    left -= bytes;
  }
  // A list need not be in the order of addresses.
  if (pieces.count > 1 && random.below(2) == 0) {
    std::reverse(pieces.list.begin(), pieces.list.begin() + pieces.count);
  }
  return pieces;
}

// A ring of bytes: slots are taken at the tail and given back at the head.
class SlotRing {
 public:
  SlotRing(std::uint64_t base, std::uint64_t bytes) : base_(base), bytes_(bytes) {}

  // Offset of a slot, kNone when there is no room. `oldest`: offset of the oldest slot in use.
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t take(std::uint64_t bytes, bool any_in_use, std::uint64_t oldest) {
    if (!any_in_use) tail_ = 0;
    const std::uint64_t head = any_in_use ? oldest - base_ : 0;
    std::uint64_t at = tail_;
    if (any_in_use && at <= head) {
      if (at + bytes > head) return kNone;
    } else if (at + bytes > bytes_) {
      if (bytes > bytes_ || (any_in_use && bytes >= head)) return kNone;
      at = 0;
    }
    tail_ = at + bytes;
    return base_ + at;
  }

 private:
  std::uint64_t base_;
  std::uint64_t bytes_;
  std::uint64_t tail_ = 0;
};

}  // namespace paceline::soak
