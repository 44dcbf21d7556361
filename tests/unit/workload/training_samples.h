// Training jobs to build, and what is counted on them.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "tests/unit/workload/job_plan_samples.h"
#include "tools/workload/models/training_traffic.h"
#include "tools/workload/training/training_job.h"

namespace paceline::workload::training_samples {

// Draws values from 1 up to a most.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  std::uint32_t up_to(std::uint32_t most) {
    return 1 + static_cast<std::uint32_t>(random_.below(most));
  }
  bool coin() { return random_.below(2) == 1; }

 private:
  Random random_;
};

inline TrainingModel drawn_model(Draw& draw, const Parallelism& by) {
  TrainingModel model;
  model.layers = by.pipeline * by.chunks * draw.up_to(3);
  model.hidden = draw.up_to(60);
  model.kv_hidden = draw.up_to(40);
  model.input_parameters = draw.up_to(4'000);
  model.output_parameters = draw.up_to(4'000);
  model.attention_parameters = draw.up_to(100);
  model.parameters = model.input_parameters + model.output_parameters +
                     model.layers * (model.attention_parameters + 200.0) + draw.up_to(9'999);
  if (by.expert == 1 && draw.coin()) return model;
  model.experts = by.expert * draw.up_to(3);
  model.top_k = draw.up_to(model.experts);
  model.expert_layers = draw.up_to(model.layers);
  model.expert_parameters = 9'000.0 + draw.up_to(99'999);
  return model;
}

// At most 36 ranks.
inline TrainingSettings drawn_settings(std::uint64_t seed) {
  Draw draw(seed);
  TrainingSettings s;
  Parallelism& by = s.by;
  do {
    by.tensor = draw.up_to(4);
    by.context = draw.up_to(3);
    by.data = draw.up_to(6);
    by.pipeline = draw.up_to(4);
  } while (by.ranks() > 36 || by.ranks() < 2);
  do by.expert = draw.up_to(by.data);
  while (by.data % by.expert != 0);
  by.chunks = by.pipeline > 1 ? draw.up_to(3) : 1;
  by.sharding = static_cast<Sharding>(draw.up_to(3) - 1);
  by.sequence = by.tensor > 1 && draw.coin();
  s.model = drawn_model(draw, by);
  s.sequence = by.context * draw.up_to(8);
  s.step.micro_batches = by.chunks > 1 ? by.pipeline * draw.up_to(2) : draw.up_to(6);
  s.step.tokens = s.sequence * draw.up_to(3);
  s.step.gradient_bytes = draw.coin() ? 4 : 2;
  s.step.gathers_inputs = by.sequence && draw.coin();
  s.step.frees_weights = by.sharding == Sharding::full && draw.coin();
  s.causal = draw.coin();
  s.flops = 1e6 * draw.up_to(1'000);
  s.bucket_bytes = draw.up_to(20'000);
  s.merge_layers = draw.up_to(4);
  return s;
}

inline Job training_job_of(const TrainingSettings& settings) {
  auto job = job_of_training(settings, static_cast<std::uint32_t>(settings.by.ranks()));
  REQUIRE(job.errors == std::vector<std::string>{});
  return std::move(job.value);
}

// In one part each, so that plans stay small.
inline JobPlan training_plan_of(const Job& job) {
  CollectiveSettings settings;
  settings.chunk_bytes = std::uint64_t{1} << 40;
  auto plan =
      plan_job(job, job_plan_samples::servers_of(job.ranks, 8), settings, std::uint64_t{1} << 22);
  REQUIRE(plan.errors == std::vector<std::string>{});
  return std::move(plan.value);
}

using SourceBytes = std::map<std::string, std::uint64_t>;

inline std::string source_of(const std::string& name) { return name.substr(0, name.find(':')); }

// What the ops say: collectives as rings, and as a block to each peer.
inline SourceBytes bytes_of_ops(const Job& job) {
  SourceBytes sums;  // times the ranks of the source's groups
  std::map<std::string, std::uint64_t> ranks;
  for (const JobOp& op : job.ops) {
    const std::string source = source_of(job.names.at(op.name));
    if (op.kind == JobOpKind::send) {
      sums[source] += op.bytes;
      ranks[source] = 1;
    } else if (op.kind == JobOpKind::collective) {
      const std::uint64_t n = job.groups.at(op.group).size();
      sums[source] += op.bytes * (n - 1) * (op.op == CollectiveOp::all_reduce ? 2 : 1);
      ranks[source] = n;
    }
  }
  for (auto& [source, bytes] : sums) bytes /= ranks.at(source);
  return sums;
}

// What the messages of its plan say.
inline SourceBytes bytes_of_messages(const Job& job, const JobPlan& plan) {
  SourceBytes sums;
  for (std::uint32_t id = 0; id < plan.plan.messages.size(); ++id) {
    const PlannedMessage& m = plan.plan.messages[id];
    if (m.computes) continue;
    const bool sent = id < job.ops.size();  // the ops' own messages come first
    const std::string& name =
        sent ? job.names.at(job.ops[id].name) : plan.plan.collectives.at(m.collective).name;
    sums[source_of(name)] += m.bytes;
  }
  return sums;
}

// What the closed form says of all ranks together.
inline SourceBytes bytes_of_formula(const TrainingSettings& s) {
  SourceBytes sums;
  for (const DimensionTraffic& row : training_traffic(s.model, s.by, s.step, Accounting::ring)) {
    sums[std::string(row.dimension)] =
        static_cast<std::uint64_t>(std::llround(row.bytes() * static_cast<double>(s.by.ranks())));
  }
  return sums;
}

// The end of a plan whose messages take no time.
inline Picos ideal_end(const MessagePlan& plan) {
  const std::size_t count = plan.messages.size();
  std::vector<std::vector<std::uint32_t>> next(count);
  std::vector<std::uint32_t> waits(count);
  const auto edge = [&](std::uint32_t before, std::uint32_t after) {
    next[before].push_back(after);
    ++waits[after];
  };
  for (std::uint32_t id = 0; id < count; ++id) {
    if (plan.messages[id].after != kNoMessage) edge(plan.messages[id].after, id);
  }
  for (const Join& join : plan.joins) edge(join.after, join.message);
  std::vector<Picos> begin(count);
  std::vector<std::uint32_t> ready;
  for (std::uint32_t id = 0; id < count; ++id) {
    if (waits[id] == 0) ready.push_back(id);
  }
  Picos end{0};
  std::size_t done = 0;
  for (; !ready.empty(); ++done) {
    const std::uint32_t id = ready.back();
    ready.pop_back();
    const Picos ended = begin[id] + plan.messages[id].gap;
    end = later(end, ended);
    for (const std::uint32_t follower : next[id]) {
      begin[follower] = later(begin[follower], ended);
      if (--waits[follower] == 0) ready.push_back(follower);
    }
  }
  REQUIRE(done == count);
  return end;
}

}  // namespace paceline::workload::training_samples
