#include "dataplane/transport/message/scoreboard.h"

#include <algorithm>

#include "dataplane/transport/message/requester_timer.h"

namespace paceline::transport {

namespace {

// Whether the algorithm is told of a loss on the path. A path that has failed tells nothing about
// congestion, but the receiver's grants for the packets on it are lost.
bool tells_of_loss(const EngineCore& core, const QueuePair& qp, std::uint16_t port) {
  const CongestionContext& context = core.contexts[qp.context];
  return !qp.selective->paths.failed(port) || (context.proactive && !context.on_fallback);
}

}  // namespace

// The position of the queued request that `psn` belongs to; tail() when there is none.
std::uint32_t Scoreboard::position_of(const QueuePair& qp, Psn psn) {
  const SendQueue& queue = qp.requester.queue;
  for (std::uint32_t p = queue.head(); p != queue.tail(); ++p) {
    const std::int32_t index = distance(psn, queue.at(p).first_psn);
    if (index >= 0 && index < static_cast<std::int32_t>(queue.at(p).packets)) return p;
  }
  return queue.tail();
}

void Scoreboard::begin(EngineCore& core, QueuePair& qp) {
  RequesterState& r = qp.requester;
  if (qp.selective == nullptr || r.selective || !can_send(qp.state)) return;
  if (r.position.oldest() != r.position.end() || r.position.packet() != 0) return;
  if (!r.peer_selective) return;
  r.selective = true;
  r.probe.stop();
  reset(core, qp);
}

void Scoreboard::reset(EngineCore& core, QueuePair& qp) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  s.window.start(r.position.oldest());
  s.asks.clear();
  s.probes = 0;
  s.held = 0;
  s.patience.restart();
  s.refused.reset();
  s.newest_sent = Picos{-1};
  s.newest_on.fill(Picos{-1});
  s.progress_at = core.awake();
  s.reorder_at = s.response_at = kNever;
  r.repair = false;
  r.timeout_at = kNever;
}

void Scoreboard::note_sent(EngineCore& core, QueuePair& qp, Psn psn, std::uint32_t wire_bytes,
                           std::uint32_t extent, bool request) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  s.window.send(psn, {core.now, wire_bytes, extent, qp.selective->paths.last_port(),
                      request ? sent_flag::request : std::uint8_t{0}});
  update_window(qp);
  if (r.timeout_at == kNever) {
    s.progress_at = core.awake();
    RequesterTimer::arm_selective(core, qp);
  }
}

// The window is full when as many sequence numbers are in use as are kept: the next packet waits
// for the oldest. A READ takes as many as it has responses, and asks for at least an eighth of the
// window, or for its own rest.
void Scoreboard::update_window(QueuePair& qp) {
  RequesterState& r = qp.requester;
  const std::int32_t window = qp.selective->send.window.size();
  std::int32_t needed = 1;
  if (r.ordering_constraints != 0 && r.position.request() != r.queue.tail()) {
    const SendEntry& entry = r.queue.at(r.position.request());
    if (entry.has_response) {
      needed = std::min(static_cast<std::int32_t>(entry.packets - r.position.packet()), window / 8);
    }
  }
  const bool full = distance(r.position.next(), r.position.oldest()) > window - needed;
  r.stops = static_cast<std::uint8_t>(full ? r.stops | requester_stop::window
                                           : r.stops & ~requester_stop::window);
}

// Whether there is something to repair; a queue pair that is done needs no repair. This must hold
// after every change of what is lost, asked for or done: the scheduler may ask for the length of
// the next packet at any time.
void Scoreboard::update_repair(QueuePair& qp) {
  SelectiveSend& s = qp.selective->send;
  s.asks.drop_before(qp.requester.position.oldest());
  qp.requester.repair = s.window.lost() != 0 || !s.asks.empty();
}

// For tests: counts packet by packet.
bool Scoreboard::repair_adds_up(const QueuePair& qp) {
  const RequesterState& r = qp.requester;
  if (!r.selective) return !r.repair;
  const SelectiveSend& s = qp.selective->send;
  return s.window.adds_up() && r.repair == (s.window.lost() != 0 || !s.asks.empty());
}

