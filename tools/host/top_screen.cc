#include "tools/host/top_screen.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace paceline::tools {

namespace {

constexpr std::array<const char*, 5> kUnits{"", "k", "M", "G", "T"};

std::string scaled(double value, const char* unit) {
  if (value < 0.5) return "0";
  std::size_t k = 0;
  while (value >= 999.5 && k + 1 < kUnits.size()) {
    value /= 1000;
    ++k;
  }
  return fmt::format("{:.{}f} {}{}", value,
                     k == 0 || value >= 99.95 ? 0
                     : value >= 9.995         ? 1
                                              : 2,
                     kUnits[k], unit);
}

std::string count_text(double per_second) {
  return per_second < 0.05   ? "0"
         : per_second < 9.95 ? fmt::format("{:.1f}", per_second)
                             : scaled(per_second, "");
}

std::string micros_text(double us) { return us <= 0 ? "-" : fmt::format("{:.1f}", us); }

using Lines = std::vector<std::string>;

// Cut to the width of the terminal. All that is printed here is ASCII.
void put(Lines& lines, std::string line, const TopView& view) {
  if (view.width != 0 && line.size() > view.width) line.resize(view.width);
  while (!line.empty() && line.back() == ' ') line.pop_back();
  lines.push_back(std::move(line));
}

void put_nics(Lines& lines, const TopRows& rows, const TopView& view) {
  put(lines,
      fmt::format("{:<12} {:<9} {:>10} {:>10} {:>10} {:>7} {:>7} {:>8} {:>8} {:>9} {:>5}  {}",
                  "NIC", "CC", "send", "receive", "msgs/s", "p99", "marked", "CNPs/s", "resent/s",
                  "queue", "QPs", "limited by"),
      view);
  for (const NicRow& nic : rows.nics) {
    std::string note = main_limiter(nic.limited);
    if (nic.epoch != 0) note += fmt::format("  arm {} of a trial", nic.arm);
    if (nic.guard != 0) note += fmt::format("  GUARD {}", nic.guard);
    if (nic.plugin_quarantines != 0) {
      note += fmt::format("  QUARANTINE {}", nic.plugin_quarantines);
    }
    if (nic.loans_overdue != 0) note += fmt::format("  LOANS OVERDUE {}", nic.loans_overdue);
    put(lines,
        fmt::format("{:<12} {:<9} {:>10} {:>10} {:>10} {:>7} {:>7} {:>8} {:>8} {:>9} {:>5}  {}",
                    nic.name, nic.algorithm, rate_text(nic.tx_bps), rate_text(nic.rx_bps),
                    count_text(nic.messages_per_s),
                    nic.p99_slowdown > 0 ? fmt::format("{:.1f}x", nic.p99_slowdown) : "-",
                    fmt::format("{:.1f} %", nic.marked_share * 100), count_text(nic.cnps_per_s),
                    count_text(nic.resent_per_s), size_text(static_cast<double>(nic.queue_bytes)),
                    nic.queue_pairs, note),
        view);
  }
}

void put_pairs(Lines& lines, const std::vector<PairRow>& pairs, bool peers, const TopView& view) {
  put(lines,
      fmt::format("{:<12} {:>8} {:<20} {:<5} {:<5} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8} {:>8} "
                  "{:>9}  {}",
                  "NIC", peers ? "QPs" : "QP", "peer", "type", "state", "send", "receive",
                  "allowed", "RTT us", "least", "CNPs/s", "resent/s", "backlog", "limited by"),
      view);
  if (pairs.empty()) put(lines, "(no queue pairs)", view);
  for (std::size_t i = std::min(view.first, pairs.size()); i < pairs.size(); ++i) {
    if (view.height != 0 && lines.size() + (view.keys ? 2 : 1) > view.height) break;
    const PairRow& pair = pairs[i];
    put(lines,
        fmt::format("{:<12} {:>8} {:<20} {:<5} {:<5} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8} {:>8} "
                    "{:>9}  {}{}",
                    pair.nic, peers ? pair.pairs : pair.number, pair.peer, pair.type, pair.state,
                    rate_text(pair.tx_bps), rate_text(pair.rx_bps), rate_text(pair.allowed_bps),
                    micros_text(pair.rtt_us), micros_text(pair.min_rtt_us),
                    count_text(pair.cnps_per_s), count_text(pair.resent_per_s),
                    size_text(static_cast<double>(pair.backlog_bytes)), main_limiter(pair.limited),
                    pair.on_fallback ? ", on fallback" : ""),
        view);
  }
}

using OrderedJson = nlohmann::ordered_json;

OrderedJson limited_json(const LimiterShares& shares) {
  OrderedJson out = OrderedJson::object();
  for (std::size_t i = 0; i < shares.size(); ++i) {
    out[std::string(cc::kLimiterNames[i])] = shares[i];
  }
  return out;
}

OrderedJson pair_json(const PairRow& pair, bool peer) {
  OrderedJson out = {{"nic", pair.nic}};
  if (peer) {
    out["queue_pairs"] = pair.pairs;
  } else {
    out["number"] = pair.number;
  }
  out.update({{"peer", pair.peer},
              {"pid", pair.pid},
              {"type", pair.type},
              {"state", pair.state},
              {"algorithm", pair.algorithm},
              {"on_fallback", pair.on_fallback},
              {"tx_bps", pair.tx_bps},
              {"rx_bps", pair.rx_bps},
              {"allowed_bps", pair.allowed_bps},
              {"rtt_us", pair.rtt_us},
              {"min_rtt_us", pair.min_rtt_us},
              {"cnps_per_s", pair.cnps_per_s},
              {"resent_per_s", pair.resent_per_s},
              {"inflight_bytes", pair.inflight_bytes},
              {"backlog_bytes", pair.backlog_bytes},
              {"limited", limited_json(pair.limited)}});
  return out;
}

}  // namespace

