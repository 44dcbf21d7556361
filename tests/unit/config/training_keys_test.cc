// [workload.job.model]: defaults, values, and the format that it is for.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "dataplane/config/scenario/scenario_reader.h"
#include "tests/unit/config/test_algorithms.h"

namespace paceline::config {
namespace {

using Errors = std::vector<std::string>;

// The first line of the table is line 7.
Read<Scenario> read_model(const std::string& table, const std::string& format = "model") {
  return read_scenario_text("[fabric]\nhosts = 16\n[workload]\nkind = \"job\"\njob.format = \"" +
                                format + "\"\n[workload.job.model]\n" + table,
                            "s.toml", "folder", {test_algorithms(), {}});
}

TEST_CASE("keys of training: defaults", "[config]") {
  const auto read = read_model("");
  REQUIRE(read.errors == Errors{});
  CHECK(read.value.workload.job.format == "model");
  const TrainingConfig& model = read.value.workload.job.model;
  CHECK(model.name.empty());
  for (const std::uint32_t size :
       {model.layers, model.hidden, model.heads, model.kv_heads, model.ffn, model.vocabulary,
        model.experts, model.top_k, model.expert_layers, model.expert_ffn, model.zero}) {
    CHECK(size == 0);
  }
  for (const std::uint32_t degree :
       {model.tp, model.cp, model.dp, model.pp, model.ep, model.virtual_stages, model.merge_layers,
        model.micro_batch, model.micro_batches}) {
    CHECK(degree == 1);
  }
  CHECK(model.sequence == 4'096);
  CHECK(model.causal);
  CHECK(model.flops == 4e14);
  CHECK_FALSE(model.sequence_parallel);
  CHECK_FALSE(model.gather_again);
  CHECK_FALSE(model.free_weights);
  CHECK(model.bucket_bytes == 25'000'000);
  CHECK(model.gradient_bytes == 2);
}

TEST_CASE("keys of training: each one reaches its field", "[config]") {
  const auto read = read_model(R"(name = "llama3-8b"
layers = 2
hidden = 3
heads = 4
kv_heads = 5
ffn = 6
vocabulary = 7
experts = 8
top_k = 9
expert_layers = 10
expert_ffn = 11
sequence = 12
micro_batch = 13
micro_batches = 14
causal = false
flops = 3e14
tp = 15
cp = 16
dp = 17
pp = 18
ep = 19
virtual_stages = 20
zero = 3
sequence_parallel = true
gather_again = true
free_weights = true
bucket_bytes = "40MB"
gradient_bytes = 4
merge_layers = 21
)");
  REQUIRE(read.errors == Errors{});
  const TrainingConfig& m = read.value.workload.job.model;
  CHECK(m.name == "llama3-8b");
  CHECK(std::vector<std::uint32_t>{m.layers,
                                   m.hidden,
                                   m.heads,
                                   m.kv_heads,
                                   m.ffn,
                                   m.vocabulary,
                                   m.experts,
                                   m.top_k,
                                   m.expert_layers,
                                   m.expert_ffn,
                                   m.sequence,
                                   m.micro_batch,
                                   m.micro_batches,
                                   m.tp,
                                   m.cp,
                                   m.dp,
                                   m.pp,
                                   m.ep,
                                   m.virtual_stages,
                                   m.merge_layers} ==
        std::vector<std::uint32_t>{2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                   12, 13, 14, 15, 16, 17, 18, 19, 20, 21});
  CHECK_FALSE(m.causal);
  CHECK(m.flops == 3e14);
  CHECK(m.zero == 3);
  CHECK(m.sequence_parallel);
  CHECK(m.gather_again);
  CHECK(m.free_weights);
  CHECK(m.bucket_bytes == 40'000'000);
  CHECK(m.gradient_bytes == 4);
}

TEST_CASE("keys of training: values out of range", "[config]") {
  CHECK(read_model("zero = 4\n").errors ==
        Errors{"s.toml:7:8: workload.job.model.zero = 4: out of range, allowed is [0 .. 3]"});
  CHECK(read_model("pp = 0\n").errors ==
        Errors{"s.toml:7:6: workload.job.model.pp = 0: out of range, allowed is [1 .. 524288]"});
  CHECK(read_model("layer = 3\n").errors ==
        Errors{"s.toml:7:1: unknown key \"layer\" in [workload.job.model]; did you mean "
               "\"layers\"?"});
}

TEST_CASE("keys of training: they are of one format, which takes no file", "[config]") {
  CHECK(read_model("pp = 2\n", "collective").errors ==
        Errors{"s.toml:7:6: workload.job.model.pp does nothing with workload.job.format = "
               "\"collective\""});
  CHECK(read_scenario_text("[workload.job]\nformat = \"model\"\nfile = \"a\"\nbytes = \"8B\"\n",
                           "s.toml", "folder", {test_algorithms(), {}})
            .errors ==
        Errors{"s.toml:3:8: workload.job.file does nothing with workload.job.format = \"model\"",
               "s.toml:4:9: workload.job.bytes does nothing with workload.job.format = "
               "\"model\""});
}

}  // namespace
}  // namespace paceline::config
