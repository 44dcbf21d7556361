// How long training takes: the bubble of a pipeline, and what computing waits for.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "dataplane/driver/virtual/virtual_world.h"
#include "tests/unit/workload/training_samples.h"
#include "tools/workload/training/pipeline_order.h"

namespace paceline::workload::training_time_test {
namespace {

using namespace training_samples;
using job_plan_samples::GraphOrder;

constexpr std::uint32_t kTokens = 8;

// A pipeline of `layers` layers a stage, each with 500 parameters and 10 values of hidden; at
// 1e6 FLOP/s a microsecond for each FLOP.
TrainingSettings pipeline_settings(std::uint32_t stages, std::uint32_t chunks,
                                   std::uint32_t micro_batches, std::uint32_t layers) {
  TrainingSettings s;
  s.by.pipeline = stages;
  s.by.chunks = chunks;
  s.step.micro_batches = micro_batches;
  s.step.tokens = kTokens;
  s.sequence = kTokens;
  s.causal = true;
  s.flops = 1e6;
  s.model.layers = stages * layers;
  s.model.hidden = 10;
  s.model.attention_parameters = 200;
  s.model.parameters = 500.0 * s.model.layers;
  return s;
}

// 2 FLOP for a parameter and 2 s H (causal) for attention, for each token.
Picos forward_time(std::uint32_t layers) {
  return picos_from_micros(std::int64_t{layers} * kTokens * (2 * 500 + 2 * 10 * kTokens));
}

// (m + (p - 1) / v) (tf + tb), tb = 2 tf.
Picos pipeline_time(std::uint32_t stages, std::uint32_t chunks, std::uint32_t micro_batches,
                    std::uint32_t layers) {
  const Picos chunk = forward_time(layers / chunks);
  return Picos{3 * chunk.count * (std::int64_t{micro_batches} * chunks + stages - 1)};
}

TEST_CASE("training jobs: the bubble of a pipeline", "[workload][jobs]") {
  for (std::uint32_t stages = 1; stages <= 6; ++stages) {
    for (std::uint32_t micro_batches = 1; micro_batches <= 13; ++micro_batches) {
      CAPTURE(stages, micro_batches);
      const Job job = training_job_of(pipeline_settings(stages, 1, micro_batches, 2));
      CHECK(ideal_end(training_plan_of(job).plan) == pipeline_time(stages, 1, micro_batches, 2));
    }
  }
}

TEST_CASE("training jobs: the bubble of an interleaved pipeline", "[workload][jobs]") {
  for (std::uint32_t stages = 2; stages <= 6; ++stages) {
    for (std::uint32_t chunks = 2; chunks <= 4; ++chunks) {
      for (std::uint32_t rounds = 1; rounds <= 4; ++rounds) {
        CAPTURE(stages, chunks, rounds);
        const std::uint32_t micro_batches = rounds * stages;
        const Job job =
            training_job_of(pipeline_settings(stages, chunks, micro_batches, 2 * chunks));
        CHECK(ideal_end(training_plan_of(job).plan) ==
              pipeline_time(stages, chunks, micro_batches, 2 * chunks));
      }
    }
  }
}

// Narayanan et al. (arXiv 2104.04473), figure 4, below: 4 devices, 8 micro-batches, 2 chunks. The
// leading forward passes of the first device: micro-batches 1-4, 1-4 of its second chunk, 5-7.
TEST_CASE("training jobs: the order of an interleaved pipeline", "[workload][jobs]") {
  const PipelineShape shape{4, 2, 8};
  const auto leading = [&](std::uint32_t stage) {
    std::vector<std::uint32_t> passes;  // ten times the chunk and the micro-batch, from 1 on
    for (const PipelinePass& pass : pipeline_order(shape, stage)) {
      if (pass.backward) break;
      passes.push_back(10 * pass.chunk + pass.micro_batch + 1);
    }
    return passes;
  };
  CHECK(leading(0) == std::vector<std::uint32_t>{1, 2, 3, 4, 11, 12, 13, 14, 5, 6, 7});
  CHECK(leading(1).size() == 9);
  CHECK(leading(2).size() == 7);
  CHECK(leading(3) == std::vector<std::uint32_t>{1, 2, 3, 4, 11});
  for (std::uint32_t stage = 0; stage < 4; ++stage) {
    const auto order = pipeline_order(shape, stage);
    CHECK(order.size() == 32);
    const auto first = std::find_if(order.begin(), order.end(),
                                    [](const PipelinePass& pass) { return pass.backward; });
    CHECK(first->chunk == 1);  // the last part of the model goes back first
    CHECK(first->micro_batch == 0);
  }
}

config::Scenario fast_star(std::uint32_t hosts) {
  config::Scenario s;
  s.fabric.hosts = hosts;
  s.fabric.rate = rate_from_gbps(3200);
  s.fabric.delay = picos_from_nanos(1);
  s.cc.algorithm = "fixed";
  return s;
}

Picos run_time(const TrainingSettings& settings) {
  const JobPlan plan = training_plan_of(training_job_of(settings));
  WorldOptions options;
  options.check_invariants = true;
  VirtualWorld world(fast_star(static_cast<std::uint32_t>(settings.by.ranks())), plan.plan,
                     options);
  REQUIRE(world.run() == RunEnd::completed);
  return world.now();
}

TEST_CASE("training jobs: a pipeline on a fast network", "[workload][jobs]") {
  struct Shape {
    std::uint32_t stages, chunks, micro_batches;
  };
  for (const Shape& shape : {Shape{2, 1, 3}, Shape{4, 1, 8}, Shape{4, 2, 8}, Shape{3, 3, 6}}) {
    CAPTURE(shape.stages, shape.chunks, shape.micro_batches);
    const Picos took = run_time(
        pipeline_settings(shape.stages, shape.chunks, shape.micro_batches, 2 * shape.chunks));
    const Picos expected =
        pipeline_time(shape.stages, shape.chunks, shape.micro_batches, 2 * shape.chunks);
    CHECK(took > expected);
    CHECK(took - expected < picos_from_micros(5));
  }
}

TEST_CASE("training jobs: drawn shapes end", "[workload][jobs]") {
  for (std::uint64_t seed = 500; seed < 540; ++seed) {
    CAPTURE(seed);
    TrainingSettings settings = drawn_settings(seed);
    settings.iterations = 1 + static_cast<std::uint32_t>(seed % 2);
    CHECK(run_time(settings) >= ideal_end(training_plan_of(training_job_of(settings)).plan));
  }
}

// Ops of rank 0 by what they are for.
std::vector<std::uint32_t> ops_named(const Job& job, const std::string& name) {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t id = 0; id < job.ops.size(); ++id) {
    if (job.ops[id].rank == 0 && job.names.at(job.ops[id].name) == name) ids.push_back(id);
  }
  return ids;
}

std::size_t count_before(const GraphOrder& order, std::uint32_t op,
                         const std::vector<std::uint32_t>& ops) {
  const std::vector<bool> before = order.all_before(op);
  return static_cast<std::size_t>(
      std::count_if(ops.begin(), ops.end(), [&](std::uint32_t id) { return before[id]; }));
}

// Four layers of two computations each, forward and backward, of one stage and two replicas.
TrainingSettings replica_settings(Sharding sharding, std::uint32_t iterations) {
  TrainingSettings s = pipeline_settings(1, 1, 2, 4);
  s.by.data = 2;
  s.by.sharding = sharding;
  s.iterations = iterations;
  return s;
}

TEST_CASE("training jobs: gradients travel while earlier layers compute", "[workload][jobs]") {
  const Job job = training_job_of(replica_settings(Sharding::none, 2));
  const JobPlan plan = training_plan_of(job);
  const GraphOrder order(plan.plan);
  const auto reductions = ops_named(job, "data: gradients");
  const auto backward = ops_named(job, "backward");
  const auto forward = ops_named(job, "forward");
  REQUIRE(reductions.size() == 2 * 4);
  REQUIRE(backward.size() == 2 * 2 * 8);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(count_before(order, reductions[i], backward) == 8 + 2 * (i + 1));
  }
  CHECK(count_before(order, backward[15], reductions) == 0);
  CHECK(count_before(order, forward[16], reductions) == 4);  // the second iteration
}

