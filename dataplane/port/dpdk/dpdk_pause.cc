#include "dataplane/port/dpdk/dpdk_pause.h"

#include <rte_errno.h>
#include <rte_ethdev.h>

namespace paceline {

namespace {

// DPDK names modes by what is obeyed on the link: "Rx" for pause frames that arrive.
PauseMode mode_of(rte_eth_fc_mode mode) {
  switch (mode) {
    case RTE_ETH_FC_NONE:
      break;
    case RTE_ETH_FC_RX_PAUSE:
      return PauseMode::receive;
    case RTE_ETH_FC_TX_PAUSE:
      return PauseMode::send;
    case RTE_ETH_FC_FULL:
      return PauseMode::both;
  }
  return PauseMode::off;
}

rte_eth_fc_mode mode_of(PauseMode mode) {
  switch (mode) {
    case PauseMode::off:
      break;
    case PauseMode::receive:
      return RTE_ETH_FC_RX_PAUSE;
    case PauseMode::send:
      return RTE_ETH_FC_TX_PAUSE;
    case PauseMode::both:
      return RTE_ETH_FC_FULL;
  }
  return RTE_ETH_FC_NONE;
}

}  // namespace

PauseState probe_pause(std::uint16_t port_id) {
  PauseState state;
  rte_eth_fc_conf conf{};
  if (const int result = rte_eth_dev_flow_ctrl_get(port_id, &conf); result == 0) {
    state.offered = true;
    state.mode = mode_of(conf.mode);
  } else {
    state.refusal = rte_strerror(-result);
  }
  rte_eth_pfc_queue_info info{};
  if (rte_eth_dev_priority_flow_ctrl_queue_info_get(port_id, &info) == 0) {
    state.priority_classes = info.tc_max;
  }
  return state;
}

std::string set_pause(std::uint16_t port_id, PauseMode mode) {
  // Thresholds and times stay as the device has them.
  rte_eth_fc_conf conf{};
  int result = rte_eth_dev_flow_ctrl_get(port_id, &conf);
  if (result == 0) {
    conf.mode = mode_of(mode);
    result = rte_eth_dev_flow_ctrl_set(port_id, &conf);
  }
  return result == 0 ? "" : rte_strerror(-result);
}

PauseReader::PauseReader(std::uint16_t port_id) : port_id_(port_id) {
  const int count = rte_eth_xstats_get_names(port_id, nullptr, 0);
  if (count <= 0) return;
  std::vector<rte_eth_xstat_name> raw(static_cast<std::size_t>(count));
  if (rte_eth_xstats_get_names(port_id, raw.data(), static_cast<unsigned>(count)) != count) return;
  std::vector<std::string> names;
  names.reserve(raw.size());
  for (const rte_eth_xstat_name& name : raw) names.emplace_back(name.name);
  places_ = pause_counters(names);
  for (const PauseCounterPlace& place : places_) ids_.push_back(place.index);
}

PauseFrames PauseReader::read() const {
  PauseFrames frames;
  std::vector<std::uint64_t> values(ids_.size());
  const auto count = static_cast<unsigned>(ids_.size());
  if (count == 0 || rte_eth_xstats_get_by_id(port_id_, ids_.data(), values.data(), count) !=
                        static_cast<int>(count)) {
    return frames;
  }
  frames.counted = true;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const PauseCounter& counts = places_[i].counts;
    std::uint64_t& sum = counts.priority
                             ? (counts.sent ? frames.priority_sent : frames.priority_received)
                             : (counts.sent ? frames.sent : frames.received);
    sum += values[i];
  }
  return frames;
}

}  // namespace paceline
