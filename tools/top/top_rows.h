// What `paceline top` shows: the difference of two looks as rates, for each NIC instance, each peer
// and each queue pair. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cc/decision.h"
#include "tools/top/fabric_look.h"
#include "tools/top/host_sample.h"

namespace paceline::tools {

// Where the time of a span went, in shares of one, by cc::Limiter; all zero: nothing was measured.
using LimiterShares = std::array<double, cc::kLimiters>;

struct NicRow {
  std::string name;
  std::string algorithm;
  std::uint32_t arm = 0;
  std::uint32_t epoch = 0;
  std::uint32_t guard = 0;
  std::uint64_t plugin_quarantines = 0;  // since the service began
  std::uint64_t loans_overdue = 0;       // packets; likewise
  std::uint64_t link_bps = 0;
  double tx_bps = 0;  // payload, first transmissions
  double rx_bps = 0;
  double messages_per_s = 0;  // completed
  double p99_slowdown = 0;  // of messages up to 1 MiB that completed in the span; 0: there are none
  double lent_share = 0;    // of the payload sent: without a copy
  double marked_share = 0;  // of data packets received
  double cnps_per_s = 0;    // received
  double resent_per_s = 0;  // packets
  std::uint64_t queue_bytes = 0;  // in front of the host, where the fabric is emulated
  std::uint64_t queue_pairs = 0;
  LimiterShares limited{};
};

struct PairRow {
  std::string nic;
  std::uint32_t number = 0;  // 0: all queue pairs to the peer together
  std::uint32_t pairs = 1;
  std::string peer;
  std::uint32_t pid = 0;
  std::string type;
  std::string state;
  std::string algorithm;
  bool on_fallback = false;
  double tx_bps = 0;
  double rx_bps = 0;
  double allowed_bps = 0;  // by congestion control; of several, the sum
  double rtt_us = 0;       // smoothed; of several, the longest. 0: not measured
  double min_rtt_us = 0;
  double cnps_per_s = 0;
  double resent_per_s = 0;
  std::uint64_t inflight_bytes = 0;
  std::uint64_t backlog_bytes = 0;
  LimiterShares limited{};
};

struct TopRows {
  double seconds = 0;  // the span that the rates are of; 0: none yet, all rates are zero
  std::vector<NicRow> nics;
  std::vector<PairRow> peers;        // of a NIC, by falling traffic
  std::vector<PairRow> queue_pairs;  // all, by falling traffic
  FabricLook fabric;
};

// `before` may be empty. What is new in `now` has rates of zero. `seconds`: between the two, for
// NICs and queue pairs that do not say when they were looked at.
TopRows top_rows(const HostSample& before, const HostSample& now, double seconds);

// The bound that held most of the time, and its share; "-" where nothing was measured.
std::string main_limiter(const LimiterShares& shares);

}  // namespace paceline::tools
