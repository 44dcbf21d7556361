#include "dataplane/driver/traffic/ideal.h"

#include <algorithm>

#include "dataplane/wire/headers/headers.h"

namespace paceline {

namespace {
constexpr std::uint32_t kPlainFrame =
    static_cast<std::uint32_t>(wire::kEthernetBytes + wire::kIpv4Bytes + wire::kUdpBytes +
                               wire::kBthBytes) +
    8U;
}

WireAccounting wire_accounting(const config::FabricConfig& fabric) {
  return {fabric.frame_overhead_bytes, fabric.fixed_overhead_bytes, fabric.small_packet_bytes};
}

IdealClock::IdealClock(const config::Scenario& scenario, std::vector<IdealLink> path)
    : wire_(wire_accounting(scenario.fabric)),
      payload_(scenario.transport.payload_bytes),
      path_(std::move(path)) {}

IdealClock::IdealClock(const config::Scenario& scenario, std::uint32_t path_links)
    : IdealClock(scenario, std::vector<IdealLink>(path_links,
                                                  {scenario.fabric.rate, scenario.fabric.delay})) {}

std::uint64_t IdealClock::packet_bytes(std::uint64_t payload, bool first) const {
  const auto padded = static_cast<std::uint32_t>((payload + 3) & ~std::uint64_t{3});
  const std::uint32_t extension = first ? static_cast<std::uint32_t>(wire::Reth::kBytes) : 0U;
  return wire_.wire_bytes(kPlainFrame + extension + padded, static_cast<std::uint32_t>(payload));
}

std::uint64_t IdealClock::wire_bytes(std::uint64_t message_bytes) const {
  if (message_bytes <= payload_) return packet_bytes(message_bytes, true);
  const std::uint64_t packets = (message_bytes + payload_ - 1) / payload_;
  const std::uint64_t last = message_bytes - (packets - 1) * payload_;
  return packet_bytes(payload_, true) + (packets - 2) * packet_bytes(payload_, false) +
         packet_bytes(last, false);
}

// From the first bit at the sender to the last at the receiver, without propagation. A packet
// starts on a link when it has arrived there and its predecessor has left: a flow shop whose jobs
// keep their order, so the time is that of the longest path through the grid of packets and links
// that goes from (first, first) to (last, last) by single steps. Packets come in three kinds (the
// first, n - 2 full ones, the last), and among equal ones nothing but where the path enters and
// leaves them counts.
Picos IdealClock::makespan(std::uint64_t message_bytes) const {
  const auto time = [this](std::uint64_t bytes, std::size_t link) {
    return serialization_time(bytes, path_[link].rate);
  };
  const std::size_t links = path_.size();
  const std::uint64_t packets =
      message_bytes <= payload_ ? 1 : (message_bytes + payload_ - 1) / payload_;
  const std::uint64_t first = packet_bytes(std::min<std::uint64_t>(message_bytes, payload_), true);
  const std::uint64_t full = packet_bytes(payload_, false);
  const std::uint64_t last = packet_bytes(message_bytes - (packets - 1) * payload_, false);
  Picos longest{0};
  Picos head{0};
  for (std::size_t enter = 0; enter < links; ++enter) {
    head += time(first, enter);
    if (packets == 1) continue;
    Picos middle{0};
    Rate slowest = path_[enter].rate;
    for (std::size_t leave = enter; leave < links; ++leave) {
      if (packets > 2) {
        middle += time(full, leave);
        slowest = min_rate(slowest, path_[leave].rate);
      } else if (leave != enter) {
        break;  // nothing lies between the first packet and the last
      }
      Picos sum = head + middle;
      if (packets > 3) sum += serialization_time((packets - 3) * full, slowest);
      for (std::size_t i = leave; i < links; ++i) sum += time(last, i);
      longest = later(longest, sum);
    }
  }
  return packets == 1 ? head : longest;
}

Picos IdealClock::fct(std::uint64_t message_bytes) const {
  const std::uint64_t ack =
      wire_.wire_bytes(kPlainFrame + static_cast<std::uint32_t>(wire::Aeth::kBytes), 0);
  Picos time = makespan(message_bytes);
  for (const IdealLink& link : path_) {
    time += serialization_time(ack, link.rate) + link.delay * 2;
  }
  return time;
}

Picos IdealClock::latency() const {
  Rate slowest = path_.front().rate;
  for (const IdealLink& link : path_) slowest = min_rate(slowest, link.rate);
  return fct(payload_) - serialization_time(wire_bytes(payload_), slowest);
}

}  // namespace paceline
