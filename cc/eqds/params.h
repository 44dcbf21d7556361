// Parameters of EQDS and the values derived from them once per parameter set: shared by the sender
// context (eqds.h), the uplink arbiter (sender.h) and the pull pacer of the receiving port
// (receiver.h). The table of names, ranges and sources is in params.cc.
#pragma once

#include <cstdint>
#include <span>

#include "cc/interface/algorithm.h"

namespace paceline::cc {

struct EqdsParams {
  // The port.
  std::uint32_t link_mbps = 0;
  std::uint32_t mtu_bytes = 0;
  std::uint32_t packet_bytes = 0;    // full packet on the wire
  std::uint32_t overhead_bytes = 0;  // packet_bytes - mtu_bytes
  std::int64_t rtt_ns = 0;           // base round trip T
  std::uint32_t bdp_bytes = 0;       // C * T, wire bytes

  // Receiver.
  std::uint32_t pull_mbps = 0;          // pace of credit while nothing is marked
  std::uint32_t pull_bytes = 0;         // credit of one pull
  std::uint32_t max_credit_bytes = 0;   // unused credit that one sender may hold
  std::uint32_t idle_credit_bytes = 0;  // given beyond demand, all senders together
  double foreign_most = 0;              // share of the port that other traffic takes from pulls
  double least_pull = 0;                // lower bound of the pace, of pull_mbps
  double ecn_target = 0;
  bool ecn_feedback = false;
  bool charge_start = false;

  // Sender.
  std::uint32_t first_window_bytes = 0;
  std::int64_t regain_ns = 0;  // a used-up first window is there again after this
  std::uint32_t fallback_mbps = 0;
  std::uint32_t probe_limit = 0;
  std::uint32_t request_max_ns = 0;
};

EqdsParams make_eqds_params(std::span<const double> values, const PortFacts& facts);

const AlgorithmInfo& eqds_info();

}  // namespace paceline::cc
