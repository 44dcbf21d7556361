#include "dataplane/driver/scenario/scenario_setup.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <variant>

#include "cc/params.h"
#include "cc/registry.h"
#include "dataplane/config/scenario/fabric_shape.h"
#include "dataplane/driver/scenario/fault_events.h"
#include "dataplane/driver/traffic/fabric_ideal.h"
#include "dataplane/driver/traffic/ideal.h"
#include "dataplane/fabric/topology/clos.h"
#include "dataplane/fabric/topology/topology.h"
#include "dataplane/wire/headers/addresses.h"
#include "dataplane/wire/headers/opcodes.h"

namespace paceline {

namespace {

// Packets in the transmit ring of each port of a NIC with several.
constexpr std::uint32_t kRingPackets = 2;

fabric::LinkAction action_of(const std::string& name) {
  using Action = fabric::LinkAction;
  constexpr std::pair<const char*, Action> kActions[] = {
      {"down", Action::down},           {"up", Action::up},          {"rate", Action::rate},
      {"delay", Action::delay},         {"loss", Action::loss},      {"corrupt", Action::corrupt},
      {"duplicate", Action::duplicate}, {"reorder", Action::reorder}};
  for (const auto& [known, action] : kActions) {
    if (name == known) return action;
  }
  return Action::down;  // not reached: the reader accepts only these names
}

}  // namespace

std::vector<fabric::LinkEvent> link_events(const config::EventConfig& event) {
  std::vector<fabric::LinkEvent> out;
  const std::uint8_t directions = directions_of(event.direction);
  for (const std::uint32_t link : event.links) {
    out.push_back({event.at, link, action_of(event.action), event.rate, event.delay,
                   event.probability, directions});
  }
  return out;
}

fabric::FabricSpec fabric_of(const config::Scenario& scenario) {
  const config::FabricConfig& from = scenario.fabric;
  fabric::FabricSpec spec;
  if (from.links.empty()) {
    const config::FabricShape shape = config::shape_of(from);
    spec = fabric::clos(
        {.pods = shape.pods,
         .leaves = shape.leaves,
         .spines = shape.spines,
         .cores = shape.cores,
         .hosts_per_leaf = shape.hosts_per_leaf,
         .links_per_pair = shape.links_per_pair,
         .planes = shape.planes},
        {.host_rate = from.rate,
         .uplink_rate = config::uplink_rate(from),
         .core_rate = config::core_rate(from),
         .host_delay = from.delay,
         .uplink_delay = from.uplink_delay == kNever ? from.delay : from.uplink_delay});
  } else {
    spec.hosts = static_cast<std::uint32_t>(from.endpoints());
    spec.switches = from.switches;
    for (const config::LinkSpec& link : from.links) {
      spec.links.push_back({link.a, link.b, link.rate, link.delay, link.error_rate, 0});
    }
  }
  spec.ports = from.ports;
  spec.shared_planes = from.planes == "shared";
  for (fabric::LinkSpec& link : spec.links) {
    link.loss = from.loss;
    if (from.corrupt != 0) link.error_rate = from.corrupt;
    link.duplicate = from.duplicate;
    link.reorder = from.reorder;
  }
  spec.reorder_delay = from.reorder_delay;
  if (from.load_balance == "spray") spec.load_balance = fabric::LoadBalance::spray;
  if (from.load_balance == "spray_random") spec.load_balance = fabric::LoadBalance::spray_random;
  for (std::size_t c = 0; c < std::min(from.class_weights.size(), spec.class_weights.size()); ++c) {
    spec.class_weights[c] = from.class_weights[c];
  }
  spec.ack_class = static_cast<std::uint8_t>(from.ack_class);
  spec.cnp_class = static_cast<std::uint8_t>(from.cnp_class);
  spec.reroute_delay = from.reroute_delay;
  spec.keep_queued_when_down = from.queued_when_down == "keep";
  for (const config::EventConfig& event : scenario.events) {
    const std::vector<fabric::LinkEvent> events = link_events(event);
    spec.events.insert(spec.events.end(), events.begin(), events.end());
  }
  for (const config::FaultConfig& fault : scenario.faults) {
    const std::vector<fabric::LinkEvent> events = fault_events(fault, spec);
    spec.events.insert(spec.events.end(), events.begin(), events.end());
  }
  spec.buffer_bytes = from.buffer_bytes;
  spec.ecn.enabled = from.ecn.enabled;
  spec.ecn.kmin_bytes = from.ecn.kmin_bytes;
  spec.ecn.kmax_bytes = from.ecn.kmax_bytes;
  spec.ecn.pmax = from.ecn.pmax;
  for (const config::EcnAtRate& own : from.ecn.at_rates) {
    spec.ecn.at_rates.push_back({own.rate, {own.kmin_bytes, own.kmax_bytes, own.pmax}});
  }
  spec.pfc.enabled = from.pfc.enabled;
  spec.credit.enabled = from.flow_control == "credit";
  spec.credit.buffer_bytes = from.credit.buffer_bytes;
  spec.credit.update_bytes = from.credit.update_bytes;
  spec.pfc.alpha = from.pfc.alpha;
  spec.pfc.headroom_bytes = from.pfc.headroom_bytes;
  spec.pfc.xon_offset_bytes = from.pfc.xon_offset_bytes;
  spec.pfc.reserve_bytes = from.pfc.reserve_bytes;
  spec.trim.enabled = from.trim.enabled;
  spec.trim.threshold_bytes = from.trim.threshold_bytes;
  spec.trim.to_class = static_cast<std::uint8_t>(from.trim.to_class);
  spec.notice.enabled = from.notice.enabled;
  spec.notice.set_point_bytes = from.notice.set_point_bytes;
  spec.notice.weight = from.notice.weight;
  spec.notice.sample_bytes = from.notice.sample_bytes;
  spec.wire = wire_accounting(from);
  spec.telemetry = from.telemetry;
  spec.drop_control_ppm = static_cast<std::uint32_t>(from.drop_control_ppm);
  spec.seed = scenario.seed;
  const auto subnet = wire::ip_address_from_text(from.subnet.substr(0, from.subnet.find('/')));
  if (subnet) spec.subnet_base = subnet->v4_value();  // else: impossible, the reader checks it
  spec.mtu_bytes = 4096;
  spec.payload_room = 0;
  spec.computes_icrc = true;
  return spec;
}

std::vector<double> resolve_cc(const std::string& algorithm, const std::string& profile,
                               std::span<const config::ParamValue> params,
                               const cc::PortFacts& facts, std::string& error) {
  const cc::AlgorithmInfo* info = cc::find(algorithm);
  if (info == nullptr) {
    error += "unknown algorithm '" + algorithm + "'; nearest is '" +
             std::string(cc::nearest_algorithm(algorithm)) + "'";
    return {};
  }
  if (const auto need = cc::unmet_need(*info, facts); !need.empty()) {
    error += algorithm + " needs " + std::string(need);
    return {};
  }
  std::vector<cc::ParamOverride> overrides;
  for (const config::ParamValue& param : params) overrides.push_back({param.name, param.value});
  auto resolved = cc::resolve_params(*info, profile, overrides, facts);
  if (auto* values = std::get_if<std::vector<double>>(&resolved)) return std::move(*values);
  for (const cc::ParamError& e : std::get<std::vector<cc::ParamError>>(resolved)) {
    if (!error.empty()) error += "; ";
    error += e.message;
  }
  return {};
}

std::string plan_engine(const config::TransportConfig& t, const config::CcConfig& cc,
                        const cc::PortFacts& facts, transport::EngineConfig& engine) {
  engine.payload_mtu = facts.mtu_bytes;
  engine.ack_every = t.ack_every;
  engine.cnp_interval = t.cnp_interval;
  engine.cnp_in_ack = t.cnp_in_ack;
  engine.base_rtt_ns = facts.base_rtt_ns;
  if (t.reliability == "selective") engine.reliability = transport::Reliability::selective;
  if (t.multipath == "packet") engine.multipath = transport::Multipath::packet;
  if (t.multipath == "chunk") engine.multipath = transport::Multipath::chunk;
  engine.paths = t.paths;
  engine.path_run = t.path_run;
  engine.window_packets = t.window_packets;
  engine.reorder_packets = t.reorder_packets;
  engine.place_in_order = t.place_in_order;
  if (t.peers == "roce") engine.peers = transport::PeerPolicy::roce;
  if (t.peers == "discover") engine.peers = transport::PeerPolicy::discover;

  std::string error;
  engine.primary.values = resolve_cc(cc.algorithm, cc.profile, cc.params, facts, error);
  if (!error.empty()) return error;
  engine.primary.algorithm = cc::find(cc.algorithm)->id;
  engine.fallback.values = resolve_cc(cc.fallback, cc.fallback_profile, {}, facts, error);
  if (!error.empty()) return error;
  engine.fallback.algorithm = cc::find(cc.fallback)->id;
  return error;
}

namespace {

std::string algorithms_over_planes() {
  std::string names;
  for (const cc::AlgorithmInfo& info : cc::algorithms()) {
    if (!info.over_planes) continue;
    if (!names.empty()) names += ", ";
    names += info.name;
  }
  return names;
}

// Why NICs with several ports cannot run what the file asks for; empty: they can.
std::string planes_refusal(const config::TransportConfig& t, const config::CcConfig& cc,
                           std::uint32_t ports) {
  const cc::AlgorithmInfo* info = cc::find(cc.algorithm);
  if (info == nullptr) return {};  // told elsewhere
  const std::string with = "a NIC of " + std::to_string(ports) + " ports: ";
  if (t.planes == "spray") {
    if (info->over_planes) return {};
    return with + cc.algorithm +
           " has not been made for packets of one flow on several planes; allowed are " +
           algorithms_over_planes() +
           ", or a reactive one with transport.planes = \"hash\" or "
           "\"pinned\"";
  }
  if (!info->proactive) return {};
  return with + cc.algorithm +
         " grants what a whole NIC receives; it needs transport.reliability = \"selective\" with "
         "transport.planes = \"spray\"";
}

}  // namespace

std::string plan_planes(const config::TransportConfig& t, const config::CcConfig& cc,
                        std::uint32_t ports, cc::PortFacts& facts,
                        transport::EngineConfig& engine) {
  engine.planes = ports;
  if (ports == 1) return {};
  if (t.planes == "spray") {
    if (t.multipath == "none") engine.multipath = transport::Multipath::packet;
    facts.link_rate = Rate{facts.link_rate.bps * ports};
    facts.planes = static_cast<std::uint8_t>(ports);
  }
  return planes_refusal(t, cc, ports);
}

NicShape nic_shape(std::string_view name) {
  if (name == "separate") return NicShape::separate;
  return name == "multiport" ? NicShape::multiport : NicShape::bonded;
}

WorldPlan plan_world(const config::Scenario& scenario, NicShape shape) {
  WorldPlan plan;
  plan.fabric = fabric_of(scenario);
  for (const std::string& problem : fabric::check_buildable(plan.fabric)) {
    if (!plan.error.empty()) plan.error += "; ";
    plan.error += problem;
  }
  if (!plan.error.empty()) return plan;
  if (shape == NicShape::separate) plan.fabric.ports = 1;
  plan.fabric.port_subnets = shape == NicShape::multiport && plan.fabric.ports > 1;
  const std::uint32_t ports_of_pair = plan.fabric.port_subnets ? 1 : plan.fabric.ports;
  if (plan.fabric.port_subnets) plan.engine.addressed_ports = plan.fabric.ports;

  const IdealClock clock(scenario, 2);  // for the wire bytes of a packet
  const fabric::Topology topology(plan.fabric);
  const FabricIdeal ideal(scenario, plan.fabric, topology);
  const auto base_rtt_ns = static_cast<std::uint32_t>(ideal.longest_base_rtt().count / 1000);

  cc::PortFacts facts;
  facts.link_rate = scenario.fabric.rate;
  plan.error = plan_planes(scenario.transport, scenario.cc, ports_of_pair, facts, plan.engine);
  if (!plan.error.empty()) return plan;
  facts.mtu_bytes = scenario.transport.payload_bytes;
  facts.base_rtt_ns = base_rtt_ns;
  facts.full_packet_bytes = static_cast<std::uint32_t>(
      clock.wire_bytes(2 * std::uint64_t{facts.mtu_bytes}) - clock.wire_bytes(facts.mtu_bytes));
  facts.telemetry = config::has_telemetry(scenario);
  facts.notices = scenario.fabric.notice.enabled;
  if (ports_of_pair > 1) {
    // A packet that finds its plane busy does not keep the others waiting.
    plan.fabric.transmit_ahead = serialization_time(
        std::uint64_t{facts.full_packet_bytes} * kRingPackets, scenario.fabric.rate);
  }
  plan.error = plan_engine(scenario.transport, scenario.cc, facts, plan.engine);
  if (!plan.error.empty()) return plan;

  plan.queue_pair.retry_count = static_cast<std::uint8_t>(scenario.transport.retry_count);
  plan.queue_pair.retransmit_timeout = scenario.transport.retransmit_timeout;

  plan.speaks_control.assign(plan.fabric.nics(), true);
  for (const std::uint32_t host : scenario.transport.foreign_hosts) {
    if (host < plan.speaks_control.size()) plan.speaks_control[host] = false;
  }
  return plan;
}

}  // namespace paceline
