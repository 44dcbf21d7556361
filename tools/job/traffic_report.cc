#include "tools/job/traffic_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "dataplane/config/toml/quantity.h"

namespace paceline::tools {

namespace {

struct TrafficSums {
  double forward = 0;
  double backward = 0;
  double nic = 0;
  double bytes() const { return forward + backward; }
};

TrafficSums sums_of(const std::vector<workload::DimensionTraffic>& rows) {
  TrafficSums sums;
  for (const workload::DimensionTraffic& row : rows) {
    sums.forward += row.forward;
    sums.backward += row.backward;
    sums.nic += row.bytes() * row.nic_share;
  }
  return sums;
}

double seconds_at(double bytes, Rate rate) { return bytes * 8 / static_cast<double>(rate.bps); }

std::string duration_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.4g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.4g} ms", seconds * 1e3);
  if (seconds < 3600) return fmt::format("{:.4g} s", seconds);
  return fmt::format("{:.4g} h", seconds / 3600);
}

const char* accounting_name(workload::Accounting accounting) {
  return accounting == workload::Accounting::ring ? "ring" : "naive-mesh";
}

std::string degrees_text(const TrafficTask& task) {
  const workload::Parallelism& by = task.parallelism;
  std::string text = fmt::format("tp {} x cp {} x dp {} x pp {} = {} ranks, {} a server", by.tensor,
                                 by.context, by.data, by.pipeline, by.ranks(), by.gpus_per_server);
  if (by.expert > 1) text += fmt::format(", ep {}", by.expert);
  if (by.chunks > 1) text += fmt::format(", {} chunks a stage", by.chunks);
  if (by.sharding == workload::Sharding::optimizer) text += ", optimizer sharded";
  if (by.sharding == workload::Sharding::full) text += ", weights sharded";
  if (by.sequence) text += ", sequence parallel";
  return text;
}

std::string row_text(std::string_view name, double forward, double backward, double nic,
                     const std::string& forward_calls, const std::string& backward_calls) {
  const double bytes = forward + backward;
  return fmt::format("{:<12} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", name,
                     si_bytes(forward), si_bytes(backward), forward_calls, backward_calls,
                     si_bytes(bytes), si_bytes(bytes - nic), si_bytes(nic));
}

}  // namespace

std::string si_bytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB"};
  std::size_t unit = 0;
  for (; bytes >= 999.95 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1000;
  return fmt::format("{:.4g} {}", bytes, kUnits[unit]);
}

std::string traffic_text(const TrafficTask& task,
                         const std::vector<workload::DimensionTraffic>& rows) {
  const TrafficSums sums = sums_of(rows);
  std::string text = fmt::format(
      "{}: {} layers, {:.4g} billion parameters, hidden {}\n{}\n{} micro-batches of {:.6g} tokens; "
      "accounting: {}\n\nSent by a rank in a step, mean over the ranks:\n",
      task.model_name.empty() ? "model" : task.model_name, task.model.layers,
      (task.model.parameters + task.model.expert_parameters) / 1e9, task.model.hidden,
      degrees_text(task), task.step.micro_batches, task.step.tokens,
      accounting_name(task.accounting));
  text += fmt::format("{:<12} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "dimension",
                      "forward", "backward", "calls fwd", "calls bwd", "sent", "NVLink", "NIC");
  for (const workload::DimensionTraffic& row : rows) {
    text += row_text(row.dimension, row.forward, row.backward, row.bytes() * row.nic_share,
                     fmt::format("{:.6g}", row.forward_calls),
                     fmt::format("{:.6g}", row.backward_calls));
  }
  text += row_text("all", sums.forward, sums.backward, sums.nic, "", "");
  text +=
      fmt::format("\nA NIC of {} takes {} for its part of a step.\n",
                  config::format_rate(task.rate), duration_text(seconds_at(sums.nic, task.rate)));
  if (task.steps != 0) {
    const double times = task.steps * static_cast<double>(task.parallelism.ranks());
    text += fmt::format(
        "In {:.6g} steps all ranks send {} forward and {} backward; {} of it through NICs, {} of "
        "each.\n",
        task.steps, si_bytes(sums.forward * times), si_bytes(sums.backward * times),
        si_bytes(sums.nic * times), duration_text(seconds_at(sums.nic * task.steps, task.rate)));
  }
  return text;
}

std::string traffic_json(const TrafficTask& task,
                         const std::vector<workload::DimensionTraffic>& rows) {
  const workload::Parallelism& by = task.parallelism;
  const TrafficSums sums = sums_of(rows);
  nlohmann::ordered_json json;
  json["schema"] = 1;
  json["kind"] = "paceline job traffic";
  if (!task.model_name.empty()) json["model"] = task.model_name;
  json["layers"] = task.model.layers;
  json["parameters"] = task.model.parameters;
  json["expert_parameters"] = task.model.expert_parameters;
  json["hidden"] = task.model.hidden;
  json["tp"] = by.tensor;
  json["pp"] = by.pipeline;
  json["dp"] = by.data;
  json["ep"] = by.expert;
  json["cp"] = by.context;
  json["chunks"] = by.chunks;
  json["ranks"] = by.ranks();
  json["gpus_per_server"] = by.gpus_per_server;
  json["micro_batches"] = task.step.micro_batches;
  json["tokens"] = task.step.tokens;
  json["accounting"] = accounting_name(task.accounting);
  json["dimensions"] = nlohmann::ordered_json::array();
  for (const workload::DimensionTraffic& row : rows) {
    json["dimensions"].push_back({{"dimension", row.dimension},
                                  {"forward_bytes", row.forward},
                                  {"backward_bytes", row.backward},
                                  {"forward_calls", row.forward_calls},
                                  {"backward_calls", row.backward_calls},
                                  {"bytes", row.bytes()},
                                  {"nvlink_bytes", row.bytes() * (1 - row.nic_share)},
                                  {"nic_bytes", row.bytes() * row.nic_share}});
  }
  json["bytes"] = sums.bytes();
  json["nvlink_bytes"] = sums.bytes() - sums.nic;
  json["nic_bytes"] = sums.nic;
  json["rate_bps"] = task.rate.bps;
  json["nic_seconds"] = seconds_at(sums.nic, task.rate);
  if (task.steps != 0) {
    const double times = task.steps * static_cast<double>(by.ranks());
    json["run"] = {{"steps", task.steps},
                   {"forward_bytes", sums.forward * times},
                   {"backward_bytes", sums.backward * times},
                   {"nic_bytes", sums.nic * times}};
  }
  return json.dump(1) + "\n";
}

}  // namespace paceline::tools
