#include "control/experiment/live/plan/plan.h"

#include "control/experiment/live/plan/moment.h"
#include "control/experiment/text/json_writer.h"

namespace paceline::experiment::live {

namespace {

// In whole picoseconds, so that the digested text loses nothing of a time.
void time(JsonWriter& json, std::string_view name, Picos value) {
  json.member(name, static_cast<std::uint64_t>(value.count));
}

void write_arm(JsonWriter& json, const config::Arm& arm) {
  json.begin_object(JsonWriter::Layout::compact);
  json.member("name", std::string_view(arm.name));
  json.member("algorithm", std::string_view(arm.cc.algorithm));
  json.member("profile", std::string_view(arm.cc.profile));
  json.member("fallback", std::string_view(arm.cc.fallback));
  json.member("fallback_profile", std::string_view(arm.cc.fallback_profile));
  json.key("params");
  json.begin_object();
  for (const config::ParamValue& param : arm.cc.params) json.member(param.name, param.value);
  json.end_object();
  json.end_object();
}

void write_metrics(JsonWriter& json, std::string_view name,
                   const std::vector<BlockMetric>& metrics) {
  json.key(name);
  json.begin_array(JsonWriter::Layout::compact);
  for (const BlockMetric metric : metrics) json.value(info(metric).name);
  json.end_array();
}

void write_places(JsonWriter& json, const Plan& plan) {
  json.key("arms");
  json.begin_array();
  for (const config::Arm& arm : plan.arms) write_arm(json, arm);
  json.end_array();
  json.key("clusters");
  json.begin_array();
  for (const Cluster& cluster : plan.clusters) {
    json.begin_object(JsonWriter::Layout::compact);
    json.member("name", std::string_view(cluster.name));
    json.list("nics", cluster.nics);
    json.end_object();
  }
  json.end_array();
}

void write_rules(JsonWriter& json, const Plan& plan) {
  json.member("pairs_min", std::uint64_t{plan.pairs_min});
  json.member("pairs_max", std::uint64_t{plan.pairs_max});
  json.member("alpha", plan.alpha);
  json.member("minimum_effect", plan.minimum_effect);
  json.member("power", plan.power);
  json.member("expected_sd", plan.expected_sd);
  json.member("primary", info(plan.primary).name);
  write_metrics(json, "metrics", plan.metrics);
  write_metrics(json, "placebos", plan.placebos);
  json.list("load_strata", plan.load_strata);
  json.member("closed_loop", plan.closed_loop);
  json.member("cuped", plan.cuped);
  json.member("telemetry_loss", plan.telemetry_loss);
  json.key("guard");
  json.begin_object(JsonWriter::Layout::compact);
  json.member("retransmitted_share", plan.hard.retransmitted_share);
  json.member("retransmitted_packets", plan.hard.retransmitted_packets);
  json.member("pause_share", plan.hard.pause_share);
  json.member("stall_ms", plan.hard.stall_ms);
  json.member("drops_packets", plan.hard.drops_packets);
  json.end_object();
  json.member("soft_alpha", plan.soft_alpha);
  json.key("soft");
  json.begin_array();
  for (const SoftLimit& limit : plan.soft) {
    json.begin_object(JsonWriter::Layout::compact);
    json.member("metric", info(limit.metric).name);
    json.member("worse_by", limit.worse_by);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string_view to_text(Design design) {
  switch (design) {
    case Design::switchback:
      return "switchback";
    case Design::receiver_ports:
      return "receiver_ports";
    case Design::paired_rails:
      return "paired_rails";
  }
  return "?";
}

Picos washout_for(const Timing& timing) {
  return later(later(timing.fct_p999 * 5, timing.lease * 3),
               later(timing.iteration, timing.rtt * 10));
}

Picos block_for(Picos washout, const Timing& timing) {
  return later(washout * 10, timing.iteration * 30);
}

std::vector<SoftLimit> default_soft_limits() {
  return {{BlockMetric::goodput, 0.05},           {BlockMetric::p99_short, 0.20},
          {BlockMetric::collective_time, 0.10},   {BlockMetric::fairness, 0.1},
          {BlockMetric::cycles_per_packet, 0.15}, {BlockMetric::completed_share, 0.01}};
}

bool is_null_experiment(const Plan& plan) {
  if (plan.arms.size() != 2) return false;
  const config::CcConfig& a = plan.arms[0].cc;
  const config::CcConfig& b = plan.arms[1].cc;
  if (a.algorithm != b.algorithm || a.profile != b.profile || a.fallback != b.fallback ||
      a.fallback_profile != b.fallback_profile || a.params.size() != b.params.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.params.size(); ++i) {
    if (a.params[i].name != b.params[i].name || a.params[i].value != b.params[i].value) {
      return false;
    }
  }
  return true;
}

std::string plan_text(const Plan& plan) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", std::uint64_t{plan.schema});
  json.member("name", std::string_view(plan.name));
  json.member("design", to_text(plan.design));
  json.member("seed", plan.seed);
  write_places(json, plan);
  time(json, "fct_p999_ps", plan.timing.fct_p999);
  time(json, "lease_ps", plan.timing.lease);
  time(json, "iteration_ps", plan.timing.iteration);
  time(json, "rtt_ps", plan.timing.rtt);
  time(json, "block_ps", plan.block);
  time(json, "washout_ps", plan.washout);
  json.member("carryover_blocks", std::uint64_t{plan.carryover_blocks});
  time(json, "stratum_ps", plan.stratum);
  json.member("whole_every", std::uint64_t{plan.whole_every});
  time(json, "hold_ps", plan.hold);
  if (plan.begin_unix_ns != 0)
    json.member("begin", std::string_view(moment_text(plan.begin_unix_ns)));
  write_rules(json, plan);
  if (!plan.plugins.empty()) {
    json.key("plugins");
    json.begin_object();
    for (const Plan::Plugin& plugin : plan.plugins) {
      json.member(plugin.name, std::string_view(plugin.sha256));
    }
    json.end_object();
  }
  json.member("calibration", std::string_view(plan.calibration));
  json.member("no_calibration", std::string_view(plan.no_calibration));
  json.end_object();
  return std::move(json).finish();
}

}  // namespace paceline::experiment::live