// The packet has arrived. Returns its bytes on the wire if this was not known.
std::uint32_t Scoreboard::mark_delivered(EngineCore& core, QueuePair& qp, Psn psn) {
  SelectiveSend& s = qp.selective->send;
  const SentPacket& sent = s.window.at(psn);
  const PacketFate was = s.window.deliver(psn);
  if (was == PacketFate::settled) return 0;
  if (was == PacketFate::flying) {
    core.take_inflight(qp, sent.wire_bytes);
    // A packet was sent twice: if its acknowledgement comes sooner than a round trip after the
    // second sending, the first copy has arrived.
    const Picos least = picos_from_nanos(s.round_trip.least_ns());
    const bool known = !sent.has(sent_flag::again) || core.now - sent.sent_at >= least;
    if (known) {
      s.newest_sent = later(s.newest_sent, sent.sent_at);
      if (qp.selective->paths.has_planes()) {
        Picos& newest = s.newest_on[qp.selective->paths.plane_of(sent.port)];
        newest = later(newest, sent.sent_at);
      }
    }
  } else {
    if (!sent.has(sent_flag::request)) core.take_backlog(qp, sent.extent);
    update_repair(qp);
  }
  return sent.wire_bytes;
}

// The peer has taken in everything before `expected`. Returns the bytes on the wire that are newly
// acknowledged.
std::uint64_t Scoreboard::acknowledge_before(EngineCore& core, QueuePair& qp, Psn expected) {
  std::uint64_t acked = 0;
  qp.selective->send.window.accept_before(qp.requester.position.oldest(), expected,
                                          [&](Psn psn) { acked += mark_delivered(core, qp, psn); });
  return acked;
}

// The packet, in flight or thought to have arrived, is to be sent again.
void Scoreboard::mark_for_retransmission(EngineCore& core, QueuePair& qp, Psn psn) {
  SentWindow& window = qp.selective->send.window;
  const SentPacket& sent = window.at(psn);
  const PacketFate was = window.lose(psn);
  if (was == PacketFate::lost) return;
  if (was == PacketFate::flying) core.take_inflight(qp, sent.wire_bytes);
  if (!sent.has(sent_flag::request)) core.add_backlog(qp, sent.extent);
  qp.requester.repair = true;
}

void Scoreboard::mark_lost(EngineCore& core, QueuePair& qp, Psn psn) {
  ++core.counters.lost_packets;
  qp.selective->paths.lost(qp.selective->send.window.at(psn).port);
  mark_for_retransmission(core, qp, psn);
}

std::uint64_t Scoreboard::lose_flying(EngineCore& core, QueuePair& qp, Psn from) {
  const SendPosition& position = qp.requester.position;
  SentWindow& window = qp.selective->send.window;
  std::uint64_t lost = 0;
  window.each_flying(from, window.within(position.oldest(), position.next()),
                     [&](Psn psn, const SentPacket& sent) {
                       if (tells_of_loss(core, qp, sent.port)) lost += sent.wire_bytes;
                       mark_lost(core, qp, psn);
                     });
  return lost;
}

// Marks packets that must have been lost. Returns their bytes on the wire, as far as the algorithm
// is told of them.
std::uint64_t Scoreboard::find_lost(EngineCore& core, QueuePair& qp) {
  SelectiveSend& s = qp.selective->send;
  const Psn oldest = qp.requester.position.oldest();
  const PathSet& paths = qp.selective->paths;
  const Picos wait = RequesterTimer::reorder_wait(s);
  const Picos round_trip = picos_from_nanos(s.round_trip.smoothed_ns());
  std::uint64_t lost = 0;
  s.reorder_at = kNever;
  const Psn end = s.window.within(oldest, s.window.highest());
  s.window.each_flying(oldest, end, [&](Psn psn, const SentPacket& sent) {
    if (sent.sent_at >= s.newest_sent) return;
    // The packet that reports the arrival may have come while the host stood still, and be read
    // next.
    const Picos from = core.spans_stop(sent.sent_at) ? core.stops.until : sent.sent_at;
    const Picos due = from + round_trip + wait;
    const Picos newest =
        paths.has_planes() ? s.newest_on[paths.plane_of(sent.port)] : s.newest_sent;
    if (sent.sent_at + wait < newest || due <= core.now) {
      if (tells_of_loss(core, qp, sent.port)) lost += sent.wire_bytes;
      mark_lost(core, qp, psn);
    } else {
      s.reorder_at = earlier(s.reorder_at, due);
    }
  });
  return lost;
}

// An XACK says that the packet came trimmed, by `port`. Returns the bytes on the wire that are now
// lost. 0: this was known, or the packet has been sent again since, by another path.
std::uint64_t Scoreboard::take_trim(EngineCore& core, QueuePair& qp, Psn psn, std::uint16_t port) {
  const SentWindow& window = qp.selective->send.window;
  if (!window.keeps(qp.requester.position, psn)) return 0;
  const SentPacket& sent = window.at(psn);
  if (!sent.has(sent_flag::in_flight) || sent.port != port) return 0;
  const std::uint64_t bytes = sent.wire_bytes;
  ++core.counters.trim_losses;
  mark_lost(core, qp, psn);
  return bytes;
}

}  // namespace paceline::transport
