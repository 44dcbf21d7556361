// A receiving port of Cadence, with hand-written REQUESTs.
#pragma once

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cc/cadence/receiver/receiver.h"

namespace paceline::cc {

struct Port {
  CadenceParams p;
  CadenceReceiver r;
  std::int64_t now = 10'000'000;
  struct Peer {
    RequestMessage request{};
    ChannelCounters* counters = nullptr;
    GrantMessage grant{};
    unsigned grants = 0;
  };
  std::map<std::uint32_t, Peer> peers;
  std::string fault;

  static CadenceParams make(const std::map<std::string, double>& changes) {
    std::vector<double> values;
    for (const ParamSpec& spec : cadence_param_specs()) {
      const auto it = changes.find(std::string(spec.name));
      values.push_back(it == changes.end() ? spec.default_value : it->second);
    }
    return make_cadence_params(values, PortFacts{rate_from_gbps(100), 4096, 4170, 4680});
  }
  explicit Port(const std::map<std::string, double>& changes = {}) : p(make(changes)), r(p) {}

  void request(std::uint32_t id, std::uint64_t demand, std::uint64_t start = 0,
               std::uint32_t cap = kCapUnlimited) {
    Peer& peer = peers[id];
    RequestMessage& m = peer.request;
    m.channel = static_cast<std::uint16_t>(id);
    ++m.req_seq;
    m.demand_bytes = demand;
    m.tx_cap_mbps = cap;
    m.timestamp_ns = static_cast<std::uint32_t>(now);
    m.sent_total = peer.counters == nullptr ? m.sent_total : peer.counters->rx_bytes;
    m.unscheduled_total = m.sent_total + start;
    peer.counters = r.on_request(Nanos{now}, id, m);
  }
  void echo(std::uint32_t id) {
    peers[id].request.grant_echo = peers[id].grant.grant_seq;
    request(id, peers[id].request.demand_bytes, 0, peers[id].request.tx_cap_mbps);
  }
  void poll() {
    std::array<ReceiverOutput, 5> out;
    for (;;) {
      const std::size_t n = r.poll(Nanos{now}, out);
      for (std::size_t i = 0; i < n; ++i) {
        peers[out[i].peer].grant = out[i].grant;
        ++peers[out[i].peer].grants;
      }
      if (n < out.size()) break;
    }
    const std::string v = r.check_invariants(Nanos{now});
    if (fault.empty()) fault = v;
    CHECK(v == "");
  }
  // Runs due work up to `span` later; `echoing` confirms every new grant one RTT after it.
  void run(std::int64_t span, bool echoing = true) {
    const std::int64_t end = now + span;
    poll();
    std::map<std::uint32_t, std::uint16_t> echoed;
    while (now < end) {
      now = std::min(end, now + p.rtt_ns / 2);
      if (echoing) {
        for (auto& [id, peer] : peers) {
          if (peer.grants > 0 && peer.request.grant_echo != peer.grant.grant_seq &&
              peer.request.demand_bytes > 0) {
            echo(id);
          }
        }
      }
      poll();
    }
  }
  std::uint64_t rate(std::uint32_t id) { return peers[id].grant.rate_mbps; }
  void arrive(std::uint32_t id, std::uint64_t bytes) { peers[id].counters->rx_bytes += bytes; }
};

}  // namespace paceline::cc
