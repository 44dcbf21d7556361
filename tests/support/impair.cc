#include "tests/support/impair.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "dataplane/wire/headers/headers.h"
#include "dataplane/wire/packet/patch.h"

namespace paceline {

namespace {

constexpr std::size_t kBurst = 32;
constexpr std::size_t kExpectedHeld = 64;

}  // namespace

ImpairedPort::ImpairedPort(Port& behind, const Impairments& impairments, Random random)
    : behind_(behind), random_(random) {
  set(impairments);
  held_.reserve(kExpectedHeld);
}

void ImpairedPort::set(const Impairments& impairments) {
  for (const double p : {impairments.drop, impairments.corrupt, impairments.duplicate,
                         impairments.reorder, impairments.mark}) {
    if (!(p >= 0 && p <= 1)) throw std::invalid_argument("impairment: not a probability");
  }
  if (impairments.reorder > 0 && impairments.max_hold == 0) {
    throw std::invalid_argument("impairment: reordering needs max_hold >= 1");
  }
  impairments_ = impairments;
}

ImpairmentVerdict ImpairedPort::judge(const Packet&) {
  // Always the same number of draws, so that one probability does not move the others' pattern.
  ImpairmentVerdict verdict;
  verdict.drop = random_.uniform() < impairments_.drop;
  verdict.corrupt = random_.uniform() < impairments_.corrupt;
  verdict.duplicate = random_.uniform() < impairments_.duplicate;
  const bool hold = random_.uniform() < impairments_.reorder;
  const double length = random_.uniform();
  if (hold) verdict.hold = 1 + static_cast<std::uint32_t>(length * impairments_.max_hold);
  verdict.mark = random_.uniform() < impairments_.mark;
  return verdict;
}

void ImpairedPort::append(Packet* packet) {
  packet->next = nullptr;
  if (ready_tail_ == nullptr) {
    ready_head_ = packet;
  } else {
    ready_tail_->next = packet;
  }
  ready_tail_ = packet;
}

// Flips one bit of what the ICRC or the IP checksum protects. Where nobody computes an ICRC, or no
// bytes exist, a flag says so.
void ImpairedPort::damage(Packet& packet) {
  ++counters_.corrupted;
  if (info().computes_icrc || packet.payload_kind == PayloadKind::elided) {
    packet.flags |= packet_flag::corrupt;
    return;
  }
  const std::size_t headers = packet.header_bytes - wire::kEthernetBytes;
  const std::size_t payload = packet.payload_kind == PayloadKind::owned ? packet.payload_bytes : 0;
  const std::uint64_t bit = random_.below((headers + payload + 4) * 8);
  const std::uint64_t byte = bit / 8;
  const auto flip = static_cast<std::byte>(1U << (bit % 8));
  if (byte < headers) {
    packet.header_view()[wire::kEthernetBytes + byte] ^= flip;  // it may go on in a tail
  } else if (byte < headers + payload) {
    packet.payload[byte - headers] ^= flip;
  } else {
    packet.icrc ^= 1U << (bit % 32);
  }
}

void ImpairedPort::handle(Packet* packet) {
  ++arrivals_;
  const ImpairmentVerdict verdict = judge(*packet);
  if (verdict.drop) {
    ++counters_.dropped;
    packets().free(packet);
  } else {
    if (verdict.mark && wire::mark_ce(packet->header_view())) {
      packet->ecn = Ecn::ce;
      ++counters_.marked;
    }
    Packet* copy = nullptr;
    if (verdict.duplicate) copy = packets().copy_of(*packet);
    if (copy != nullptr) {
      copy->flags |= packet_flag::duplicate;
      ++counters_.duplicated;
    }
    if (verdict.corrupt) damage(*packet);
    if (verdict.hold != 0) {
      ++counters_.reordered;
      held_.push_back({packet, arrivals_ + verdict.hold});
    } else {
      append(packet);
    }
    if (copy != nullptr) append(copy);
  }
  // Held packets whose time has come follow the packet that released them.
  std::size_t kept = 0;
  for (const Held& held : held_) {
    if (held.release_at <= arrivals_) {
      append(held.packet);
    } else {
      held_[kept++] = held;
    }
  }
  held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(kept), held_.end());
}

std::size_t ImpairedPort::rx(std::span<Packet*> burst) {
  std::size_t filled = 0;
  while (filled < burst.size()) {
    if (ready_head_ == nullptr) {
      std::array<Packet*, kBurst> arrived;
      const std::size_t wanted = std::min(arrived.size(), burst.size() - filled);
      const std::size_t n = behind_.rx({arrived.data(), wanted});
      if (n == 0) break;
      for (std::size_t i = 0; i < n; ++i) handle(arrived[i]);
      continue;
    }
    Packet* packet = ready_head_;
    ready_head_ = packet->next;
    if (ready_head_ == nullptr) ready_tail_ = nullptr;
    packet->next = nullptr;
    burst[filled++] = packet;
    ++counters_.passed;
  }
  return filled;
}

void ImpairedPort::take_back() {
  for (const Held& held : held_) packets().free(held.packet);
  held_.clear();
  while (Packet* packet = ready_head_) {
    ready_head_ = packet->next;
    packets().free(packet);
  }
  ready_tail_ = nullptr;
}

}  // namespace paceline
