// Selective repeat: the sender's window, packet by packet: sent, delivered, lost. Losses are found
// by the time of sending (after RACK, RFC 8985): a packet is lost when one that was sent later has
// arrived, and more than the tolerated reordering lies between them.
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"

namespace paceline::transport {

class Scoreboard {
 public:
  // For EngineView::check_conservation.
  static bool repair_adds_up(const QueuePair& qp);
  // The peer speaks XACK: use it from the next request on, if none is in progress.
  static void begin(EngineCore& core, QueuePair& qp);
  // The packet has left; `extent`: its sequence numbers, more than one for the request of a READ.
  static void note_sent(EngineCore& core, QueuePair& qp, Psn psn, std::uint32_t wire_bytes,
                        std::uint32_t extent, bool request);
  // An XACK says that the packet came trimmed by the path of `port`: it is lost. Returns its bytes
  // on the wire; 0 if this was known, or if it was sent again since by another path.
  static std::uint64_t take_trim(EngineCore& core, QueuePair& qp, Psn psn, std::uint16_t port);
  // Everything before `expected` has arrived. Returns the bytes on the wire that are newly
  // acknowledged.
  static std::uint64_t acknowledge_before(EngineCore& core, QueuePair& qp, Psn expected);
  // The packet has arrived. Returns its bytes on the wire if this was not known, else 0.
  static std::uint32_t mark_delivered(EngineCore& core, QueuePair& qp, Psn psn);
  // The packet is lost and waits to be sent again.
  static void mark_lost(EngineCore& core, QueuePair& qp, Psn psn);
  // The same for everything in flight from `from` on. Returns its bytes on the wire.
  static std::uint64_t lose_flying(EngineCore& core, QueuePair& qp, Psn from);
  // The packet is no longer in flight, as if it had not been sent.
  static void mark_for_retransmission(EngineCore& core, QueuePair& qp, Psn psn);
  // Finds what must be lost by now. Returns its bytes on the wire.
  static std::uint64_t find_lost(EngineCore& core, QueuePair& qp);
  // Sets or clears requester_stop::window.
  static void update_window(QueuePair& qp);
  // Derives from the marks whether something is to be sent again.
  static void update_repair(QueuePair& qp);
  // Nothing is in flight: puts all marks at the next sequence number.
  static void reset(EngineCore& core, QueuePair& qp);
  // The place in the send queue of the request that `psn` belongs to; its tail: there is none.
  static std::uint32_t position_of(const QueuePair& qp, Psn psn);
};

}  // namespace paceline::transport
