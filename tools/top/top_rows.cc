#include "tools/top/top_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "dataplane/attach/text.h"
#include "dataplane/base/text/printable.h"
#include "dataplane/wire/headers/addresses.h"

namespace paceline::tools {

namespace {

constexpr std::array<const char*, 5> kTypeNames{"RC", "UC", "UD", "XRC_INI", "XRC_TGT"};
constexpr std::array<const char*, 7> kStateNames{"RESET", "INIT", "RTR", "RTS",
                                                 "SQD",   "SQE",  "ERR"};

template <std::size_t N>
std::string name_in(const std::array<const char*, N>& names, std::size_t index) {
  return index < N ? names[index] : fmt::format("{}", index);
}

// Growth of a counter. A counter that went back is of a restarted service.
double growth(std::uint64_t before, std::uint64_t now) {
  return now >= before ? static_cast<double>(now - before) : 0;
}

double span_of(std::uint64_t before_ns, std::uint64_t now_ns, double otherwise) {
  return before_ns != 0 && now_ns > before_ns ? static_cast<double>(now_ns - before_ns) * 1e-9
                                              : otherwise;
}

LimiterShares shares_of(const LimiterShares& grown) {
  double sum = 0;
  for (const double part : grown) sum += part;
  LimiterShares shares{};
  if (sum <= 0) return shares;
  for (std::size_t i = 0; i < shares.size(); ++i) shares[i] = grown[i] / sum;
  return shares;
}

const NicLook* find_nic(const HostSample& sample, const std::string& name) {
  const auto at = std::find_if(sample.nics.begin(), sample.nics.end(),
                               [&](const NicLook& nic) { return nic.name == name; });
  return at == sample.nics.end() ? nullptr : &*at;
}

// The upper end of the bucket that the 99th percentile lies in.
double p99_slowdown(const telemetry::MessagesBySize& before, const telemetry::MessagesBySize& now) {
  std::array<double, telemetry::kSlowdownBuckets> grown{};
  double sum = 0;
  for (std::size_t size = 0; size < 2; ++size) {
    for (std::size_t k = 0; k < grown.size(); ++k) {
      const double more = growth(before[size].slowdown[k], now[size].slowdown[k]);
      grown[k] += more;
      sum += more;
    }
  }
  if (sum <= 0) return 0;
  double below = 0;
  for (std::size_t k = 0; k < grown.size(); ++k) {
    below += grown[k];
    if (below >= 0.99 * sum) return std::exp2(static_cast<double>(k + 1) / 8);
  }
  return std::exp2(static_cast<double>(grown.size()) / 8);
}

NicRow nic_row(const NicLook* before, const NicLook& now, double otherwise) {
  NicRow row;
  row.name = printable(now.name);
  row.algorithm = printable(now.algorithm);
  row.arm = now.arm;
  row.epoch = now.epoch;
  row.guard = now.guard;
  row.plugin_quarantines = now.value("plugin_quarantines");
  row.loans_overdue = now.value("port_loans_overdue");
  row.link_bps = now.rate_bps;
  row.queue_bytes = now.value("last_hop_queue_bytes");
  row.queue_pairs = now.value("queue_pairs");
  if (before == nullptr) return row;
  const double seconds = span_of(before->at_ns, now.at_ns, otherwise);
  if (seconds <= 0) return row;
  const auto more = [&](const char* series) {
    return growth(before->value(series), now.value(series));
  };
  const double sent = more("tx_data_bytes");
  row.tx_bps = sent * 8 / seconds;
  row.lent_share = sent > 0 ? std::min(1.0, more("tx_lent_bytes") / sent) : 0;
  row.rx_bps = more("rx_data_bytes") * 8 / seconds;
  const double arrived = more("rx_data_packets");
  row.marked_share = arrived > 0 ? more("rx_ce_packets") / arrived : 0;
  row.cnps_per_s = more("cnps_received") / seconds;
  row.resent_per_s = more("retransmitted_packets") / seconds;
  for (std::size_t size = 0; size < telemetry::kMessageSizes; ++size) {
    row.messages_per_s +=
        growth(before->messages[size].completed, now.messages[size].completed) / seconds;
  }
  row.p99_slowdown = p99_slowdown(before->messages, now.messages);
  LimiterShares grown{};
  for (std::size_t i = 0; i < grown.size(); ++i) {
    grown[i] = more(fmt::format("limited_{}_ns", cc::kLimiterNames[i]).c_str());
  }
  row.limited = shares_of(grown);
  return row;
}

std::string peer_text(const telemetry::QueuePairRecord& record) {
  wire::IpAddress address;
  bool any = false;
  for (std::size_t i = 0; i < record.peer.size(); ++i) {
    address.bytes[i] = static_cast<std::byte>(record.peer[i]);
    any = any || record.peer[i] != 0;
  }
  return any ? wire::to_text(address) : std::string("-");
}

PairRow pair_row(const std::string& nic, const telemetry::QueuePairRecord* before,
                 const telemetry::QueuePairRecord& now, double otherwise) {
  PairRow row;
  row.nic = nic;
  row.number = now.number;
  row.peer = peer_text(now);
  row.pid = now.pid;
  row.type = name_in(kTypeNames, now.type);
  row.state = name_in(kStateNames, now.state);
  row.algorithm = printable(attach::text_of(now.algorithm));
  row.on_fallback = now.on_fallback != 0;
  row.allowed_bps = static_cast<double>(now.rate_bps);
  row.rtt_us = static_cast<double>(now.srtt_ns) * 1e-3;
  row.min_rtt_us = static_cast<double>(now.min_rtt_ns) * 1e-3;
  row.inflight_bytes = now.inflight_bytes;
  row.backlog_bytes = now.backlog_bytes;
  if (before == nullptr) return row;
  const double seconds = span_of(before->at_ns, now.at_ns, otherwise);
  if (seconds <= 0) return row;
  row.tx_bps = growth(before->tx_bytes, now.tx_bytes) * 8 / seconds;
  row.rx_bps = growth(before->rx_bytes, now.rx_bytes) * 8 / seconds;
  row.cnps_per_s = growth(before->cnps_received, now.cnps_received) / seconds;
  row.resent_per_s = growth(before->retransmitted_packets, now.retransmitted_packets) / seconds;
  LimiterShares grown{};
  for (std::size_t i = 0; i < grown.size(); ++i) {
    grown[i] = growth(before->limiter_ns[i], now.limiter_ns[i]);
  }
  row.limited = shares_of(grown);
  return row;
}

bool busier(const PairRow& a, const PairRow& b) {
  const double x = a.tx_bps + a.rx_bps;
  const double y = b.tx_bps + b.rx_bps;
  if (x != y) return x > y;
  return std::pair(a.nic, a.number) < std::pair(b.nic, b.number);
}

// One row for all queue pairs between a NIC and a peer. Shares are weighted by traffic, where there
// is any.
std::vector<PairRow> by_peer(const std::vector<PairRow>& pairs) {
  std::map<std::pair<std::string, std::string>, PairRow> peers;
  for (const PairRow& pair : pairs) {
    const auto [at, fresh] = peers.try_emplace({pair.nic, pair.peer});
    PairRow& row = at->second;
    const double weight = pair.tx_bps + 1;
    if (fresh) {
      row = pair;
      row.number = 0;
      row.limited = {};
    } else {
      row.pairs += 1;
      row.tx_bps += pair.tx_bps;
      row.rx_bps += pair.rx_bps;
      row.allowed_bps += pair.allowed_bps;
      row.rtt_us = std::max(row.rtt_us, pair.rtt_us);
      row.min_rtt_us = row.min_rtt_us == 0    ? pair.min_rtt_us
                       : pair.min_rtt_us == 0 ? row.min_rtt_us
                                              : std::min(row.min_rtt_us, pair.min_rtt_us);
      row.cnps_per_s += pair.cnps_per_s;
      row.resent_per_s += pair.resent_per_s;
      row.inflight_bytes += pair.inflight_bytes;
      row.backlog_bytes += pair.backlog_bytes;
      row.on_fallback = row.on_fallback || pair.on_fallback;
      if (row.type != pair.type) row.type = "mixed";
      if (row.state != pair.state) row.state = "mixed";
      if (row.algorithm != pair.algorithm) row.algorithm = "mixed";
      if (row.pid != pair.pid) row.pid = 0;
    }
    for (std::size_t i = 0; i < row.limited.size(); ++i) {
      row.limited[i] += weight * pair.limited[i];
    }
  }
  std::vector<PairRow> rows;
  for (auto& [key, row] : peers) {
    row.limited = shares_of(row.limited);
    rows.push_back(std::move(row));
  }
  std::sort(rows.begin(), rows.end(), busier);
  return rows;
}

}  // namespace

TopRows top_rows(const HostSample& before, const HostSample& now, double seconds) {
  TopRows rows;
  rows.seconds = before.nics.empty() ? 0 : seconds;
  for (const NicLook& nic : now.nics) {
    const NicLook* const earlier = find_nic(before, nic.name);
    rows.nics.push_back(nic_row(earlier, nic, rows.seconds));
    std::map<std::uint32_t, const telemetry::QueuePairRecord*> old;
    if (earlier != nullptr) {
      for (const auto& record : earlier->queue_pairs) old.emplace(record.number, &record);
    }
    for (const auto& record : nic.queue_pairs) {
      const auto at = old.find(record.number);
      rows.queue_pairs.push_back(pair_row(
          printable(nic.name), at == old.end() ? nullptr : at->second, record, rows.seconds));
    }
  }
  rows.peers = by_peer(rows.queue_pairs);
  std::sort(rows.queue_pairs.begin(), rows.queue_pairs.end(), busier);
  return rows;
}

std::string main_limiter(const LimiterShares& shares) {
  const auto most = std::max_element(shares.begin(), shares.end());
  if (*most <= 0) return "-";
  return fmt::format("{} {:.0f} %",
                     cc::kLimiterNames[static_cast<std::size_t>(most - shares.begin())],
                     *most * 100);
}

}  // namespace paceline::tools
