#include "dataplane/service/memory/order_shuffler.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "dataplane/base/numbers/random.h"

namespace paceline::service {

namespace {

// Long enough for a polling program to run meanwhile, even if it shares its processor.
constexpr std::uint64_t kShortestMicros = 300;
constexpr std::uint64_t kMoreMicros = 1000;
// Programs look at a word at the end, or at a flag; both are whole there or not at all.
constexpr std::size_t kEndBytes = 8;
// One in so many full packets is held: most full packets are in the middle of a message.
constexpr std::uint64_t kFullHeldOneIn = 16;
constexpr std::size_t kParts = 8;

bool full_packet(std::size_t bytes) { return bytes >= 1024 && std::has_single_bit(bytes); }

// Where the last aligned word begins; a shorter piece counts as a whole.
std::size_t begin_of_end(const ProgramPiece& piece) {
  if (piece.bytes <= kEndBytes) return 0;
  const std::uint64_t last = piece.address + piece.bytes - 1;
  const std::uint64_t word = last & ~std::uint64_t{kEndBytes - 1};
  return word <= piece.address ? 0 : static_cast<std::size_t>(word - piece.address);
}

ProgramPiece part_of(const ProgramPiece& piece, std::size_t begin, std::size_t end) {
  return {piece.address + begin, piece.here + begin, end - begin};
}

}  // namespace

CopyResult OrderShuffler::tell(const ProgramMemory& program, const OrderTarget& target) {
  ++window_.sequence;
  return program.write(
      {target.window, reinterpret_cast<std::byte*>(&window_), sizeof(attach::OrderWindow)});
}

CopyResult OrderShuffler::place_shuffled(const ProgramMemory& program, const ProgramPiece& piece,
                                         std::uint64_t seed) {
  std::array<std::size_t, kParts> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random(seed);
  for (std::size_t i = kParts - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
  // Parts begin at aligned words.
  const std::size_t size = (piece.bytes / kParts + kEndBytes) & ~(kEndBytes - 1);
  for (const std::size_t part : order) {
    const std::size_t begin = std::min(part * size, piece.bytes);
    const std::size_t end = std::min(begin + size, piece.bytes);
    if (begin == end) continue;
    const CopyResult result = program.write(part_of(piece, begin, end));
    if (result != CopyResult::done) return result;
  }
  return CopyResult::done;
}

CopyResult OrderShuffler::place(const ProgramMemory& program, const ProgramPiece& piece,
                                const OrderTarget& target) {
  Random random(target.seed, window_.held + (std::uint64_t{target.qp_number} << 32U));
  const std::uint64_t shuffle = random.next();
  if (full_packet(piece.bytes) && random.below(kFullHeldOneIn) != 0) {
    return place_shuffled(program, piece, shuffle);
  }
  window_.address = piece.address;
  window_.bytes = static_cast<std::uint32_t>(piece.bytes);
  window_.qp_number = target.qp_number;
  window_.from_peer = target.from_peer ? 1 : 0;
  window_.end_first = static_cast<std::uint32_t>(random.below(2));
  ++window_.held;
  window_.held_end_first += window_.end_first;
  if (const CopyResult told = tell(program, target); told != CopyResult::done) return told;
  CopyResult result = CopyResult::done;
  if (window_.end_first != 0) {
    result = program.write(part_of(piece, begin_of_end(piece), piece.bytes));
  }
  const auto micros = static_cast<long>(kShortestMicros + random.below(kMoreMicros));
  const timespec time{0, micros * 1000};
  ::nanosleep(&time, nullptr);
  // Closed before the rest is in memory: later actions of the program are not counted.
  if (const CopyResult told = tell(program, target); told != CopyResult::done) return told;
  return result == CopyResult::done ? place_shuffled(program, piece, shuffle) : result;
}

}  // namespace paceline::service