std::string rate_text(double bits_per_second) { return scaled(bits_per_second, "b/s"); }

std::string size_text(double bytes) { return scaled(bytes, "B"); }

std::string top_text(const TopRows& rows, const TopView& view) {
  Lines lines;
  put_nics(lines, rows, view);
  if (view.table != TopTable::nics) {
    lines.emplace_back();
    const bool peers = view.table == TopTable::peers;
    put_pairs(lines, peers ? rows.peers : rows.queue_pairs, peers, view);
  }
  if (view.height != 0) {
    const std::size_t room = view.height - (view.keys ? 1 : 0);
    if (lines.size() > room) lines.resize(room);
    if (view.keys) {
      while (lines.size() < room) lines.emplace_back();
      put(lines, "n NICs   p peers   c queue pairs   j k scroll   space stop and go   q quit",
          view);
    }
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string top_json(const TopRows& rows) {
  OrderedJson nics = OrderedJson::array();
  for (const NicRow& nic : rows.nics) {
    nics.push_back({{"name", nic.name},
                    {"algorithm", nic.algorithm},
                    {"arm", nic.arm},
                    {"epoch", nic.epoch},
                    {"guard", nic.guard},
                    {"plugin_quarantines", nic.plugin_quarantines},
                    {"loans_overdue", nic.loans_overdue},
                    {"link_bps", nic.link_bps},
                    {"tx_bps", nic.tx_bps},
                    {"rx_bps", nic.rx_bps},
                    {"messages_per_s", nic.messages_per_s},
                    {"p99_slowdown", nic.p99_slowdown},
                    {"lent_share", nic.lent_share},
                    {"marked_share", nic.marked_share},
                    {"cnps_per_s", nic.cnps_per_s},
                    {"resent_per_s", nic.resent_per_s},
                    {"queue_bytes", nic.queue_bytes},
                    {"queue_pairs", nic.queue_pairs},
                    {"limited", limited_json(nic.limited)}});
  }
  OrderedJson peers = OrderedJson::array();
  for (const PairRow& pair : rows.peers) peers.push_back(pair_json(pair, true));
  OrderedJson pairs = OrderedJson::array();
  for (const PairRow& pair : rows.queue_pairs) pairs.push_back(pair_json(pair, false));
  return OrderedJson{{"schema", 1},
                     {"seconds", rows.seconds},
                     {"nics", std::move(nics)},
                     {"peers", std::move(peers)},
                     {"queue_pairs", std::move(pairs)}}
      .dump();
}

}  // namespace paceline::tools
