#include "tools/job/traffic_task.h"

#include <fmt/format.h>

#include <type_traits>

#include "dataplane/config/toml/quantity.h"

namespace paceline::tools {

namespace {

constexpr std::uint32_t kMostRanks = 1U << 20;
constexpr double kMostParameters = 1e15;
constexpr double kMostTokens = 1e15;

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const std::string_view name : workload::training_model_names()) names.emplace_back(name);
  return names;
}

workload::Sharding sharding_of(std::uint32_t zero) {
  if (zero == 0) return workload::Sharding::none;
  return zero == 3 ? workload::Sharding::full : workload::Sharding::optimizer;
}

}  // namespace

void TrafficOptions::add_to(const config::Command& command) {
  add_model(command);
  add_parallelism(command);
  add_step(command);
  command
      .option("--accounting", accounting_,
              "ring: what ring collectives send (default). naive-mesh: every rank sends all of "
              "its data to every other rank, as one published table assumes")
      .type("NAME")
      .one_of({"ring", "naive-mesh"});
  command.option("--rate", rate_, "rate of each rank's NIC (default: 400 Gb/s)").type("RATE");
  command.option("--steps", steps_, "also print what all ranks send in so many steps")
      .type("FLOAT")
      .within(1.0, 1e12);
}

void TrafficOptions::add_model(const config::Command& command) {
  const auto add = [&command](const char* option, auto& value, const char* help, auto least,
                              auto most) {
    command.option(option, value, help)
        .type(std::is_same_v<decltype(least), double> ? "FLOAT" : "N")
        .within(least, most);
  };
  command.option("--model", name_, "the model; the options below change its sizes")
      .type("NAME")
      .one_of(model_names());
  add("--layers", layers_, "layers", 1U, 100'000U);
  add("--parameters", parameters_, "parameters without those of routed experts: 70e9", 1.0,
      kMostParameters);
  add("--hidden", hidden_, "values in an activation (the hidden size)", 1U, 1U << 24);
  add("--kv-hidden", kv_hidden_, "values in the keys of a token and layer, for --cp", 1U, 1U << 24);
  add("--experts", experts_, "routed experts of a layer", 1U, 1U << 20);
  add("--expert-layers", expert_layers_, "layers with routed experts (default: all)", 1U, 100'000U);
  add("--expert-parameters", expert_parameters_, "parameters of all routed experts", 1.0,
      kMostParameters);
  add("--top-k", top_k_, "experts that a token is sent to", 1U, 1U << 20);
  add("--value-bytes", value_bytes_, "bytes of a weight or an activation (default: 2)", 0.5, 8.0);
}

void TrafficOptions::add_parallelism(const config::Command& command) {
  const auto add = [&command](const char* option, std::uint32_t& value, const char* help) {
    command.option(option, value, help).type("N").within(1U, kMostRanks);
  };
  add("--tp", parallelism_.tensor, "tensor-parallel ranks (default of all degrees: 1)");
  add("--pp", parallelism_.pipeline, "stages of the pipeline");
  add("--dp", parallelism_.data, "data-parallel ranks");
  add("--ep", parallelism_.expert, "data-parallel ranks that divide the experts among them");
  add("--cp", parallelism_.context, "context-parallel ranks: ring attention");
  add("--chunks", parallelism_.chunks, "interleaving: parts of the layers that a stage has");
  command
      .option("--zero", zero_,
              "0: gradients are all-reduced (default). 1, 2: gradients are reduced and "
              "scattered, weights gathered. 3: weights are gathered in both passes, as by FSDP")
      .type("LEVEL")
      .within(0U, 3U);
  command.flag("--sequence-parallel", parallelism_.sequence,
               "tensor-parallel ranks share out the activations between layers");
  add("--gpus-per-server", parallelism_.gpus_per_server,
      "ranks joined by NVLink, one NIC each (default: 8)");
}

void TrafficOptions::add_step(const config::Command& command) {
  command
      .option("--micro-batches", micro_batches_, "micro-batches per step and pipeline (default: 1)")
      .type("N")
      .within(1U, 1U << 24);
  const config::Option tokens =
      command
          .option("--tokens", tokens_,
                  "tokens of a micro-batch: its sequences times their length (default: 4096)")
          .type("FLOAT")
          .within(1.0, kMostTokens);
  command
      .option("--step-tokens", step_tokens_,
              "instead of --tokens: tokens of a step, over all data-parallel ranks")
      .type("FLOAT")
      .within(1.0, kMostTokens)
      .excludes(tokens);
  command
      .option("--gradient-bytes", gradient_bytes_,
              "bytes of a gradient when it is reduced (default: 2; 4 for FP32)")
      .type("FLOAT")
      .within(0.5, 8.0);
  command.flag("--gather-again", gathers_inputs_,
               "backward gathers the inputs of --sequence-parallel again, as Megatron-LM does");
  command.flag("--free-weights", frees_weights_, "--zero 3 gathers weights for every micro-batch");
}

config::Read<TrafficTask> TrafficOptions::task() const {
  config::Read<TrafficTask> out;
  TrafficTask& task = out.value;
  task.model_name = name_;
  task.model = model(out.errors);
  task.parallelism = parallelism_;
  task.parallelism.sharding = sharding_of(zero_);
  task.accounting =
      accounting_ == "ring" ? workload::Accounting::ring : workload::Accounting::naive_mesh;
  task.steps = steps_;
  task.step = {micro_batches_,
               step_tokens_ ? *step_tokens_ / (1.0 * parallelism_.data * micro_batches_) : tokens_,
               gradient_bytes_, gathers_inputs_, frees_weights_};
  const auto rate = config::parse_rate(rate_);
  task.rate = rate.value;
  if (!rate.ok() || rate.value.bps == 0) {
    out.errors.push_back(fmt::format("--rate {}: expected a rate such as \"400 Gb/s\"", rate_));
  }
  if (task.model.layers == 0) return out;
  check_degrees(task.model, out.errors);
  if (task.accounting == workload::Accounting::naive_mesh) {
    check_published(task.model, out.errors);
  }
  return out;
}

// A model without layers if none is given.
workload::TrainingModel TrafficOptions::model(std::vector<std::string>& errors) const {
  if (name_.empty() && !(layers_ && parameters_ && hidden_)) {
    errors.emplace_back("no model: give --model, or --layers, --parameters and --hidden");
    return {};
  }
  workload::TrainingModel model = workload::find_training_model(name_);
  const auto take = [](const auto& given, auto& value) {
    if (given) value = *given;
  };
  take(layers_, model.layers);
  take(parameters_, model.parameters);
  take(hidden_, model.hidden);
  take(kv_hidden_, model.kv_hidden);
  take(experts_, model.experts);
  take(expert_parameters_, model.expert_parameters);
  take(top_k_, model.top_k);
  if (experts_ && model.expert_layers == 0) model.expert_layers = model.layers;
  take(expert_layers_, model.expert_layers);
  model.value_bytes = value_bytes_;
  const bool some = model.experts != 0 || model.top_k != 0 || model.expert_parameters != 0;
  const bool all = model.experts != 0 && model.top_k != 0 && model.expert_parameters != 0;
  if (some && !all) {
    errors.emplace_back(
        "experts: expected all of --experts, --top-k and --expert-parameters, or none");
  }
  if (all && model.top_k > model.experts) {
    errors.push_back(fmt::format("--top-k {}: expected at most {}, the experts of a layer",
                                 model.top_k, model.experts));
  }
  if (model.expert_layers > model.layers) {
    errors.push_back(fmt::format("--expert-layers {}: expected at most {}, the layers of the model",
                                 model.expert_layers, model.layers));
  }
  return model;
}

void TrafficOptions::check_degrees(const workload::TrainingModel& model,
                                   std::vector<std::string>& errors) const {
  const workload::Parallelism& by = parallelism_;
  const auto refuse = [&errors](const char* option, std::uint32_t value, const std::string& what) {
    errors.push_back(fmt::format("{} {}: {}", option, value, what));
  };
  const double ranks = 1.0 * by.tensor * by.pipeline * by.data * by.context;
  if (ranks > kMostRanks) {
    errors.push_back(fmt::format("--tp, --pp, --dp and --cp make {:.6g} ranks: expected at most {}",
                                 ranks, kMostRanks));
  }
  if (std::uint64_t{by.pipeline} * by.chunks > model.layers) {
    errors.push_back(fmt::format(
        "--pp {} of --chunks {}: expected at most {} parts, one for each layer of the model",
        by.pipeline, by.chunks, model.layers));
  }
  if (by.chunks > 1 && by.pipeline == 1) {
    refuse("--chunks", by.chunks, "expected a pipeline, --pp above 1");
  }
  if (by.expert > 1 && model.experts == 0) {
    refuse("--ep", by.expert, "expected 1: the model has no routed experts");
  } else if (by.expert > 1 && (by.data % by.expert != 0 || model.experts % by.expert != 0)) {
    refuse("--ep", by.expert,
           fmt::format("expected a divisor of --dp {} and of the {} experts of a layer", by.data,
                       model.experts));
  }
  if (by.context > 1 && model.kv_hidden == 0) {
    refuse("--cp", by.context, "expected --kv-hidden, which this model leaves open");
  }
  if (by.sequence && by.tensor == 1) {
    errors.emplace_back("--sequence-parallel: expected tensor-parallel ranks, --tp above 1");
  }
  if (gathers_inputs_ && !by.sequence) {
    errors.emplace_back("--gather-again: expected --sequence-parallel");
  }
  if (frees_weights_ && zero_ != 3) errors.emplace_back("--free-weights: expected --zero 3");
}

// The published table covers only this.
void TrafficOptions::check_published(const workload::TrainingModel& model,
                                     std::vector<std::string>& errors) const {
  std::vector<std::string> given;
  if (model.experts != 0) given.emplace_back("a model with experts");
  if (parallelism_.context > 1) given.emplace_back("--cp");
  if (parallelism_.chunks > 1) given.emplace_back("--chunks");
  if (parallelism_.sequence) given.emplace_back("--sequence-parallel");
  if (zero_ == 1 || zero_ == 2) given.push_back(fmt::format("--zero {}", zero_));
  for (const std::string& one : given) {
    errors.push_back(
        fmt::format("--accounting naive-mesh: {}: allowed are --tp, --pp, --dp and "
                    "--zero 0 or 3 of a model without experts",
                    one));
  }
}

}  // namespace paceline::tools
