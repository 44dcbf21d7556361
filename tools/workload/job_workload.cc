#include "tools/workload/job_workload.h"

#include <fmt/format.h>

#include <numeric>

#include "dataplane/base/numbers/distributions.h"
#include "dataplane/base/numbers/math.h"
#include "tools/workload/draws/streams.h"
#include "tools/workload/inference/inference_job.h"
#include "tools/workload/job_plans/simai_job.h"
#include "tools/workload/jobs/chakra_trace.h"
#include "tools/workload/jobs/goal_file.h"
#include "tools/workload/jobs/import_limits.h"
#include "tools/workload/model_job.h"

namespace paceline::workload {

namespace {

// The same collective again and again, with computing before each.
Imported<Job> repeated_collective(const config::JobConfig& config, std::uint32_t ranks) {
  Imported<Job> out;
  const std::uint64_t ops =
      std::uint64_t{ranks} * config.iterations * (config.compute.count > 0 ? 2 : 1);
  if (ops > kMostJobOps) {
    out.errors.push_back(
        fmt::format("workload.job.iterations = {}: {} operations of {} ranks: at most {} fit",
                    config.iterations, ops, ranks, kMostJobOps));
    return out;
  }
  Job& job = out.value;
  job.ranks = ranks;
  job.groups.emplace_back(ranks);
  std::iota(job.groups[0].begin(), job.groups[0].end(), 0U);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (std::uint32_t i = 0; i < config.iterations; ++i) {
      const auto add = [&](const JobOp& op) {
        const auto id = static_cast<std::uint32_t>(job.ops.size());
        if (id > 0 && job.ops[id - 1].rank == rank) job.waits.emplace_back(id, id - 1);
        job.ops.push_back(op);
      };
      if (config.compute.count > 0) add({.rank = rank, .duration = config.compute});
      add({.kind = JobOpKind::collective,
           .rank = rank,
           .op = *find_collective_op(config.operation),
           .bytes = config.bytes,
           .draw = i});
    }
  }
  return out;
}

Imported<Job> simai_job(const config::JobConfig& config, std::uint32_t ranks) {
  Imported<SimaiWorkload> read = read_simai_workload(config.file);
  if (!read.ok()) return {{}, std::move(read.errors), {}};
  Imported<Job> job = job_of_simai(read.value, ranks, config.iterations);
  for (auto* lines : {&job.errors, &job.warnings}) {
    for (std::string& line : *lines) line.insert(0, config.file + ": ");
  }
  job.warnings.insert(job.warnings.begin(), read.warnings.begin(), read.warnings.end());
  return job;
}

Imported<Job> chakra_job(const config::JobConfig& config) {
  const auto paths = find_chakra_traces(config.file);
  if (!paths.ok()) return {{}, paths.errors, paths.warnings};
  return read_chakra_traces(paths.value, config.groups_file);
}

Imported<Job> inference_job(const config::JobConfig& config, std::uint32_t ranks) {
  const config::InferenceConfig& c = config.inference;
  Imported<Job> out;
  InferenceSettings settings{.prefill_ranks = c.prefill_nics == 0 ? ranks / 2 : c.prefill_nics,
                             .layers = c.layers,
                             .layers_per_transfer = c.layers_per_transfer,
                             .kv_bytes = c.kv_bytes,
                             .tokens_per_second = c.tokens_per_second,
                             .time_scale = c.time_scale,
                             .requests = c.requests,
                             .reuse = c.reuse};
  if (settings.prefill_ranks >= ranks) {
    out.errors.push_back(fmt::format(
        "workload.job.inference.prefill_nics = {}: of {} NICs at least one must be left for "
        "decoding",
        c.prefill_nics, ranks));
    return out;
  }
  settings.decode_ranks = ranks - settings.prefill_ranks;
  const Imported<RequestTrace> trace = read_request_trace(config.file);
  if (!trace.ok()) return {{}, trace.errors, {}};
  return job_of_inference(trace.value, settings);
}

}  // namespace

Imported<Job> load_job(const config::JobConfig& config, std::uint32_t ranks) {
  Imported<Job> job;
  if (config.format == "model") {
    job = model_job(config, ranks);
  } else if (config.format == "inference") {
    job = inference_job(config, ranks);
  } else if (config.format == "simai") {
    job = simai_job(config, ranks);
  } else if (config.format == "goal") {
    job = read_goal_file(config.file);
  } else if (config.format == "chakra") {
    job = chakra_job(config);
  } else {
    job = repeated_collective(config, ranks);
  }
  if (job.ok() && job.value.ranks > ranks) {
    job.errors.push_back(
        fmt::format("{}: {} ranks: the fabric has {} NICs", config.file, job.value.ranks, ranks));
  }
  return job;
}

Job as_run(Job job, const config::JobConfig& config, std::uint64_t seed) {
  for (std::uint32_t id = 0; id < job.ops.size(); ++id) {
    JobOp& op = job.ops[id];
    if (op.kind != JobOpKind::compute) continue;
    double factor = config.compute_scale;
    if (op.rank == config.straggler) factor *= config.straggler_factor;
    if (config.jitter > 0) {
      Random random = stream(seed, Purpose::computing, id);
      factor *= det_exp(config.jitter * standard_normal(random));
    }
    op.duration.count = static_cast<std::int64_t>(static_cast<double>(op.duration.count) * factor);
  }
  return job;
}

CollectiveSettings collective_settings(const config::JobConfig& config, std::uint64_t seed) {
  // The ops of files have no random draws.
  const bool draws = config.format == "collective" || config.format == "model";
  return {.algorithms = {config.all_reduce, config.reduce_scatter, config.all_gather,
                         config.all_to_all, config.broadcast, config.reduce},
          .chunk_bytes = config.chunk_bytes,
          .channels = config.channels,
          .window = config.window,
          .queue_pairs = config.queue_pairs,
          .clear_to_send = config.clear_to_send,
          .step_overhead = config.step_overhead,
          .aggregation = config.aggregation,
          .peers = config.peers,
          .skew = draws ? config.skew : 0,
          .seed = seed};
}

}  // namespace paceline::workload
