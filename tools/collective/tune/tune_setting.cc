#include "tools/collective/tune/tune_setting.h"

#include <utility>

namespace paceline::tools {

std::string& schedule_key(config::JobConfig& job, workload::CollectiveOp op) {
  switch (op) {
    case workload::CollectiveOp::reduce_scatter:
      return job.reduce_scatter;
    case workload::CollectiveOp::all_gather:
      return job.all_gather;
    case workload::CollectiveOp::all_to_all:
      return job.all_to_all;
    case workload::CollectiveOp::broadcast:
      return job.broadcast;
    case workload::CollectiveOp::reduce:
      return job.reduce;
    case workload::CollectiveOp::all_reduce:
      break;
  }
  return job.all_reduce;
}

TuneSetting setting_of(const config::JobConfig& job, std::string schedule) {
  return {std::move(schedule), job.chunk_bytes, job.channels, job.window, job.queue_pairs, false};
}

bool has_ports_to_plan(const config::Scenario& scenario) {
  return scenario.transport.source_ports == "hash" && config::has_one_path(scenario) &&
         scenario.fabric.topology != "star";
}

void apply(const TuneSetting& setting, workload::CollectiveOp op, config::Scenario& scenario) {
  config::JobConfig& job = scenario.workload.job;
  schedule_key(job, op) = setting.schedule;
  job.schedule_file.clear();
  job.chunk_bytes = setting.chunk_bytes;
  job.channels = setting.channels;
  job.window = setting.window;
  job.queue_pairs = setting.queue_pairs;
  if (setting.planned_ports) scenario.transport.source_ports = "planned";
}

}  // namespace paceline::tools
