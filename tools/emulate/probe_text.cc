#include "tools/emulate/probe_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace paceline::tools {

namespace {

using Json = nlohmann::ordered_json;

void add_counts(const probing::PathCounts& counts, Json& out) {
  out["sent"] = counts.sent;
  out["answered"] = counts.answered;
  out["lost"] = counts.lost;
}

Json quantiles(const ProbeQuantiles& of) {
  return {{"p50", of.p50}, {"p99", of.p99}, {"most", of.most}};
}

Json pair_json(const ProbedPair& pair) {
  Json out{{"from", pair.from}, {"to", pair.to}};
  add_counts(pair.counts, out);
  if (!pair.clock) return out;
  out["there_ns"] = quantiles(pair.there_ns);
  out["offset_ns"] = pair.offset_ns;
  out["true_offset_ns"] = pair.true_offset_ns;
  out["drift_ppb"] = pair.drift_ppb;
  out["true_drift_ppb"] = pair.true_drift_ppb;
  out["uncertainty_ns"] = pair.uncertainty_ns;
  out["clock_restarts"] = pair.restarts;
  return out;
}

}  // namespace

std::string probe_text(const ProbeReport& report) {
  std::string text =
      fmt::format("probes     {} sent, {} lost; one way p50 {:.2f} us, p99 {:.2f}, most {:.2f}\n",
                  report.totals.sent, report.totals.lost, report.there_ns.p50 / 1e3,
                  report.there_ns.p99 / 1e3, report.there_ns.most / 1e3);
  text += fmt::format(
      "clocks     offsets known within p50 {:.0f} ns, p99 {:.0f}, most {:.0f}; drifts within p50 "
      "{:.0f} ppb, p99 {:.0f}; found set {} times\n",
      report.offset_error_ns.p50, report.offset_error_ns.p99, report.offset_error_ns.most,
      report.drift_error_ppb.p50, report.drift_error_ppb.p99, report.restarts);
  return text;
}

Json probe_json(const ProbeReport& report) {
  Json out = Json::object();
  add_counts(report.totals, out);
  out["there_ns"] = quantiles(report.there_ns);
  out["offset_error_ns"] = quantiles(report.offset_error_ns);
  out["drift_error_ppb"] = quantiles(report.drift_error_ppb);
  out["clock_restarts"] = report.restarts;
  Json& pairs = out["pairs"] = Json::array();
  for (const ProbedPair& pair : report.pairs) pairs.push_back(pair_json(pair));
  return out;
}

}  // namespace paceline::tools
