// What the jobs of training send, by kind of parallelism, against the closed form.
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <tuple>

#include "tests/unit/workload/training_samples.h"

namespace paceline::workload::training_bytes_test {
namespace {

using namespace training_samples;

TEST_CASE("training jobs: every kind of parallelism sends what the closed form says",
          "[workload][jobs]") {
  std::map<std::string, int> found;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    const TrainingSettings settings = drawn_settings(seed);
    const Parallelism& by = settings.by;
    CAPTURE(seed, by.tensor, by.context, by.data, by.pipeline, by.expert, by.chunks, by.sequence);
    const Job job = training_job_of(settings);
    const SourceBytes formula = bytes_of_formula(settings);
    CHECK(bytes_of_ops(job) == formula);
    CHECK(bytes_of_messages(job, training_plan_of(job)) == formula);
    for (const auto& [source, bytes] : formula) ++found[source];
  }
  for (const char* source : {"data", "expert data", "tensor", "pipeline", "expert", "context"}) {
    CAPTURE(source);
    CHECK(found[source] >= 20);
  }
}

TEST_CASE("training jobs: every iteration sends the same", "[workload][jobs]") {
  for (std::uint64_t seed = 200; seed < 220; ++seed) {
    CAPTURE(seed);
    TrainingSettings settings = drawn_settings(seed);
    settings.iterations = 3;
    SourceBytes expected = bytes_of_formula(settings);
    for (auto& [source, bytes] : expected) bytes *= 3;
    CHECK(bytes_of_ops(training_job_of(settings)) == expected);
  }
}

TEST_CASE("training jobs: merged layers have fewer ops and the same bytes", "[workload][jobs]") {
  for (std::uint64_t seed = 300; seed < 320; ++seed) {
    CAPTURE(seed);
    TrainingSettings settings = drawn_settings(seed);
    settings.model.layers *= 6;
    settings.merge_layers = 1;
    const Job single = training_job_of(settings);
    settings.merge_layers = 5;
    const Job merged = training_job_of(settings);
    CHECK(bytes_of_ops(merged) == bytes_of_ops(single));
    CHECK(merged.ops.size() < single.ops.size());
  }
}

// Rings of the groups of one rank.
std::map<std::string, double> ring_bytes_of_rank(const Job& job) {
  std::map<std::string, double> sums;
  for (const JobOp& op : job.ops) {
    if (op.kind != JobOpKind::collective) continue;
    const auto n = static_cast<double>(job.groups.at(op.group).size());
    sums[source_of(job.names.at(op.name))] += static_cast<double>(op.bytes) * (n - 1) / n;
  }
  return sums;
}

// The last paragraph of SimAI's example: tensor 2, pipeline 12, data 384, expert 16, 24
// micro-batches. Each stage has 8 layers; a rank of each is built by itself.
TEST_CASE("training jobs: what a rank of 9216 sends", "[workload][jobs]") {
  TrainingSettings s;
  s.by = {.data = 384,
          .tensor = 2,
          .pipeline = 12,
          .expert = 16,
          .sharding = Sharding::optimizer,
          .sequence = true};
  s.step = {.micro_batches = 24, .tokens = 4096, .gradient_bytes = 4};
  s.sequence = 4096;
  s.bucket_bytes = 1'000'000'000;
  s.flops = 4e14;
  s.model.layers = 96;
  s.model.expert_layers = 96;
  s.model.experts = 16;
  s.model.top_k = 2;
  s.model.hidden = 6144;
  s.model.parameters = 1'403'879'424.0 * 2 * 12;
  s.model.expert_parameters = 9'663'676'416.0 * 2 * 12 * 16;
  CHECK(check_training(s, 9'216).empty());
  for (std::uint32_t stage = 0; stage < 12; ++stage) {
    const std::uint32_t rank = stage * 768 + 5;
    const Job job = training_of_rank(s, rank);
    auto bytes = ring_bytes_of_rank(job);
    CAPTURE(rank);
    CHECK(bytes["data"] == Approx(8.4014e9).margin(0.00005e9));
    CHECK(bytes["expert data"] == Approx(55.5662e9).margin(0.00005e9));
    CHECK(bytes["expert"] == Approx(72.4776e9).margin(0.00005e9));
    std::uint32_t sends = 0;
    for (const JobOp& op : job.ops) {
      if (op.kind != JobOpKind::send) continue;
      ++sends;
      CHECK(op.bytes == 50'331'648 / 2);  // shared by two tensor ranks
      CHECK((op.peer == rank + 768 || op.peer + 768 == rank));
    }
    CHECK(sends == (stage == 0 || stage == 11 ? 24 : 48));
  }
}

TEST_CASE("training jobs: every send has its receive, of the same size", "[workload][jobs]") {
  for (std::uint64_t seed = 400; seed < 460; ++seed) {
    CAPTURE(seed);
    const Job job = training_job_of(drawn_settings(seed));
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint64_t>, int> open;
    for (const JobOp& op : job.ops) {
      if (op.kind == JobOpKind::send) ++open[{op.rank, op.peer, op.tag, op.bytes}];
      if (op.kind == JobOpKind::receive) --open[{op.peer, op.rank, op.tag, op.bytes}];
    }
    for (const auto& [message, count] : open) CHECK(count == 0);
  }
}

}  // namespace
}  // namespace paceline::workload::training_bytes_test
