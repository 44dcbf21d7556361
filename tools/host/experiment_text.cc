#include "tools/host/experiment_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "control/experiment/analysis/statistics.h"
#include "control/experiment/live/analysis/confidence_sequence.h"
#include "control/experiment/live/blocks/block_metrics.h"
#include "control/experiment/live/blocks/metric_words.h"
#include "control/experiment/live/plan/moment.h"
#include "control/experiment/live/plan/planning.h"
#include "control/experiment/progress.h"
#include "dataplane/base/text/printable.h"
#include "dataplane/config/toml/quantity.h"

namespace paceline::tools {

namespace live = experiment::live;
using Json = nlohmann::json;

namespace {

constexpr std::uint32_t kPairsShown = 24;

std::string arm_text(const config::Arm& arm) {
  std::string out = fmt::format("{} ({}, profile {}", arm.name, arm.cc.algorithm, arm.cc.profile);
  for (const auto& param : arm.cc.params) out += fmt::format(", {} = {}", param.name, param.value);
  return out + ")";
}

double seconds_of(Picos t) { return static_cast<double>(t.count) / 1e12; }

// "AB BA AB ...": for one cluster, the arms of the first pairs.
std::string order_text(const live::Schedule& schedule, std::uint32_t cluster) {
  std::string out;
  for (std::uint32_t block = 0; block < std::min(schedule.blocks(), 2 * kPairsShown); ++block) {
    if (block > 0 && block % 2 == 0) out += ' ';
    out += schedule.arm(block, cluster) == 0 ? 'A' : 'B';
  }
  return out + (schedule.pairs() > kPairsShown ? " ..." : "");
}

// The smallest true effect that a test of this many pairs detects with the plan's power. On a
// logarithmic scale, as a share.
std::string least_effect(double sd, std::uint32_t pairs, const live::Plan& plan) {
  const double mean = experiment::minimum_detectable_mean(sd, pairs, plan.alpha, plan.power);
  return fmt::format("{:.1f} %", 100 * std::expm1(mean));
}

std::string power_text(const live::Plan& plan) {
  const double effect = live::log_effect(plan.minimum_effect);
  std::string out = fmt::format(
      "Power:       an effect of {:g} % is looked for, at level {:g}, with power {:g}\n",
      100 * plan.minimum_effect, plan.alpha, plan.power);
  if (plan.expected_sd <= 0) {
    out +=
        "             pairs.expected_sd is not given (an A/A run tells it); if pairs spread by\n";
  }
  for (const double sd : plan.expected_sd > 0 ? std::vector<double>{plan.expected_sd}
                                              : std::vector<double>{0.02, 0.05, 0.1, 0.2}) {
    const std::uint32_t needed =
        live::pairs_needed(effect, sd, plan.alpha, plan.power, plan.pairs_min);
    out += fmt::format("             sd {:<5g} {} pairs needed; {} pairs find {}, {} pairs {}{}\n",
                       sd, needed, plan.pairs_min, least_effect(sd, plan.pairs_min, plan),
                       plan.pairs_max, least_effect(sd, plan.pairs_max, plan),
                       needed > plan.pairs_max ? "; more than pairs.max" : "");
  }
  return out;
}

std::string guard_text(const live::Plan& plan) {
  std::string out = fmt::format(
      "Guard:       the service goes back by itself on retransmissions above {:g} and {} packets, "
      "pauses above {:g} %,\n             a stall of {:g} ms or {} drops at the NIC's port, each "
      "in "
      "a look of 100 ms\n",
      plan.hard.retransmitted_share, plan.hard.retransmitted_packets, 100 * plan.hard.pause_share,
      plan.hard.stall_ms, plan.hard.drops_packets);
  for (const live::SoftLimit& soft : plan.soft) {
    out += fmt::format("             {} worse by more than {}\n", live::info(soft.metric).label,
                       live::effect_words(soft.metric, soft.worse_by).substr(1));
  }
  return out;
}

std::string text_of(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? printable(at->get<std::string>()) : std::string();
}

double number_of(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_number() ? at->get<double>() : std::nan("");
}

std::string count_of(const Json& object, const char* name) {
  const double count = number_of(object, name);
  return std::isfinite(count) ? fmt::format("{:g}", count) : "?";
}

const Json& list_of(const Json& object, const char* name) {
  static const Json none = Json::array();
  const auto at = object.find(name);
  return at != object.end() && at->is_array() ? *at : none;
}

std::string reasons_text(const Json& object) {
  std::string out;
  for (const Json& reason : list_of(object, "reasons")) {
    if (reason.is_string()) out += "  " + reason.get<std::string>() + "\n";
  }
  return out;
}

}  // namespace

std::string estimate_text(const Json& estimate) {
  const auto metric = live::block_metric_named(text_of(estimate, "metric"));
  if (!metric) return "-";
  return fmt::format(
      "{} {} {}", live::info(*metric).name,
      live::effect_words(*metric, number_of(estimate, "effect")),
      live::interval_words(*metric, {number_of(estimate, "low"), number_of(estimate, "high")}));
}

std::string experiment_plan_text(const live::Plan& plan, const live::Schedule& schedule) {
  const double block_s = seconds_of(plan.block);
  std::string out = fmt::format("{}: {}\n", plan.name, live::to_text(plan.design));
  out += fmt::format("A, champion: {}\nB, tried:    {}\n", arm_text(plan.arms[0]),
                     arm_text(plan.arms[1]));
  for (std::uint32_t c = 0; c < plan.clusters.size(); ++c) {
    const live::Cluster& cluster = plan.clusters[c];
    out +=
        fmt::format("Takes part:  {}\n",
                    cluster.nics.empty()
                        ? "every NIC of the service, and so all of its traffic in blocks of B"
                        : fmt::format("{}{}", plan.clusters.size() > 1 ? cluster.name + ": " : "",
                                      fmt::join(cluster.nics, ", ")));
    out += fmt::format("Order:       {}\n", order_text(schedule, c));
  }
  out += fmt::format(
      "Blocks:      {} each, of which {} wash-out; a pair takes {}\n"
      "Takes:       {} to {} pairs, {} at least and {} at most\n",
      config::format_time(plan.block), config::format_time(plan.washout),
      experiment::format_duration(2 * block_s), plan.pairs_min, plan.pairs_max,
      experiment::format_duration(2 * block_s * plan.pairs_min),
      experiment::format_duration(2 * block_s * plan.pairs_max));
  if (plan.begin_unix_ns != 0) {
    out += fmt::format("Begins:      {}, with every host that has this plan\n",
                       live::moment_text(plan.begin_unix_ns));
  }
  out += fmt::format("Without renewal the champion is back after {}\n",
                     config::format_time(plan.hold));
  out += power_text(plan);
  out += guard_text(plan);
  out += fmt::format("Decides on:  {}\n", live::info(plan.primary).label);
  out += plan.calibration.empty()
             ? fmt::format("Calibration: none ({}), so nothing ships\n",
                           plan.no_calibration.empty() ? "no reason given" : plan.no_calibration)
             : fmt::format("Calibration: A/A run {}\n", plan.calibration);
  out += fmt::format("Schedule:    sha256 {}\n", schedule.digest);
  return out;
}

std::string experiment_status_text(const Json& experiment) {
  std::string out = fmt::format("Experiment {}, {}: {}\nby {}: {}\nschedule sha256 {}\n",
                                text_of(experiment, "id"), text_of(experiment, "name"),
                                text_of(experiment, "state"), text_of(experiment, "who"),
                                text_of(experiment, "why"), text_of(experiment, "schedule_sha256"));
  const auto progress = experiment.find("progress");
  if (progress != experiment.end() && progress->is_object()) {
    const Json estimate = progress->value("estimate", Json::object());
    out += fmt::format("block {:g} of {:g}, {:g} usable pairs, {} to {} left\n",
                       number_of(*progress, "block") + 1, number_of(*progress, "blocks"),
                       number_of(*progress, "pairs_usable"),
                       experiment::format_duration(number_of(*progress, "seconds_left_at_least")),
                       experiment::format_duration(number_of(*progress, "seconds_left_at_most")));
    out += fmt::format("so far: {}\n", estimate_text(estimate));
    if (const std::string trouble = text_of(*progress, "trouble"); !trouble.empty()) {
      out += "waits: " + trouble + "\n";
    }
  } else if (text_of(experiment, "state") != "running") {
    const std::string verdict = text_of(experiment, "verdict");
    out += fmt::format("ended: {}\nverdict: {}\n", text_of(experiment, "ended"),
                       verdict == "running" ? "none" : verdict);
    out += reasons_text(experiment);
  }
  if (number_of(experiment, "promoted_by_change") > 0) {
    out += fmt::format("promoted by change {:g} of the journal\n",
                       number_of(experiment, "promoted_by_change"));
  }
  return out;
}

std::string experiment_list_text(const Json& answer) {
  const Json& all = list_of(answer, "experiments");
  if (all.empty()) return "no experiments yet: paceline experiment run --help\n";
  std::string out;
  for (const Json& experiment : all) {
    // One that was refused or has failed never came to a verdict: the entry's is still "running".
    const std::string state = text_of(experiment, "state");
    const std::string verdict = text_of(experiment, "verdict");
    out += fmt::format("{:>4}  {:<10} {:<14} {:<24} {}\n", text_of(experiment, "id"), state,
                       verdict == "running" ? "-" : verdict, text_of(experiment, "name"),
                       text_of(experiment, "why"));
  }
  return out;
}

std::string experiment_report_text(const Json& report) {
  std::string out =
      fmt::format("{}: {}\n", text_of(report, "experiment"), text_of(report, "verdict"));
  out += reasons_text(report);
  out += fmt::format("{} of {} pairs usable, {} planned\n\n", count_of(report, "pairs_usable"),
                     count_of(report, "pairs_attempted"), count_of(report, "pairs_planned"));
  constexpr const char* kRow = "{:<22} {:<12} {:>13} {:>13} {:>12}   {}{}\n";
  out += fmt::format(fmt::runtime(kRow), "metric", "role", "champion", "candidate", "effect",
                     "interval", "");
  for (const Json& metric : list_of(report, "metrics")) {
    const std::string name = text_of(metric, "metric");
    const auto known = live::block_metric_named(name);
    if (!known) continue;  // of a later version
    const Json interval = metric.value("effect_interval", Json::array());
    const auto end = [&interval](std::size_t i) {
      return interval.is_array() && interval.size() == 2 && interval[i].is_number()
                 ? interval[i].get<double>()
                 : std::nan("");
    };
    out += fmt::format(fmt::runtime(kRow), name, text_of(metric, "role"),
                       live::value_words(*known, number_of(metric, "champion")),
                       live::value_words(*known, number_of(metric, "candidate")),
                       live::effect_words(*known, number_of(metric, "effect")),
                       live::interval_words(*known, {end(0), end(1)}),
                       metric.value("breached", false) ? "  beyond its limit" : "");
  }
  for (const Json& why : list_of(report, "discarded")) {
    if (why.is_string()) out += "discarded: " + why.get<std::string>() + "\n";
  }
  out += fmt::format("\nschedule sha256 {}\nrepeat with: {}\n", text_of(report, "schedule_sha256"),
                     text_of(report, "replay"));
  return out;
}

}  // namespace paceline::tools
