// The rows of `paceline top`: rates from the difference of two samples, for each NIC, each peer and
// each queue pair. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cc/interface/decision.h"
#include "tools/top/fabric_look.h"
#include "tools/top/host_sample.h"

namespace paceline::tools {

// Share of the time for which each cc::Limiter held; all zero: not measured.
using LimiterShares = std::array<double, cc::kLimiters>;

struct NicRow {
  std::string name;
  std::string algorithm;
  std::uint32_t arm = 0;
  std::uint32_t epoch = 0;
  std::uint32_t guard = 0;
  std::uint64_t plugin_quarantines = 0;  // since the start of the service
  std::uint64_t loans_overdue = 0;       // packets since the start of the service
  std::uint64_t link_bps = 0;
  double tx_bps = 0;  // payload, first transmissions
  double rx_bps = 0;
  double messages_per_s = 0;      // completed
  double p99_slowdown = 0;        // of messages up to 1 MiB that completed in the span; 0: none did
  double lent_share = 0;          // of the payload sent, the part sent without a copy
  double marked_share = 0;        // of data packets received
  double cnps_per_s = 0;          // received
  double resent_per_s = 0;        // packets
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
  double allowed_bps = 0;  // by congestion control; sum over several queue pairs
  double rtt_us = 0;       // smoothed; longest of several queue pairs. 0: not measured
  double min_rtt_us = 0;
  double cnps_per_s = 0;
  double resent_per_s = 0;
  std::uint64_t inflight_bytes = 0;
  std::uint64_t backlog_bytes = 0;
  LimiterShares limited{};
};

struct TopRows {
  double seconds = 0;  // the span between the samples; 0: only one sample yet, all rates are zero
  std::vector<NicRow> nics;
  std::vector<PairRow> peers;        // of each NIC, busiest first
  std::vector<PairRow> queue_pairs;  // all, busiest first
  FabricLook fabric;
};

// `before` may be empty. Rows that only `now` has get rates of zero. `seconds` is the span for NICs
// and queue pairs whose samples have no time stamp.
TopRows top_rows(const HostSample& before, const HostSample& now, double seconds);

// The limiter with the largest share, and that share; "-" if nothing was measured.
std::string main_limiter(const LimiterShares& shares);

}  // namespace paceline::tools
