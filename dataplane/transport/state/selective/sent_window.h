// Selective repeat's requester: the fate of each sequence number of its window, in a ring by packet
// sequence number. A packet that was sent is in flight, lost (it waits to be sent again), or
// delivered. A sequence number of a READ or an atomic is delivered when its answer is here; until
// then the answer may be late.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/base/protocol/psn.h"
#include "dataplane/base/units.h"
#include "dataplane/transport/state/send_position.h"

namespace paceline::transport {

namespace sent_flag {
inline constexpr std::uint8_t in_flight = 1U << 0;
inline constexpr std::uint8_t lost = 1U << 1;       // to be sent again
inline constexpr std::uint8_t delivered = 1U << 2;  // acknowledged; of a READ: the response is here
inline constexpr std::uint8_t request = 1U << 3;    // a READ or an atomic
inline constexpr std::uint8_t again = 1U << 4;      // sent, or asked for, more than once
// For answers to READs and atomics:
inline constexpr std::uint8_t ends = 1U << 5;   // the last sequence number of its request
inline constexpr std::uint8_t late = 1U << 6;   // has not come, though a later answer has
inline constexpr std::uint8_t asked = 1U << 7;  // asked for once more
}  // namespace sent_flag

// For an answer that has not come, `sent_at` is when it was asked for, or when it turned out late.
struct SentPacket {
  Picos sent_at{0};
  std::uint32_t wire_bytes = 0;
  std::uint32_t extent = 0;  // payload bytes; of a request: sequence numbers that it takes
  std::uint16_t port = 0;    // the path it took
  std::uint8_t flags = 0;

  bool has(std::uint8_t any_of) const { return (flags & any_of) != 0; }
  void set(std::uint8_t which) { flags = static_cast<std::uint8_t>(flags | which); }
  void clear(std::uint8_t which) { flags = static_cast<std::uint8_t>(flags & ~which); }
};

// The state of a packet until now. settled: neither in flight nor to be sent again.
enum class PacketFate : std::uint8_t { settled, flying, lost };

class SentWindow {
 public:
  // `packets` is a power of two.
  explicit SentWindow(std::uint32_t packets) : slots_(packets) {}

  std::int32_t size() const { return static_cast<std::int32_t>(slots_.size()); }
  const SentPacket& at(Psn psn) const { return slots_[psn.value() & (slots_.size() - 1)]; }
  // `end`, or the end of the window that begins with `oldest`, if that comes first.
  Psn within(Psn oldest, Psn end) const {
    return distance(end, oldest) > size() ? oldest + static_cast<std::uint32_t>(size()) : end;
  }
  // Sent, not acknowledged in order, and within the window.
  bool keeps(const SendPosition& position, Psn psn) const {
    return !before(psn, position.oldest()) && before(psn, position.next()) &&
           distance(psn, position.oldest()) < size();
  }
  Psn peer_expected() const { return peer_expected_; }  // the peer has everything before it
  Psn highest() const { return highest_; }  // one past the highest known to have arrived
  std::uint32_t lost() const { return lost_; }
  // Requires lost() != 0. Does not look again at what lies before.
  Psn oldest_lost() {
    while (!at(lost_from_).has(sent_flag::lost)) ++lost_from_;
    return lost_from_;
  }
  Psn answers_to() const { return answers_to_; }      // see expect_answers()
  std::uint32_t missing() const { return missing_; }  // answers that are late
  // One past the last sequence number of the sent request that `psn` belongs to.
  Psn end_of_request(Psn psn) const {
    while (!at(psn).has(sent_flag::ends)) ++psn;
    return psn + 1;
  }