TEST_CASE("training jobs: buckets of gradients", "[workload][jobs]") {
  TrainingSettings s = replica_settings(Sharding::none, 1);
  for (const auto& [bucket_bytes, sizes] :
       std::vector<std::pair<std::uint64_t, std::vector<std::uint64_t>>>{
           {1'000, {1'000, 1'000, 1'000, 1'000}},
           {1'001, {2'000, 2'000}},
           {3'000, {3'000, 1'000}},
           {4'001, {4'000}}}) {
    CAPTURE(bucket_bytes);
    s.bucket_bytes = bucket_bytes;
    const Job job = training_job_of(s);
    std::vector<std::uint64_t> found;
    for (const std::uint32_t op : ops_named(job, "data: gradients")) {
      found.push_back(job.ops[op].bytes);
    }
    CHECK(found == sizes);
  }
}

TEST_CASE("training jobs: a sharded optimizer gathers weights when all gradients are there",
          "[workload][jobs]") {
  const Job job = training_job_of(replica_settings(Sharding::optimizer, 2));
  const JobPlan plan = training_plan_of(job);
  const GraphOrder order(plan.plan);
  const auto gathers = ops_named(job, "data: weights");
  const auto reductions = ops_named(job, "data: gradients");
  const auto forward = ops_named(job, "forward");
  REQUIRE(gathers.size() == 2 * 4);
  CHECK(count_before(order, gathers[0], reductions) == 4);
  for (std::size_t layer = 0; layer < 4; ++layer) {
    CHECK(count_before(order, forward[16 + 2 * layer], gathers) == layer + 1);
  }
}

TEST_CASE("training jobs: sharded weights are gathered one layer ahead", "[workload][jobs]") {
  TrainingSettings s = replica_settings(Sharding::full, 1);
  for (const bool frees : {false, true}) {
    CAPTURE(frees);
    s.step.frees_weights = frees;
    const Job job = training_job_of(s);
    const JobPlan plan = training_plan_of(job);
    const GraphOrder order(plan.plan);
    const auto gathers = ops_named(job, "data: weights");
    const auto forward = ops_named(job, "forward");
    const auto backward = ops_named(job, "backward");
    REQUIRE(gathers.size() == (frees ? 16 : 8));
    for (std::size_t layer = 0; layer < 4; ++layer) {
      CHECK(count_before(order, forward[2 * layer], gathers) == layer + 1);
      // While the layer before it computes, which is the second op pair back.
      CHECK(count_before(order, gathers[layer], forward) == (layer < 2 ? 0 : 2 * (layer - 1)));
    }
    CHECK(count_before(order, gathers[5], backward) == 0);
    CHECK(count_before(order, gathers[6], backward) == 2);
  }
}

// Attention in c parts that wait for keys and values of c - 1 other ranks.
TEST_CASE("training jobs: attention goes on while keys and values come", "[workload][jobs]") {
  TrainingSettings s = pipeline_settings(1, 1, 1, 1);
  s.by.context = 4;
  s.model.kv_hidden = 10;
  const Job job = training_job_of(s);
  const JobPlan plan = training_plan_of(job);
  const GraphOrder order(plan.plan);
  const auto forward = ops_named(job, "forward");
  REQUIRE(forward.size() == 6);  // projections, four parts, feed-forward
  std::vector<std::uint32_t> receives;
  for (const std::uint32_t op : ops_named(job, "context: keys and values")) {
    if (job.ops[op].kind == JobOpKind::receive) receives.push_back(op);
  }
  REQUIRE(receives.size() == 3);
  for (std::size_t i = 0; i < 4; ++i) CHECK(count_before(order, forward[i + 1], receives) == i);
  for (const std::uint32_t receive : receives) CHECK(count_before(order, receive, forward) == 1);
  const Picos all = forward_time(1);
  CHECK(ideal_end(plan.plan) == Picos{3 * all.count / 4});
}

}  // namespace
}  // namespace paceline::workload::training_time_test
