#include "dataplane/fabric/forwarding/conservation.h"

#include <array>
#include <vector>

namespace paceline::fabric {

namespace {

// For every link that is up: bytes sent have arrived or are on the wire; bytes that have arrived
// are held, or their credits have been returned or soon will be; no end sends beyond its credits.
void check_credits(const FabricState& state, std::string& wrong) {
  const auto expect = [&wrong](const Link& link, std::uint8_t c, const char* what, bool holds,
                               std::uint64_t left, std::uint64_t right) {
    if (holds) return;
    wrong += "credits of link " + std::to_string(link.id) + " class " + std::to_string(c) + ": " +
             what + ": " + std::to_string(left) + " against " + std::to_string(right) + "\n";
  };
  std::vector<std::array<std::uint64_t, kTrafficClasses>> held(state.wire.size());
  for (const Egress& egress : state.queues.all()) {
    const Switch& sw = state.switches[egress.switch_index];
    for (std::size_t c = 0; c < kTrafficClasses; ++c) {
      for (const Packet* p = egress.queues[c].head; p != nullptr; p = p->next) {
        held[sw.port_links[p->ingress] ^ 1U][c] += credit_blocks(p->wire_bytes);
      }
    }
  }
  for (const Link& link : state.wire.all()) {
    std::array<std::uint64_t, kTrafficClasses> on_wire{};
    for (const Packet* p = link.head; p != nullptr; p = p->next) {
      if (p->route != kRouteCredit) on_wire[p->traffic_class] += credit_blocks(p->wire_bytes);
    }
    for (std::uint8_t c = 0; c < kTrafficClasses; ++c) {
      if (!state.credits->covers(c)) continue;
      const CreditLane& lane = state.credits->book().at(link.id, c);
      expect(link, c, "held", lane.held == held[link.id][c], lane.held, held[link.id][c]);
      expect(link, c, "held, and the buffer", lane.held <= lane.buffer, lane.held, lane.buffer);
      if (link.down != 0) continue;
      const std::uint64_t under_way = lane.sent - lane.received;
      expect(link, c, "sent, not received, and on the wire", under_way == on_wire[c], under_way,
             on_wire[c]);
      expect(link, c, "sent, and the limit", lane.sent <= lane.limit, lane.sent, lane.limit);
      expect(link, c, "limit, and what was told", lane.limit <= lane.told, lane.limit, lane.told);
      // Outstanding and free bytes make up the buffer; the owed ones complete the sum, and are
      // never many.
      const std::uint64_t owed = CreditBook::owed(lane);
      expect(link, c, "free and not told", owed < state.credits->book().update_blocks(), owed,
             state.credits->book().update_blocks());
    }
  }
}

}  // namespace

std::string check_conservation(const FabricState& state) {
  std::string wrong;
  const auto expect = [&wrong](const std::string& what, std::uint64_t left, std::uint64_t right) {
    if (left == right) return;
    wrong += what + ": " + std::to_string(left) + " is not " + std::to_string(right) + "\n";
  };

  std::uint64_t packets = state.stats.delivered_packets;
  std::uint64_t bytes = state.stats.delivered_bytes + state.stats.trimmed_bytes;
  for (std::size_t i = 0; i < kDropReasons; ++i) {
    packets += state.stats.drops[i];
    bytes += state.stats.dropped_bytes[i];
  }
  // In flight; and per link, whether a pause frame is on its way.
  std::vector<bool> pause_in_flight(state.wire.size(), false);
  for (const Link& link : state.wire.all()) {
    const std::string name = "link " + std::to_string(link.id);
    expect(name + ": head time", static_cast<std::uint64_t>(link.head_time.count),
           static_cast<std::uint64_t>((link.head == nullptr ? kNever : link.head->time).count));
    Picos last{0};
    if (link.down != 0 && link.head != nullptr) wrong += name + ": down, and carries packets\n";
    for (const Packet* p = link.head; p != nullptr; p = p->next) {
      if (p->time <= last) wrong += name + ": arrivals out of order\n";
      last = p->time;
      if (p->route == kRoutePause) {
        pause_in_flight[link.id] = true;
        continue;
      }
      if (p->route == kRouteCredit) continue;
      ++packets;
      bytes += p->wire_bytes;
    }
  }

  // Queued, and what each buffer counter must hold for it.
  std::vector<std::vector<std::array<std::uint64_t, kTrafficClasses>>> charged(
      state.switches.size());
  for (std::size_t i = 0; i < state.switches.size(); ++i)
    charged[i].resize(state.switches[i].port_links.size());
  for (const Egress& egress : state.queues.all()) {
    const std::string name = "egress of link " + std::to_string(egress.link);
    std::uint64_t total = 0;
    unsigned backlog = 0;
    for (std::size_t c = 0; c < kTrafficClasses; ++c) {
      std::uint64_t in_class = 0;
      for (const Packet* p = egress.queues[c].head; p != nullptr; p = p->next) {
        ++packets;
        in_class += p->wire_bytes;
        charged[egress.switch_index].at(p->ingress)[c] += p->wire_bytes;
      }
      if (egress.queues[c].bytes != in_class) {
        expect(name + ": bytes of class " + std::to_string(c), egress.queues[c].bytes, in_class);
      }
      if (in_class != 0) backlog |= 1U << c;
      total += in_class;
    }
    bytes += total;
    expect(name + ": queued bytes", egress.queued_bytes, total);
    expect(name + ": backlog", state.wire[egress.link].backlog, backlog);
    const Switch& sw = state.switches[egress.switch_index];
    expect(name + ": in the switch's list of backlogged ports",
           sw.backlogged[egress.port >> 6] >> (egress.port & 63) & 1U, backlog != 0 ? 1 : 0);
  }
  expect("pauses or resumes decided after their time", state.wire.late_frames(), 0);
  expect("packets injected and copied, against delivered + dropped + in flight + queued",
         state.stats.injected_packets + state.stats.duplicated_packets, packets);
  expect("bytes injected and copied, against delivered + dropped + trimmed + in flight + queued",
         state.stats.injected_bytes + state.stats.duplicated_bytes, bytes);

  for (std::size_t i = 0; i < state.switches.size(); ++i) {
    const Switch& sw = state.switches[i];
    const std::string name = "switch " + std::to_string(i);
    std::uint64_t shared = 0;
    std::uint64_t used = 0;
    std::uint32_t paused = 0;
    const auto ports = static_cast<std::uint16_t>(sw.port_links.size());
    for (std::uint16_t port = 0; port < ports; ++port) {
      for (std::uint8_t c = 0; c < kTrafficClasses; ++c) {
        const SharedBuffer::Counter& counter = sw.buffer.at(port, c);
        const std::uint64_t held = std::uint64_t{counter.bytes} + counter.headroom;
        if (held != charged[i][port][c]) {  // no text where all is well: there are millions
          expect(name + " port " + std::to_string(port) + " class " + std::to_string(c) +
                     ": bytes charged",
                 held, charged[i][port][c]);
        }
        used += held;
        shared += sw.buffer.shared_part(counter, c);
        const bool told = sw.pauses.told(port, c);
        paused += told ? 1 : 0;
        const std::uint32_t back = sw.port_links[port];
        if (state.credits == nullptr && !pause_in_flight[back] &&
            ((state.wire[back ^ 1U].paused >> c & 1U) != 0) != told) {
          expect(name + " port " + std::to_string(port) + ": upstream paused",
                 state.wire[back ^ 1U].paused >> c & 1U, told ? 1 : 0);
        }
      }
    }
    expect(name + ": shared bytes", sw.buffer.shared_used(), shared);
    expect(name + ": used bytes", sw.buffer.used(), used);
    expect(name + ": paused classes", sw.pauses.count(), paused);
    if (shared > sw.buffer.capacity()) wrong += name + ": shared use exceeds the capacity\n";
  }
  if (state.credits != nullptr) check_credits(state, wrong);
  return wrong;
}

}  // namespace paceline::fabric