  // Nothing is in flight; the next packet is `next`.
  void start(Psn next);
  // `packet` leaves as `psn`, for the first time or again. Only its flag `request` is used.
  void send(Psn psn, const SentPacket& packet);
  // The packet has arrived. A request was accepted; its answer is still to come.
  PacketFate deliver(Psn psn) {
    if (before(highest_, psn + 1)) highest_ = psn + 1;
    SentPacket& slot = slot_of(psn);
    const PacketFate was = fate_of(slot);
    if (was == PacketFate::settled) return was;
    if (was == PacketFate::lost) --lost_;
    slot.clear(sent_flag::in_flight | sent_flag::lost);
    if (!slot.has(sent_flag::request)) arrived(slot);
    return was;
  }
  // The packet is to be sent again, whatever its state was.
  PacketFate lose(Psn psn) {
    SentPacket& slot = slot_of(psn);
    const PacketFate was = fate_of(slot);
    if (was == PacketFate::lost) return was;
    slot.clear(sent_flag::in_flight | sent_flag::delivered);
    slot.set(sent_flag::lost | sent_flag::again);
    if (lost_++ == 0 || before(psn, lost_from_)) lost_from_ = psn;
    return was;
  }
  // The peer has everything before `expected`. Calls each(psn), which calls deliver(), for every
  // packet for which this is new.
  template <class Each>
  void accept_before(Psn oldest, Psn expected, Each&& each) {
    const Psn end = within(oldest, expected);
    for (Psn psn = peer_expected_; before(psn, end);) {
      each(psn);
      const SentPacket& sent = at(psn);
      psn = psn + (sent.has(sent_flag::request) ? sent.extent : 1);
    }
    if (before(peer_expected_, expected)) peer_expected_ = expected;
    if (before(highest_, expected)) highest_ = expected;
  }
  // Calls each(psn, packet), which may call lose(), for the packets of [from, end) that are in
  // flight; `end` lies within the window.
  template <class Each>
  void each_flying(Psn from, Psn end, Each&& each) {
    while (before(flying_from_, end) && !at(flying_from_).has(sent_flag::in_flight)) ++flying_from_;
    for (Psn psn = before(flying_from_, from) ? from : flying_from_; before(psn, end); ++psn) {
      if (at(psn).has(sent_flag::in_flight)) each(psn, at(psn));
    }
  }
  // Packets that are done leave the window, from the oldest on, and the position moves with them.
  // Returns how many requests for answers ended. A delivered packet that the peer may still put off
  // (RNR) stays.
  std::uint8_t retire(SendPosition& position);

  // The answer `psn` is here; its request has been accepted.
  void answer(Psn psn) { arrived(slot_of(psn)); }
  // Answers before `end` should be here: those that are missing are late from now on. True: some of
  // them were not late before.
  bool expect_answers(Psn end, Picos now);
  // The answer is to be asked for once more; requests for [first, first + count) have left.
  void ask(Psn psn, Picos now) {
    SentPacket& slot = slot_of(psn);
    if (slot.has(sent_flag::asked)) slot.set(sent_flag::again);
    slot.set(sent_flag::asked);
    slot.sent_at = now;
  }
  void asked(Psn first, std::uint32_t count, Picos now) {
    for (std::uint32_t i = 0; i < count; ++i) slot_of(first + i).sent_at = now;
  }

  // For tests: whether the counts agree with the slots.
  bool adds_up() const;

 private:
  SentPacket& slot_of(Psn psn) { return slots_[psn.value() & (slots_.size() - 1)]; }
  static PacketFate fate_of(const SentPacket& slot) {
    if (slot.has(sent_flag::in_flight)) return PacketFate::flying;
    return slot.has(sent_flag::lost) ? PacketFate::lost : PacketFate::settled;
  }
  void arrived(SentPacket& slot) {
    if (slot.has(sent_flag::late)) --missing_;
    slot.clear(sent_flag::late);
    slot.set(sent_flag::delivered);
  }

  std::vector<SentPacket> slots_;
  Psn peer_expected_;
  Psn highest_;
  Psn lost_from_;              // nothing before it waits to be sent again
  Psn flying_from_;            // nothing before it is in flight
  Psn answers_to_;             // no answer from here on is late
  std::uint32_t lost_ = 0;     // slots that are lost
  std::uint32_t missing_ = 0;  // slots that are late
};

}  // namespace paceline::transport
