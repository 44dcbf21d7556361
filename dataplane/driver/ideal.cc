#include "dataplane/driver/ideal.h"

#include <algorithm>

#include "dataplane/wire/headers.h"

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

IdealClock::IdealClock(const config::Scenario& scenario, std::uint32_t path_links)
    : wire_(wire_accounting(scenario.fabric)),
      rate_(scenario.fabric.rate),
      delay_(scenario.fabric.delay),
      payload_(scenario.transport.payload_bytes),
      links_(path_links) {}

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

Picos IdealClock::fct(std::uint64_t message_bytes) const {
  // The first packet is the largest. Behind it the others follow without a gap on every link, so
  // that each further link costs its serialisation once more, not that of a last packet that is
  // shorter.
  const std::uint64_t first = packet_bytes(std::min<std::uint64_t>(message_bytes, payload_), true);
  const std::uint64_t ack =
      wire_.wire_bytes(kPlainFrame + static_cast<std::uint32_t>(wire::Aeth::kBytes), 0);
  Picos time = serialization_time(wire_bytes(message_bytes), rate_);
  for (std::uint32_t i = 1; i < links_; ++i) time += serialization_time(first, rate_);
  for (std::uint32_t i = 0; i < links_; ++i) time += serialization_time(ack, rate_);
  return time + delay_ * (2 * std::int64_t{links_});
}

}  // namespace paceline
