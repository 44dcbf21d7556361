// [workload.job.model]: models by name and by sizes, and what does not fit together.
#include "tools/workload/model_job.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace paceline::workload::model_job_test {
namespace {

using Lines = std::vector<std::string>;

config::TrainingConfig small_config() {
  config::TrainingConfig c;
  c.layers = 8;
  c.hidden = 64;
  c.heads = 4;
  c.ffn = 128;
  c.vocabulary = 100;
  c.sequence = 16;
  c.flops = 1e9;
  return c;
}

Lines errors_of(const config::TrainingConfig& model, std::uint32_t ranks) {
  config::JobConfig job;
  job.format = "model";
  job.model = model;
  return model_job(job, ranks).errors;
}

TEST_CASE("model jobs: sizes of a model make its parameters", "[workload][jobs]") {
  config::TrainingConfig c = small_config();
  c.layers = 32;
  c.hidden = 4096;
  c.heads = 32;
  c.kv_heads = 8;
  c.ffn = 14'336;
  c.vocabulary = 128'256;
  const TrainingModel llama = training_settings(c, 1).value.model;
  CHECK(llama.parameters == 8'030'261'248.0);  // Llama 3 8B
  c.vocabulary = 32'000;
  c.experts = 8;
  c.top_k = 2;
  const TrainingModel mixtral = training_settings(c, 1).value.model;
  CHECK(mixtral.parameters + mixtral.expert_parameters == 46'702'792'704.0);  // Mixtral 8x7B
  CHECK(mixtral.expert_layers == 32);
  CHECK(mixtral.kv_hidden == 1'024);
}

TEST_CASE("model jobs: names and sizes mean the same", "[workload][jobs]") {
  config::TrainingConfig named;
  named.name = "llama3-8b";
  config::TrainingConfig sized = small_config();
  sized.layers = 32;
  sized.hidden = 4096;
  sized.heads = 32;
  sized.kv_heads = 8;
  sized.ffn = 14'336;
  sized.vocabulary = 128'256;
  const TrainingModel a = training_settings(named, 1).value.model;
  const TrainingModel b = training_settings(sized, 1).value.model;
  CHECK(a.parameters == b.parameters);
  CHECK(a.attention_parameters == b.attention_parameters);
  CHECK(a.attention_parameters == 2.0 * 4096 * 4096 + 2.0 * 4096 * 1024 + 2.0 * 4096);
  CHECK(a.output_parameters == 128'257.0 * 4096);
}

TEST_CASE("model jobs: neither a name nor sizes, or both", "[workload][jobs]") {
  config::TrainingConfig c;
  CHECK(errors_of(c, 1) ==
        Lines{"workload.job.model.layers = 0: without a name, allowed is 1 or more",
              "workload.job.model.hidden = 0: without a name, allowed is 1 or more",
              "workload.job.model.heads = 0: without a name, allowed is 1 or more",
              "workload.job.model.ffn = 0: without a name, allowed is 1 or more",
              "workload.job.model.vocabulary = 0: without a name, allowed is 1 or more"});
  c.name = "llama";
  c.layers = 3;
  CHECK(errors_of(c, 1) ==
        Lines{"workload.job.model.layers = 3: contradicts workload.job.model.name = \"llama\", "
              "which says it",
              "workload.job.model.name = \"llama\": allowed is \"deepseek-v3\", \"gpt-13b\", "
              "\"gpt-175b\", \"llama-7b\", \"llama-65b\", \"llama3-8b\" or \"llama3-70b\""});
}

TEST_CASE("model jobs: sizes that do not fit together", "[workload][jobs]") {
  config::TrainingConfig c = small_config();
  c.heads = 5;
  CHECK(errors_of(c, 1) ==
        Lines{"workload.job.model.heads = 5: expected a divisor of hidden = 64"});
  c = small_config();
  c.kv_heads = 3;
  CHECK(errors_of(c, 1) ==
        Lines{"workload.job.model.kv_heads = 3: expected a divisor of heads = 4"});
  c = small_config();
  c.top_k = 2;
  CHECK(errors_of(c, 1) ==
        Lines{"workload.job.model.top_k = 2: allowed with experts of 1 or more"});
  c.experts = 4;
  c.top_k = 5;
  c.expert_layers = 9;
  CHECK(errors_of(c, 1) ==
        Lines{"workload.job.model.top_k = 5: allowed with experts = 4 is 1 .. 4",
              "workload.job.model.expert_layers = 9: allowed with layers = 8 is 0 .. 8"});
}

TEST_CASE("model jobs: degrees that do not fit together", "[workload][jobs]") {
  const auto with = [](auto change) {
    config::TrainingConfig c = small_config();
    change(c);
    const auto settings = training_settings(c, 1);
    REQUIRE(settings.errors == Lines{});
    return check_training(settings.value, c.tp * c.cp * c.dp * c.pp);
  };
  CHECK(with([](auto&) {}) == Lines{});
  CHECK(with([](auto& c) { c.pp = 3; }) ==
        Lines{"workload.job.model.pp = 3: 3 parts of the model; expected a divisor of its 8 "
              "layers"});
  CHECK(with([](auto& c) { c.pp = 2, c.virtual_stages = 3, c.micro_batches = 2; }) ==
        Lines{"workload.job.model.virtual_stages = 3: 6 parts of the model; expected a divisor of "
              "its 8 layers"});
  CHECK(with([](auto& c) { c.virtual_stages = 2; }) ==
        Lines{"workload.job.model.virtual_stages = 2: allowed with pp of 2 or more"});
  CHECK(with([](auto& c) { c.pp = 2, c.virtual_stages = 2, c.micro_batches = 3; }) ==
        Lines{"workload.job.model.micro_batches = 3: with virtual_stages = 2 expected a multiple "
              "of pp = 2"});
  CHECK(with([](auto& c) { c.dp = 4, c.ep = 2; }) ==
        Lines{"workload.job.model.ep = 2: the model has no experts, allowed is 1"});
  CHECK(with([](auto& c) { c.dp = 4, c.ep = 3, c.experts = 4, c.top_k = 1; }) ==
        Lines{"workload.job.model.ep = 3: expected a divisor of dp = 4",
              "workload.job.model.ep = 3: expected a divisor of the 4 experts of a layer"});
  CHECK(with([](auto& c) { c.cp = 3; }) ==
        Lines{"workload.job.model.cp = 3: expected a divisor of sequence = 16"});
  CHECK(with([](auto& c) { c.sequence_parallel = true; }) ==
        Lines{"workload.job.model.sequence_parallel = true: allowed with tp of 2 or more"});
  CHECK(with([](auto& c) { c.tp = 2, c.gather_again = true; }) ==
        Lines{"workload.job.model.gather_again = true: allowed with sequence_parallel = true"});
  CHECK(with([](auto& c) { c.zero = 2, c.free_weights = true; }) ==
        Lines{"workload.job.model.free_weights = true: allowed with zero = 3"});
}

TEST_CASE("model jobs: ranks of the fabric, and too many ops", "[workload][jobs]") {
  config::TrainingConfig c = small_config();
  c.tp = 2;
  c.dp = 4;
  CHECK(errors_of(c, 8) == Lines{});
  CHECK(errors_of(c, 16) ==
        Lines{"workload.job.model: tp 2 x cp 1 x dp 4 x pp 1 = 8 ranks: expected 16, the NICs that "
              "the job may have"});
  config::TrainingConfig deepseek;
  deepseek.name = "deepseek-v3";
  deepseek.cp = 2;
  CHECK(errors_of(deepseek, 2) ==
        Lines{"workload.job.model.cp = 2: the size of the model's keys and values is not known, "
              "allowed is 1"});
  // 8 layers with 2 computations and 2 all-reduces each way, and the output, of each micro-batch;
  // one bucket.
  c.dp = 64;
  c.micro_batches = 2'000;
  CHECK(errors_of(c, 128) ==
        Lines{"workload.job.model: about 1.69e+07 operations of 128 ranks: at most 16777216 fit; "
              "merge_layers and bucket_bytes make fewer"});
  c.micro_batches = 65'536;
  CHECK(errors_of(c, 128) ==
        Lines{"workload.job.model: at least 2.68e+08 operations of 128 ranks: at most 16777216 "
              "fit; merge_layers and bucket_bytes make fewer"});
}

TEST_CASE("model jobs: sizes beyond what is counted", "[workload][jobs]") {
  config::TrainingConfig c = small_config();
  c.sequence = 1 << 24;
  c.micro_batch = 1 << 16;
  c.merge_layers = 8;
  c.flops = 1e18;
  // 2^40 tokens of 64 values of 2 B, 8 layers, keys and values.
  CHECK(errors_of(c, 1) ==
        Lines{"workload.job.model: 2.25e+15 B of activations of a micro-batch: at most 1e+15 B "
              "fit"});
  c = small_config();
  c.hidden = 1 << 20;
  c.ffn = 1 << 20;
  c.layers = 1024;
  c.merge_layers = 1024;
  // 1024 layers of 4 H^2 + 3 H^2, in bytes 2^40 * 7 * 1024 * 2, and 16 tokens at 1e9 FLOP/s.
  CHECK(errors_of(c, 1).front() ==
        "workload.job.model: 1.58e+16 B of weights: at most 1e+15 B fit");
  c = small_config();
  c.flops = 1e9;
  c.micro_batches = 65'536;
  c.sequence = 1 << 20;
  // 3 passes, 2^36 tokens in all; 2 FLOP for each of 341,568 parameters, and 4 s H in 8 layers.
  CHECK(errors_of(c, 1) ==
        Lines{"workload.job.model.flops = 1000000000: a rank computes for up to 4.43e+11 s: at "
              "most 1e+06 s fit"});
}

}  // namespace
}  // namespace paceline::workload::model_job_test
