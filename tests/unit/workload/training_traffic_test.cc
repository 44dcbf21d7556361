// Traffic of training: a published table, what rings really send, and a file of SimAI.

#include "tools/workload/models/training_traffic.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "tools/workload/models/model_shape.h"
#include "tools/workload/models/rank_groups.h"

namespace paceline::workload {
namespace {

// The run of the published table: 80 layers, 70e9 parameters, hidden 8192, 156e9 tokens in 364.6e6
// samples, 2048 of them a step.
constexpr double kRunSteps = 364.6e6 / 2048;
constexpr double kRoundSteps = 178'000;  // as the table of three kinds takes it
constexpr double kRunTokens = 156e9;
constexpr double kPeta = 1e15;
constexpr double kExa = 1e18;

TrainingModel published_model() {
  TrainingModel model;
  model.parameters = 70e9;
  model.layers = 80;
  model.hidden = 8192;
  return model;
}

struct RunTraffic {
  std::vector<DimensionTraffic> rows;
  double ranks = 0;
  double steps = kRunSteps;

  const DimensionTraffic& row(const std::string& dimension) const {
    const auto at = std::find_if(rows.begin(), rows.end(), [&](const DimensionTraffic& r) {
      return r.dimension == dimension;
    });
    REQUIRE(at != rows.end());
    return *at;
  }
  // Summed over all ranks and all steps.
  double forward(const std::string& dimension) const {
    return row(dimension).forward * ranks * steps;
  }
  double backward(const std::string& dimension) const {
    return row(dimension).backward * ranks * steps;
  }
};

RunTraffic published_run(const Parallelism& by, Accounting accounting, double steps = kRunSteps) {
  TrainingStep step;
  step.tokens = kRunTokens / steps / by.data;
  return {training_traffic(published_model(), by, step, accounting),
          static_cast<double>(by.ranks()), steps};
}

Approx petabytes(double value) { return Approx(value * kPeta).margin(0.005 * kPeta); }

TEST_CASE("training traffic: the published table of one kind of parallelism", "[workload]") {
  const RunTraffic data = published_run({.data = 8}, Accounting::naive_mesh);
  CHECK(data.rows.size() == 1);
  CHECK(data.forward("data") == 0);
  CHECK(data.backward("data") == petabytes(1395.73));
  CHECK(data.row("data").forward_calls == 0);
  CHECK(data.row("data").backward_calls == 1);

  const RunTraffic full =
      published_run({.data = 8, .sharding = Sharding::full}, Accounting::naive_mesh);
  CHECK(full.forward("data") == petabytes(174.47));
  CHECK(full.backward("data") == petabytes(174.47));
  CHECK(full.row("data").forward_calls == 80);
  CHECK(full.row("data").backward_calls == 80);

  const RunTraffic tensor = published_run({.tensor = 8}, Accounting::naive_mesh);
  CHECK(tensor.forward("tensor") == petabytes(22900.90));
  CHECK(tensor.backward("tensor") == petabytes(27914.69));
  CHECK(tensor.row("tensor").backward_calls == 160);
  CHECK(tensor.row("tensor").forward_calls * kRunSteps == Approx(160 * 156e9));

  const RunTraffic pipeline = published_run({.pipeline = 8}, Accounting::naive_mesh);
  CHECK(pipeline.forward("pipeline") == Approx(17.891 * kPeta).margin(0.0005 * kPeta));
  CHECK(pipeline.backward("pipeline") == pipeline.forward("pipeline"));
  CHECK(pipeline.row("pipeline").forward_calls == 7);
}

// Both cells of tensor parallelism are printed in units of 1e9 * 2^20 bytes and called petabytes,
// as the others are, which are in 1e15.
TEST_CASE("training traffic: the published table's slip of units", "[workload]") {
  const RunTraffic tensor = published_run({.tensor = 8}, Accounting::naive_mesh);
  constexpr double kSlip = 1e9 * 1'048'576;
  CHECK(tensor.backward("tensor") / kSlip == Approx(26'621.52).margin(0.005));
  CHECK(tensor.forward("tensor") / kSlip == Approx(21'840.00).margin(0.005));
}

TEST_CASE("training traffic: the published table of three kinds of parallelism", "[workload]") {
  const RunTraffic run =
      published_run({.data = 16, .tensor = 8, .pipeline = 8}, Accounting::naive_mesh, kRoundSteps);
  REQUIRE(run.rows.size() == 3);
  double forward = 0;
  double backward = 0;
  for (const DimensionTraffic& row : run.rows) {
    forward += run.forward(std::string(row.dimension));
    backward += run.backward(std::string(row.dimension));
  }
  CHECK(backward == Approx(61.819 * kExa).margin(0.0005 * kExa));
  CHECK(forward == Approx(22.919 * kExa).margin(0.0005 * kExa));
  CHECK(run.backward("tensor") == Approx(55.82 * kExa).margin(0.005 * kExa));
  CHECK(run.backward("data") == Approx(5.98 * kExa).margin(0.005 * kExa));
}

TEST_CASE("training traffic: what rings send of the published run", "[workload]") {
  const RunTraffic run =
      published_run({.data = 16, .tensor = 8, .pipeline = 8, .sequence = true}, Accounting::ring);
  CHECK(run.row("data").bytes() == Approx(4.10e9).margin(0.005e9));
  const auto total = [&](const char* name) { return run.forward(name) + run.backward(name); };
  CHECK(total("data") == Approx(0.748 * kExa).margin(0.0005 * kExa));
  CHECK(total("tensor") == Approx(11.450 * kExa).margin(0.0005 * kExa));
  CHECK(total("pipeline") == Approx(0.036 * kExa).margin(0.0005 * kExa));
  double nic = 0;
  for (const DimensionTraffic& row : run.rows) nic += row.bytes() * row.nic_share * kRunSteps;
  CHECK(nic * run.ranks == Approx(783 * kPeta).margin(0.5 * kPeta));
  CHECK(nic == Approx(765e12).margin(0.5e12));
  CHECK(nic * 8 / 400e9 / 3600 == Approx(4.25).margin(0.005));
  CHECK(run.row("tensor").nic_share == 0);
  CHECK(run.row("data").nic_share == 1);
  CHECK(run.row("pipeline").nic_share == 1);
}

// One hop of a micro-batch of 8192 tokens: 134 MB, or 16.8 MB where tensor ranks share it.
TEST_CASE("training traffic: activations between the stages of a pipeline", "[workload]") {
  const TrainingModel model = published_model();
  for (const bool sequence : {false, true}) {
    for (const std::uint32_t chunks : {1U, 2U}) {
      CAPTURE(sequence, chunks);
      const Parallelism by{.tensor = 8, .pipeline = 4, .chunks = chunks, .sequence = sequence};
      const auto rows =
          training_traffic(model, by, {.micro_batches = 6, .tokens = 8192}, Accounting::ring);
      const DimensionTraffic& row = rows.back();
      REQUIRE(row.dimension == "pipeline");
      CHECK(row.forward_calls * 4 == Approx(6 * (4 * chunks - 1)));  // of the ranks of a pipeline
      CHECK(row.forward / row.forward_calls == (sequence ? 16'777'216 : 134'217'728));
      CHECK(row.backward == row.forward);
    }
  }
}

// SimAI's workload_analytical: 12 stages of 8 layers, and what each of the 9216 ranks has of the
// weights. Sizes of its lines: gather 2807758848, scatter 5615517696; experts 19327352832 and
// 38654705664; all-to-all 100663296.
TEST_CASE("training traffic: a workload of SimAI", "[workload]") {
  const Parallelism by{.data = 384,
                       .tensor = 2,
                       .pipeline = 12,
                       .expert = 16,
                       .chunks = 8,
                       .sharding = Sharding::optimizer,
                       .sequence = true};
  CHECK(by.ranks() == 9216);
  TrainingModel model;
  model.layers = 96;
  model.expert_layers = 96;
  model.experts = 16;
  model.top_k = 2;
  model.hidden = 6144;
  model.parameters = 1'403'879'424.0 * 2 * 12;
  model.expert_parameters = 9'663'676'416.0 * 2 * 12 * 16;
  const TrainingStep step{.micro_batches = 24, .tokens = 4096, .gradient_bytes = 4};
  const RunTraffic run{training_traffic(model, by, step, Accounting::ring), 9216};
  const double dense = (2'807'758'848.0 + 5'615'517'696.0) * 383 / 384;
  CHECK(run.row("data").bytes() == Approx(dense));
  CHECK(dense == Approx(8.4014e9).margin(0.00005e9));
  const double experts = (19'327'352'832.0 + 38'654'705'664.0) * 23 / 24;
  CHECK(run.row("expert data").bytes() == Approx(experts));
  CHECK(experts == Approx(55.5662e9).margin(0.00005e9));
  const double exchanged = 768 * 100'663'296.0 * 15 / 16;
  CHECK(run.row("expert").bytes() == Approx(exchanged));
  CHECK(exchanged == Approx(72.4776e9).margin(0.00005e9));
  CHECK(run.row("expert").forward_calls == 384);
  CHECK(run.row("expert").backward_calls == 384);
  // pp_comm = 50331648, shared by two tensor ranks.
  CHECK(run.row("pipeline").forward / run.row("pipeline").forward_calls == 50'331'648.0 / 2);
}

TEST_CASE("training traffic: shards and replicas of weights", "[workload]") {
  const TrainingModel model = published_model();
  Parallelism by{.data = 8, .tensor = 2, .pipeline = 5, .context = 4};
  TrainingStep step{.micro_batches = 3, .tokens = 4096, .gradient_bytes = 4};
  const double weights = 2 * 70e9 / 10 * 31 / 32;  // context ranks are replicas as well
  const auto data = [&] { return training_traffic(model, by, step, Accounting::ring).front(); };
  CHECK(data().forward == 0);
  CHECK(data().backward == Approx(4 * weights));
  by.sharding = Sharding::optimizer;
  CHECK(data().forward == Approx(weights));
  CHECK(data().backward == Approx(2 * weights));
  by.sharding = Sharding::full;
  CHECK(data().forward == Approx(weights));
  CHECK(data().backward == Approx(3 * weights));
  CHECK(data().forward_calls == 16);
  CHECK(data().backward_calls == 32);
  step.frees_weights = true;
  CHECK(data().bytes() == Approx((2 * 3 + 2) * weights));
  CHECK(data().forward_calls == 48);
  CHECK(data().backward_calls == 64);
}

TEST_CASE("training traffic: tensor and context ranks of a layer", "[workload]") {
  TrainingModel model = published_model();
  model.kv_hidden = 1024;
  Parallelism by{.tensor = 4, .context = 8};
  TrainingStep step{.micro_batches = 3, .tokens = 65'536};
  const double activation = 2.0 * 8192 * 8192;  // 8192 tokens a context rank
  const auto row = [&](std::size_t i) {
    return training_traffic(model, by, step, Accounting::ring).at(i);
  };
  REQUIRE(row(1).dimension == "tensor");
  CHECK(row(1).bytes() == Approx(8 * 3 * 80 * activation * 3 / 4));
  CHECK(row(1).forward_calls == 2 * 3 * 80);
  by.sequence = true;
  CHECK(row(1).bytes() == Approx(8 * 3 * 80 * activation * 3 / 4));
  CHECK(row(1).forward_calls == 4 * 3 * 80);
  step.gathers_inputs = true;
  CHECK(row(1).bytes() == Approx((8 + 2) * 3 * 80 * activation * 3 / 4));
  CHECK(row(1).backward_calls == 6 * 3 * 80);
  REQUIRE(row(2).dimension == "context");
  CHECK(row(2).forward == Approx(3.0 * 80 * 7 * 2 * (2 * 8192 * 1024 / 4)));
  CHECK(row(2).backward == Approx(2 * row(2).forward));
  CHECK(row(2).forward_calls == 3 * 80 * 7);
}

TEST_CASE("training traffic: what leaves a server, against all pairs of ranks", "[workload]") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const auto pick = [&](std::uint32_t most) {
      return 1 + static_cast<std::uint32_t>(random.below(most));
    };
    const std::uint32_t low = pick(4), mid = 1 + pick(5), high = pick(4), gpus = pick(9);
    const std::uint32_t ranks = low * mid * high;
    const RankGroups groups(ranks, gpus);
    std::uint32_t ring = 0, mesh = 0, chain = 0;
    for (std::uint32_t a = 0; a < ranks; ++a) {
      for (std::uint32_t b = 0; b < ranks; ++b) {
        const std::uint32_t at = a / low % mid, to = b / low % mid;
        const bool group = a % low == b % low && a / (low * mid) == b / (low * mid);
        if (!group || a == b || a / gpus == b / gpus) continue;
        ++mesh;
        if (to == (at + 1) % mid) ++ring;
        if (to == at + 1) ++chain;
      }
    }
    CHECK(groups.mesh_share({{low, mid}}) == Approx(1.0 * mesh / (ranks * (mid - 1))));
    CHECK(groups.ring_share({{low, mid}}) == Approx(1.0 * ring / ranks));
    const std::uint32_t hops = ranks / mid * (mid - 1);
    CHECK(groups.chain_share({low, mid}, 1) == Approx(1.0 * chain / hops));
    const std::uint32_t back = ring - chain;  // hops from the last to the first
    CHECK(groups.chain_share({low, mid}, 3) ==
          Approx((3.0 * chain + 2.0 * back) / (3.0 * hops + 2.0 * (ranks - hops))));
    CHECK(groups.ring_share({{low, mid}, {low * mid, high}}) ==
          groups.ring_share({{low, mid * high}}));
  }
}

TEST_CASE("training traffic: models by name", "[workload]") {
  for (const std::string_view name : training_model_names()) {
    CAPTURE(name);
    const TrainingModel model = find_training_model(name);
    CHECK(model.layers > 0);
    CHECK((model.experts == 0) == (model.expert_parameters == 0));
  }
  CHECK(find_training_model("gpt").layers == 0);
  CHECK(find_training_model("llama3-70b").parameters ==
        static_cast<double>(kLlama3_70b.parameters()));
  CHECK(find_training_model("llama3-70b").kv_hidden == 1024);
  const TrainingModel deepseek = find_training_model("deepseek-v3");
  CHECK(deepseek.parameters + deepseek.expert_parameters == 671'026'419'200.0);
  // A token visits 8 of 256 experts: 37B parameters in the paper.
  CHECK(deepseek.parameters + deepseek.expert_parameters / 32 == Approx(37e9).margin(0.6e9));
}

}  // namespace
}  // namespace paceline::workload
