// The options of `paceline job traffic`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/config/toml/diagnostics.h"
#include "tools/cli/cli.h"
#include "tools/workload/models/training_traffic.h"

namespace paceline::tools {

struct TrafficTask {
  std::string model_name;
  workload::TrainingModel model;
  workload::Parallelism parallelism;
  workload::TrainingStep step;
  workload::Accounting accounting = workload::Accounting::ring;
  Rate rate{0};      // of a rank's NIC
  double steps = 0;  // of a whole run; 0: one step is all that is asked for
};

class TrafficOptions {
 public:
  void add_to(const config::Command& command);
  // All errors, each with the value and what is allowed.
  config::Read<TrafficTask> task() const;

 private:
  void add_model(const config::Command& command);
  void add_parallelism(const config::Command& command);
  void add_step(const config::Command& command);
  workload::TrainingModel model(std::vector<std::string>& errors) const;
  void check_degrees(const workload::TrainingModel& model, std::vector<std::string>& errors) const;
  void check_published(const workload::TrainingModel& model,
                       std::vector<std::string>& errors) const;

  std::string name_;
  std::optional<std::uint32_t> layers_, hidden_, kv_hidden_;
  std::optional<std::uint32_t> experts_, expert_layers_, top_k_;
  std::optional<double> parameters_, expert_parameters_;
  double value_bytes_ = 2;
  workload::Parallelism parallelism_;
  std::uint32_t zero_ = 0;
  std::uint32_t micro_batches_ = 1;
  double tokens_ = 4096;
  std::optional<double> step_tokens_;
  double gradient_bytes_ = 2;
  bool gathers_inputs_ = false;
  bool frees_weights_ = false;
  std::string accounting_ = "ring";
  std::string rate_ = "400 Gb/s";
  double steps_ = 0;
};

}  // namespace paceline::tools
