#include <nlohmann/json.hpp>

#include "tools/top/top_screen.h"

namespace paceline::tools {

namespace {

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
  OrderedJson fabric;  // null: not emulated
  if (rows.fabric.emulated) {
    fabric = {{"queued_bytes", rows.fabric.queued_bytes},
              {"queued_at", rows.fabric.queued_at},
              {"most_bytes", rows.fabric.most_bytes},
              {"most_at", rows.fabric.most_at}};
  }
  return OrderedJson{{"schema", 1},
                     {"seconds", rows.seconds},
                     {"nics", std::move(nics)},
                     {"peers", std::move(peers)},
                     {"queue_pairs", std::move(pairs)},
                     {"fabric", std::move(fabric)}}
      .dump(-1, ' ', true);
}

}  // namespace paceline::tools
