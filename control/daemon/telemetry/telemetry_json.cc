#include "control/daemon/telemetry/telemetry_json.h"

#include <algorithm>
#include <cstring>

#include "control/looks/look_json.h"

namespace paceline::daemon {

namespace {

// transport::QpType and QpState in their order; a room that this one does not include.
constexpr std::array<std::string_view, 5> kTypes{"RC", "UC", "UD", "XRC_INI", "XRC_TGT"};
constexpr std::array<std::string_view, 7> kStates{"reset", "init", "rtr",  "rts",
                                                  "sqd",   "sqe",  "error"};
constexpr std::uint64_t kNone = ~std::uint64_t{0};
constexpr std::int64_t kOneSecond = 1'000'000'000;

template <std::size_t N>
std::string text_of(const std::array<char, N>& chars) {
  return {chars.data(), ::strnlen(chars.data(), N)};
}

// Gigabits a second of a counter of bytes over the last second; null: not known.
Json rate_of(const Sampler& sampler, std::size_t nic, std::string_view series, std::int64_t now) {
  const auto index = sampler.find_series(series);
  if (!index) return nullptr;
  const std::array<std::size_t, 1> names{*index};
  const History& history = sampler.history(nic);
  // The slot that is being filled is not told: one more before it makes a whole second.
  const std::int64_t from = now - kOneSecond - history.span().slot_ns;
  const HistoryPart part = history.part(from, now, names);
  std::optional<std::uint64_t> bytes;
  for (const auto& value : part.series[0].values) {
    if (value) bytes = bytes.value_or(0) + *value;
  }
  if (!bytes) return nullptr;
  return static_cast<double>(*bytes) * 8 /
         (static_cast<double>(part.slots) * static_cast<double>(part.slot_ns));
}

}  // namespace

Json nic_summary(const Sampler& sampler, std::size_t nic, std::int64_t now_unix_ns) {
  const telemetry::NicText& text = sampler.nics()[nic];
  const telemetry::NicBody& body = sampler.latest(nic).body;
  Json out{{"name", text.name},
           {"link_gbps", static_cast<double>(text.rate_bps) / 1e9},
           {"worker", text.worker},
           {"mtu", text.mtu},
           {"telemetry", telemetry_state_name(sampler.state(nic))},
           {"sampled_at_unix_ns", sampler.sampled_at_unix_ns(nic)},
           {"algorithm", text_of(body.algorithm)},
           {"generation", body.generation},
           {"arm", body.arm},
           {"epoch", body.epoch},
           {"guard", body.guard},
           {"tx_gbps", rate_of(sampler, nic, "tx_data_bytes", now_unix_ns)},
           {"rx_gbps", rate_of(sampler, nic, "rx_data_bytes", now_unix_ns)}};
  if (const auto count = sampler.find_series("queue_pairs")) {
    out["queue_pairs"] = sampler.values(nic)[*count];
  }
  if (const auto count = sampler.find_series("plugin_quarantines")) {
    out["plugin_quarantines"] = sampler.values(nic)[*count];
  }
  return out;
}

Json nic_details(const Sampler& sampler, std::size_t nic, std::int64_t now_unix_ns) {
  Json out = nic_summary(sampler, nic, now_unix_ns);
  Json values = Json::object();
  for (std::size_t i = 0; i < sampler.series().size(); ++i) {
    values[sampler.series()[i].name] = sampler.values(nic)[i];
  }
  out["values"] = std::move(values);
  return out;
}

Json queue_pair_json(const telemetry::QueuePairRecord& r) {
  Json limits = Json::object();
  for (std::size_t i = 0; i < r.limiter_ns.size(); ++i) {
    limits[std::string(cc::limiter_name(static_cast<cc::Limiter>(i)))] = r.limiter_ns[i];
  }
  return {{"number", r.number},
          {"peer", looks::gid_text(r.peer)},
          {"peer_number", r.peer_number},
          {"user", r.user},
          {"pid", r.pid},
          {"type", r.type < kTypes.size() ? kTypes[r.type] : "unknown"},
          {"state", r.state < kStates.size() ? kStates[r.state] : "unknown"},
          {"limiter", cc::limiter_name(static_cast<cc::Limiter>(r.limiter))},
          {"on_fallback", r.on_fallback != 0},
          {"algorithm", text_of(r.algorithm)},
          {"rate_gbps", static_cast<double>(r.rate_bps) / 1e9},
          {"window_bytes", r.window_bytes == kNone ? Json() : Json(r.window_bytes)},
          {"inflight_bytes", r.inflight_bytes},
          {"backlog_bytes", r.backlog_bytes},
          {"srtt_ns", r.srtt_ns},
          {"min_rtt_ns", r.min_rtt_ns},
          {"one_way_there_ns", r.one_way_there_ns},
          {"one_way_back_ns", r.one_way_back_ns},
          {"tx_bytes", r.tx_bytes},
          {"rx_bytes", r.rx_bytes},
          {"retransmitted_packets", r.retransmitted_packets},
          {"timeouts", r.timeouts},
          {"naks_received", r.naks_received},
          {"rnr_received", r.rnr_received},
          {"cnps_received", r.cnps_received},
          {"cnps_sent", r.cnps_sent},
          {"completions", r.completions},
          {"limited_ns", std::move(limits)}};
}

Json explanation_json(const Explanation& e) {
  Json shares = Json::object();
  for (std::size_t i = 0; i < e.shares.size(); ++i) {
    shares[std::string(cc::limiter_name(static_cast<cc::Limiter>(i)))] = e.shares[i];
  }
  Json findings = Json::array();
  for (const Finding& f : e.findings) {
    findings.push_back({{"what", f.what}, {"share", f.share}, {"sentence", f.sentence}});
  }
  return {{"seconds", e.seconds}, {"tx_gbps", e.gbps},    {"rx_gbps", e.rx_gbps},
          {"shares", shares},     {"verdict", e.verdict}, {"findings", findings}};
}

Json history_json(const HistoryPart& part) {
  const auto numbers = [](const std::vector<std::optional<std::uint64_t>>& values) {
    Json out = Json::array();
    for (const auto& value : values) out.push_back(value ? Json(*value) : Json());
    return out;
  };
  Json series = Json::array();
  for (const SeriesPart& s : part.series) {
    const bool gauge = s.info->kind == telemetry::SeriesKind::gauge;
    Json one{{"name", s.info->name},
             {"unit", s.info->unit},
             {"kind", gauge ? "gauge" : "counter"},
             {"values", numbers(s.values)}};
    if (gauge) one["highest"] = numbers(s.highest);
    series.push_back(std::move(one));
  }
  return {{"from_unix_ns", part.first_unix_ns},
          {"slot_ns", part.slot_ns},
          {"slots", part.slots},
          {"series", std::move(series)}};
}

}  // namespace paceline::daemon
