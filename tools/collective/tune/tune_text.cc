#include "tools/collective/tune/tune_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "dataplane/config/toml/quantity.h"

namespace paceline::tools {

namespace {

using TuneJson = nlohmann::ordered_json;

// Share of the default's time that is saved, in percent.
double gain_percent(const CellResult& result) {
  if (!result.standard.problem.empty()) return 0;
  return 100 * (1 - result.best.took_us / result.standard.took_us);
}

std::string group_text(const CollectiveTunePlan& plan, const SendCost& cost) {
  const config::Scenario& s = plan.group.scenario;
  return fmt::format(
      "{} ranks on {} servers, {:g} Gb/s a NIC, {} ({}), virtual time, seed {}\n"
      "fitted: {:.2f} us a message, {:.1f} Gb/s of a NIC\n\n",
      s.fabric.hosts, s.fabric.hosts / s.fabric.nics,
      static_cast<double>(s.fabric.rate.bps) * s.fabric.ports / 1e9, s.cc.algorithm, s.cc.profile,
      s.seed, cost.alpha * 1e6, cost.beta > 0 ? 8e-9 / cost.beta : 0);
}

TuneJson setting_json(const Trial& trial) {
  TuneJson json;
  json["schedule"] = trial.setting.schedule;
  json["channels"] = trial.setting.channels;
  json["chunk_bytes"] = trial.setting.chunk_bytes;
  json["window"] = trial.setting.window;
  json["queue_pairs"] = trial.setting.queue_pairs;
  json["planned_ports"] = trial.setting.planned_ports;
  if (trial.problem.empty()) {
    json["time_us"] = trial.took_us;
  } else {
    json["problem"] = trial.problem;
  }
  return json;
}

TuneJson cell_json(const TuneCell& cell) {
  TuneJson json;
  json["operation"] = to_string(cell.op);
  json["bytes"] = cell.bytes;
  json["choice"] = setting_json(cell.result.best);
  json["default"] = setting_json(cell.result.standard);
  json["gain_percent"] = gain_percent(cell.result);
  json["evaluations"] = cell.result.evaluations;
  if (cell.nccl) json["choice_of_nccl"] = setting_json(*cell.nccl);
  json["estimates"] = TuneJson::array();
  for (const Estimate& estimate : cell.estimates) {
    TuneJson& row = json["estimates"].emplace_back();
    row["schedule"] = estimate.schedule;
    row["chunk_bytes"] = estimate.chunk_bytes;
    row["latency_us"] = estimate.cost.latency * 1e6;
    row["bandwidth_us"] = estimate.cost.bandwidth * 1e6;
    row["nvlink_us"] = estimate.cost.nvlink * 1e6;
    for (const Trial& trial : cell.result.kept) {
      if (trial.setting.schedule != estimate.schedule || !trial.problem.empty()) continue;
      row["emulated_us"] = trial.took_us;
    }
  }
  return json;
}

const Estimate& estimate_of(const TuneCell& cell, const std::string& schedule) {
  return *std::find_if(cell.estimates.begin(), cell.estimates.end(),
                       [&](const Estimate& e) { return e.schedule == schedule; });
}

// The schedule to compare the winner with: the default, or else the fastest of the others.
const Trial* rival_of(const TuneCell& cell) {
  const std::string& winner = cell.result.best.setting.schedule;
  const Trial* rival = nullptr;
  for (const Trial& trial : cell.result.kept) {
    if (trial.setting.schedule == winner || !trial.problem.empty()) continue;
    if (rival == nullptr || trial.better_than(*rival)) rival = &trial;
  }
  const Trial& standard = cell.result.standard;
  const bool other = standard.setting.schedule != winner && standard.problem.empty();
  return other ? &standard : rival;
}

std::string setting_text(const TuneSetting& setting) {
  return fmt::format("chunks of {}, {} channel{}, window {}, {} queue pair{}{}",
                     config::format_bytes(setting.chunk_bytes), setting.channels,
                     setting.channels == 1 ? "" : "s", setting.window, setting.queue_pairs,
                     setting.queue_pairs == 1 ? "" : "s",
                     setting.planned_ports ? ", planned source ports" : "");
}

}  // namespace

std::string collective_tune_text(const CollectiveTunePlan& plan,
                                 const CollectiveTuneResult& result) {
  std::string text = group_text(plan, result.cost);
  text +=
      fmt::format("{:<14} {:>8}  {:<21} {:>8} {:>7} {:>6} {:>3} {:>7} {:>11} {:>11} {:>6} {:>11}\n",
                  "operation", "size", "schedule", "channels", "chunk", "window", "QPs", "ports",
                  "time us", "default us", "gain %", "evaluations");
  for (const TuneCell& cell : result.cells) {
    const TuneSetting& s = cell.result.best.setting;
    const Trial& standard = cell.result.standard;
    text += fmt::format(
        "{:<14} {:>8}  {:<21} {:>8} {:>7} {:>6} {:>3} {:>7} {:>11.2f} {:>11} {:>6.1f} {:>11}\n",
        to_string(cell.op), config::format_bytes(cell.bytes), s.schedule, s.channels,
        config::format_bytes(s.chunk_bytes), s.window, s.queue_pairs,
        s.planned_ports ? "planned" : "hash", cell.result.best.took_us,
        standard.problem.empty() ? fmt::format("{:.2f}", standard.took_us) : "failed",
        gain_percent(cell.result), cell.result.evaluations);
  }
  return text;
}

std::string collective_tune_json(const CollectiveTunePlan& plan,
                                 const CollectiveTuneResult& result) {
  const config::Scenario& s = plan.group.scenario;
  TuneJson json;
  json["schema"] = 1;
  json["kind"] = "paceline collective tune";
  json["scenario"] = s.name;
  json["ranks"] = s.fabric.hosts;
  json["servers"] = s.fabric.hosts / s.fabric.nics;
  json["algorithm"] = s.cc.algorithm;
  json["profile"] = s.cc.profile;
  json["seed"] = s.seed;
  json["iterations"] = plan.iterations;
  json["message_us"] = result.cost.alpha * 1e6;
  json["byte_ns"] = result.cost.beta * 1e9;
  json["cells"] = TuneJson::array();
  for (const TuneCell& cell : result.cells) json["cells"].push_back(cell_json(cell));
  return json.dump(1) + "\n";
}

std::string reason_of(const TuneCell& cell) {
  const Trial& best = cell.result.best;
  const std::string& name = best.setting.schedule;
  const std::string size = config::format_bytes(cell.bytes);
  const Trial* const rival = rival_of(cell);
  if (rival == nullptr) return fmt::format("{} is the only schedule that was emulated.", name);
  const std::string& other_name = rival->setting.schedule;
  const Estimate& mine = estimate_of(cell, name);
  const Estimate& other = estimate_of(cell, other_name);
  const double latency = other.cost.latency - mine.cost.latency;
  const double bandwidth = other.cost.bandwidth - mine.cost.bandwidth;
  const double nvlink = other.cost.nvlink - mine.cost.nvlink;
  const double most = std::max({latency, bandwidth, nvlink});
  if (other.cost.total() <= mine.cost.total() || most <= 0) {
    return fmt::format(
        "The model expects no gain of {} over {}; the emulation, with queues and the paths that "
        "messages take, has {:.2f} us and {:.2f} us.",
        name, other_name, best.took_us, rival->took_us);
  }
  if (most == latency) {
    return fmt::format(
        "{} needs {} rounds between NICs where {} needs {}, and at {} rounds are what costs.", name,
        mine.network_rounds, other_name, other.network_rounds, size);
  }
  if (most == bandwidth && mine.port_share >= other.port_share) {
    return fmt::format(
        "{} moves its bytes in {:.2f} us where {} takes {:.2f} us, as more of them are under way "
        "at "
        "the same time, and at {} bytes are what costs.",
        name, mine.cost.bandwidth * 1e6, other_name, other.cost.bandwidth * 1e6, size);
  }
  if (most == bandwidth) {
    return fmt::format(
        "{} puts {:.2f} buffers on the busiest port, in {} rounds, where {} puts {:.2f} in {}, and "
        "at {} bytes are what costs.",
        name, mine.port_share, mine.rounds, other_name, other.port_share, other.rounds, size);
  }
  return fmt::format("{} spends {:.2f} us on NVLink where {} spends {:.2f} us.", name,
                     mine.cost.nvlink * 1e6, other_name, other.cost.nvlink * 1e6);
}

std::string explain_text(const CollectiveTunePlan& plan, const CollectiveTuneResult& result) {
  std::string text;
  for (const TuneCell& cell : result.cells) {
    text += fmt::format("{} of {}, ", to_string(cell.op), config::format_bytes(cell.bytes)) +
            group_text(plan, result.cost);
    text += fmt::format("{:<22} {:>6} {:>7} {:>10} {:>12} {:>9} {:>11} {:>11}\n", "schedule",
                        "rounds", "chunk", "latency us", "bandwidth us", "NVLink us", "estimate us",
                        "emulated us");
    for (const Estimate& e : cell.estimates) {
      std::string emulated;
      for (const Trial& trial : cell.result.kept) {
        if (trial.setting.schedule != e.schedule) continue;
        emulated = trial.problem.empty() ? fmt::format("{:.2f}", trial.took_us) : trial.problem;
      }
      text += fmt::format("{:<22} {:>6} {:>7} {:>10.2f} {:>12.2f} {:>9.2f} {:>11.2f} {:>11}\n",
                          e.schedule, e.rounds, config::format_bytes(e.chunk_bytes),
                          e.cost.latency * 1e6, e.cost.bandwidth * 1e6, e.cost.nvlink * 1e6,
                          e.cost.total() * 1e6, emulated);
    }
    const Trial& best = cell.result.best;
    const Trial& standard = cell.result.standard;
    text += fmt::format(
        "\nDefault: {}, {}: {}\n", standard.setting.schedule, setting_text(standard.setting),
        standard.problem.empty() ? fmt::format("{:.2f} us", standard.took_us) : standard.problem);
    text += fmt::format("Fastest of {} emulations: {}, {}: {:.2f} us, {:.1f} % less\n{}\n",
                        cell.result.evaluations, best.setting.schedule, setting_text(best.setting),
                        best.took_us, gain_percent(cell.result), reason_of(cell));
  }
  return text;
}

}  // namespace paceline::tools
