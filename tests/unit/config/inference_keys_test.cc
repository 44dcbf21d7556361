// [workload.job.inference]: defaults, values, and the format that it is for.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "dataplane/config/scenario/scenario_reader.h"
#include "tests/unit/config/test_algorithms.h"

namespace paceline::config::inference_keys_test {
namespace {

using Errors = std::vector<std::string>;

// The first line of `job` is line 6.
Read<Scenario> read_inference(const std::string& job) {
  return read_scenario_text(
      "[fabric]\nhosts = 16\n[workload]\nkind = \"job\"\n[workload.job]\n" + job, "s.toml",
      "folder", {test_algorithms(), {}});
}

TEST_CASE("keys of inference: defaults", "[config]") {
  const auto read = read_inference("format = \"inference\"\nfile = \"a\"\n");
  REQUIRE(read.errors == Errors{});
  CHECK(read.value.workload.job.format == "inference");
  CHECK(read.value.workload.job.file == "folder/a");
  const InferenceConfig& c = read.value.workload.job.inference;
  CHECK(c.prefill_nics == 0);
  CHECK(c.layers == 80);
  CHECK(c.kv_bytes == 4'096);
  CHECK(c.tokens_per_second == 2'500);
  CHECK(c.layers_per_transfer == 1);
  CHECK(c.time_scale == 1);
  CHECK(c.requests == 0);
  CHECK(c.reuse);
}

TEST_CASE("keys of inference: each one reaches its field", "[config]") {
  const auto read = read_inference(R"(format = "inference"
file = "a"
[workload.job.inference]
prefill_nics = 2
layers = 3
kv_bytes = "4KiB"
tokens_per_second = 5
layers_per_transfer = 6
time_scale = 7.5
requests = 8
reuse = false
)");
  REQUIRE(read.errors == Errors{});
  const InferenceConfig& c = read.value.workload.job.inference;
  CHECK(c.prefill_nics == 2);
  CHECK(c.layers == 3);
  CHECK(c.kv_bytes == 4'096);
  CHECK(c.tokens_per_second == 5);
  CHECK(c.layers_per_transfer == 6);
  CHECK(c.time_scale == 7.5);
  CHECK(c.requests == 8);
  CHECK_FALSE(c.reuse);
}

TEST_CASE("keys of inference: what does not fit together", "[config]") {
  CHECK(read_inference("format = \"inference\"\n").errors ==
        Errors{"s.toml:6:10: workload.job.format = \"inference\" needs workload.job.file"});
  CHECK(read_inference("format = \"inference\"\nfile = \"a\"\niterations = 2\ncompute_scale = 2\n")
            .errors ==
        Errors{"s.toml:8:14: workload.job.iterations does nothing with workload.job.format = "
               "\"inference\"",
               "s.toml:9:17: workload.job.compute_scale does nothing with workload.job.format = "
               "\"inference\""});
  CHECK(read_inference("format = \"goal\"\nfile = \"a\"\n[workload.job.inference]\nreuse = true\n")
            .errors ==
        Errors{"s.toml:9:9: workload.job.inference.reuse does nothing with workload.job.format = "
               "\"goal\""});
}

}  // namespace
}  // namespace paceline::config::inference_keys_test
