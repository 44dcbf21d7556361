// The configuration of an engine that talks plain RoCEv2 over a port: what tests with engines on
// ports of their own begin with.
#pragma once

#include <variant>
#include <vector>

#include "cc/params.h"
#include "cc/registry.h"
#include "dataplane/port/port.h"
#include "dataplane/transport/core/engine_config.h"

namespace paceline::test {

inline transport::EngineConfig roce_engine_config(const wire::IpAddress& address,
                                                  const wire::MacAddress& mac, const PortInfo& port,
                                                  cc::AlgorithmId algorithm) {
  transport::EngineConfig config;
  config.address = address;
  config.mac = mac;
  config.peers = transport::PeerPolicy::roce;
  config.payload_mtu = port.mtu_bytes;
  cc::PortFacts facts;
  facts.link_rate = port.link_rate;
  facts.mtu_bytes = config.payload_mtu;
  facts.full_packet_bytes = port.wire.wire_bytes(config.payload_mtu + 62, config.payload_mtu);
  facts.base_rtt_ns = config.base_rtt_ns;
  config.primary = {algorithm, std::get<std::vector<double>>(
                                   cc::resolve_params(*cc::find(algorithm), "", {}, facts))};
  config.fallback = config.primary;
  return config;
}

}  // namespace paceline::test
