// Checks the table of a receiving half when a plug-in is loaded.

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "cc/plugin/channel.h"
#include "cc/plugin/plugin.h"

namespace paceline::cc::plugin {
namespace {

constexpr std::uint32_t kFirstReceiverBytes =  // of version 1.3
    offsetof(paceline_cc_receiver, on_round) + sizeof(paceline_cc_receiver::on_round);

std::string no_more(const char* what, std::uint64_t value, std::uint64_t most) {
  return std::string(what) + " = " + std::to_string(value) +
         ": with a receiving half allowed is 0 to " + std::to_string(most);
}

PortFacts tried_port(std::uint64_t gbps, std::uint32_t rtt_ns) {
  PortFacts facts;
  facts.link_rate = rate_from_gbps(gbps);
  facts.mtu_bytes = 4096;
  facts.full_packet_bytes = 4178;
  facts.base_rtt_ns = rtt_ns;
  return facts;
}

}  // namespace

std::string read_receiver(Plugin& plugin) {
  const paceline_cc_algorithm& t = plugin.table;
  if (t.receiver == nullptr) return {};
  // Its size comes first.
  if (t.receiver->size < kFirstReceiverBytes) {
    return "the table of its receiving half has " + std::to_string(t.receiver->size) +
           " bytes: there are at least " + std::to_string(kFirstReceiverBytes);
  }
  paceline_cc_receiver& r = plugin.receiver;
  std::memcpy(&r, t.receiver, std::min<std::size_t>(t.receiver->size, sizeof r));
  if (r.on_round == nullptr) return "on_round is NULL";
  if (t.context != PACELINE_CC_PER_PEER_CLASS) {
    return "context = " + std::to_string(t.context) +
           ": with a receiving half it is PACELINE_CC_PER_PEER_CLASS, " +
           std::to_string(PACELINE_CC_PER_PEER_CLASS);
  }
  if (t.state_bytes > PACELINE_CC_CHANNEL_STATE_BYTES) {
    return no_more("state_bytes", t.state_bytes, PACELINE_CC_CHANNEL_STATE_BYTES);
  }
  const std::size_t derived =
      t.derive != nullptr ? t.derived_bytes : t.param_count * sizeof(double);
  if (derived > PACELINE_CC_CHANNEL_DERIVED_BYTES) {
    return no_more("derived_bytes", derived, PACELINE_CC_CHANNEL_DERIVED_BYTES);
  }
  if (r.port_bytes > PACELINE_CC_PORT_BYTES) {
    return no_more("port_bytes", r.port_bytes, PACELINE_CC_PORT_BYTES);
  }
  if (r.sender_bytes > PACELINE_CC_SENDER_BYTES) {
    return no_more("sender_bytes", r.sender_bytes, PACELINE_CC_SENDER_BYTES);
  }
  // At the defaults and at both ends of every range, for a slow port and a fast one.
  for (const PortFacts& facts : {tried_port(10, 50'000), tried_port(400, 4'000)}) {
    for (double ParamSpec::*const pick :
         {&ParamSpec::default_value, &ParamSpec::min, &ParamSpec::max}) {
      std::vector<double> values;
      for (const ParamSpec& spec : plugin.params) values.push_back(spec.*pick);
      if (std::string error = rules_error(plugin, values, facts); !error.empty()) return error;
    }
  }
  return {};
}

}  // namespace paceline::cc::plugin
