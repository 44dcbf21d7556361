// Selective repeat: the sender's window, packet by packet. Sent, delivered, lost; what must have
// been lost is found by time of sending (after RACK, RFC 8985: a packet is lost when one that was
// sent later has arrived, and more than the tolerated reordering lies between them).
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"

namespace paceline::transport {

class Scoreboard {
 public:
  // For EngineView::check_conservation.
  static bool repair_adds_up(const QueuePair& qp);
  // The peer speaks XACK: from the next request on, if none is under way.
  static void begin(EngineCore& core, QueuePair& qp);
  // The packet has left: `extent` sequence numbers, more than one for the request of a READ.
  static void note_sent(EngineCore& core, QueuePair& qp, Psn psn, std::uint32_t wire_bytes,
                        std::uint32_t extent, bool request);
  // An XACK says that the packet came trimmed by the path of `port`: it is lost. Returns its bytes
  // on the wire, 0 when that is known or it was sent again since, by another path.
  static std::uint64_t take_trim(EngineCore& core, QueuePair& qp, Psn psn, std::uint16_t port);
  // Everything before `expected` has arrived. Returns the bytes on the wire that are news.
  static std::uint64_t acknowledge_before(EngineCore& core, QueuePair& qp, Psn expected);
  // The packet has arrived. Returns its bytes on the wire when that is news, else 0.
  static std::uint32_t mark_delivered(EngineCore& core, QueuePair& qp, Psn psn);
  // The packet is lost and waits to be sent again.
  static void mark_lost(EngineCore& core, QueuePair& qp, Psn psn);
  // So is all that is in flight from `from` on. Returns its bytes on the wire.
  static std::uint64_t lose_flying(EngineCore& core, QueuePair& qp, Psn from);
  // The packet is not under way any more, as if it had not been sent.
  static void mark_for_retransmission(EngineCore& core, QueuePair& qp, Psn psn);
  // Finds what must be lost by now. Returns its bytes on the wire.
  static std::uint64_t find_lost(EngineCore& core, QueuePair& qp);
  // Sets or clears requester_stop::window.
  static void update_window(QueuePair& qp);
  // Whether something is to be sent again follows from the marks.
  static void update_repair(QueuePair& qp);
  // Nothing is under way: all marks at the next sequence number.
  static void reset(EngineCore& core, QueuePair& qp);
  // Place in the send queue of the request that `psn` belongs to; its tail: none.
  static std::uint32_t position_of(const QueuePair& qp, Psn psn);
};

}  // namespace paceline::transport
