// What can be read from a network, and the laws that its counters must obey.
#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <vector>

#include "dataplane/fabric/forwarding/forwarding.h"

namespace paceline::fabric {

void Forwarding::finish(Picos now) {
  for (Switch& sw : switches_) advance_switch(sw, now);
  for (Egress& egress : egresses_) {
    egress.integrate(now);
    if (links_[egress.link].backlog != 0) reschedule(links_[egress.link]);
  }
  for (const Link& link : links_) {
    LinkDetail& detail = details_[link.id];
    for (unsigned bits = link.paused; bits != 0; bits &= bits - 1) {
      const auto traffic_class = static_cast<std::size_t>(std::countr_zero(bits));
      const Picos span = paused_for(detail, traffic_class, now);
      detail.paused_since[traffic_class] = later(detail.paused_since[traffic_class], now);
      detail.pause_time += span;
      stats_.pause_time += span;
    }
  }
}

std::optional<EgressStats> Forwarding::egress_stats(std::uint32_t link) const {
  if (links_.at(link).egress == Link::kNoEgress) return std::nullopt;
  const Egress& egress = egresses_[links_[link].egress];
  EgressStats out;
  out.packets = egress.packets;
  out.bytes = egress.bytes;
  out.marked = egress.marked;
  out.trimmed = egress.trimmed;
  out.drops = egress.drops;
  out.queued_bytes = egress.queued_bytes;
  out.max_bytes = egress.max_bytes;
  if (egress.changed_at.count > 0) {
    out.mean_bytes =
        static_cast<double>(egress.byte_picos) / static_cast<double>(egress.changed_at.count);
  }
  out.pause_time = details_[link].pause_time;
  return out;
}

std::uint64_t Forwarding::last_hop_max_bytes() const {
  std::uint64_t most = 0;
  for (const Egress& egress : egresses_) {
    if (egress.last_hop && egress.max_bytes > most) most = egress.max_bytes;
  }
  return most;
}

Picos Forwarding::link_pause_time(std::uint32_t link) const { return details_.at(link).pause_time; }

Picos Forwarding::pause_in_force(const Link& link, Picos now) const {
  Picos sum{0};
  for (unsigned bits = link.paused; bits != 0; bits &= bits - 1) {
    sum += paused_for(details_[link.id], static_cast<std::size_t>(std::countr_zero(bits)), now);
  }
  return sum;
}

// Only departures before `now` are decided: those at `now` have their order among the events at
// `now`, and a look must not give them another.
std::uint64_t Forwarding::queue_bytes(std::uint32_t link, Picos now) {
  Link& at = links_.at(link);
  if (at.egress == Link::kNoEgress) return 0;
  advance(at, now - Picos{1});
  if (at.backlog != 0) reschedule(at);
  return egresses_[at.egress].queued_bytes;
}

std::string Forwarding::check_conservation() const {
  std::string wrong;
  const auto expect = [&wrong](const std::string& what, std::uint64_t left, std::uint64_t right) {
    if (left == right) return;
    wrong += what + ": " + std::to_string(left) + " is not " + std::to_string(right) + "\n";
  };

  std::uint64_t packets = stats_.delivered_packets;
  std::uint64_t bytes = stats_.delivered_bytes + stats_.trimmed_bytes;
  for (std::size_t i = 0; i < kDropReasons; ++i) {
    packets += stats_.drops[i];
    bytes += stats_.dropped_bytes[i];
  }
  // In flight; and per link, whether a pause frame is on its way.
  std::vector<bool> pause_in_flight(links_.size(), false);
  for (const Link& link : links_) {
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
  std::vector<std::vector<std::array<std::uint64_t, kTrafficClasses>>> charged(switches_.size());
  for (std::size_t i = 0; i < switches_.size(); ++i)
    charged[i].resize(switches_[i].port_links.size());
  for (const Egress& egress : egresses_) {
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
    expect(name + ": backlog", links_[egress.link].backlog, backlog);
    const Switch& sw = switches_[egress.switch_index];
    expect(name + ": in the switch's list of backlogged ports",
           sw.backlogged[egress.port >> 6] >> (egress.port & 63) & 1U, backlog != 0 ? 1 : 0);
  }
  expect("pauses or resumes decided after their time", late_pauses_, 0);
  expect("packets injected and copied, against delivered + dropped + in flight + queued",
         stats_.injected_packets + stats_.duplicated_packets, packets);
  expect("bytes injected and copied, against delivered + dropped + trimmed + in flight + queued",
         stats_.injected_bytes + stats_.duplicated_bytes, bytes);

  for (std::size_t i = 0; i < switches_.size(); ++i) {
    const Switch& sw = switches_[i];
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
        const bool told = (sw.paused_ingress[port] >> c & 1U) != 0;
        paused += told ? 1 : 0;
        const std::uint32_t back = sw.port_links[port];
        if (credits_ == nullptr && !pause_in_flight[back] &&
            ((links_[back ^ 1U].paused >> c & 1U) != 0) != told) {
          expect(name + " port " + std::to_string(port) + ": upstream paused",
                 links_[back ^ 1U].paused >> c & 1U, told ? 1 : 0);
        }
      }
    }
    expect(name + ": shared bytes", sw.buffer.shared_used(), shared);
    expect(name + ": used bytes", sw.buffer.used(), used);
    expect(name + ": paused classes", sw.paused_count, paused);
    if (shared > sw.buffer.capacity()) wrong += name + ": shared use exceeds the capacity\n";
  }
  if (credits_ != nullptr) check_credits(wrong);
  return wrong;
}

}  // namespace paceline::fabric
