// Experiments as the store and the API have them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/daemon/api/endpoint.h"
#include "control/experiment/live/analysis/analysis.h"

namespace paceline::daemon {

enum class ExperimentState : std::uint8_t {
  running,
  concluded,
  stopped,  // a user asked for it
  tripped,  // the guard ended it
  failed,
  refused,  // by the service; it did not begin
};
std::string_view to_text(ExperimentState state);

// An experiment in the store, by its number.
struct ExperimentEntry {
  std::int64_t number = 0;
  std::string name;
  std::string who;
  std::string why;
  std::string digest;            // of the schedule
  bool null_experiment = false;  // A/A
  bool promote = false;          // on a verdict of "ship"
  ExperimentState state = ExperimentState::running;
  std::string ended;  // the reason
  // None: the store has none, or that of a later version.
  std::optional<experiment::live::Verdict> verdict = experiment::live::Verdict::running;
  std::vector<std::string> reasons;  // of the verdict
  std::int64_t started_unix_ns = 0;
  std::int64_t ended_unix_ns = 0;
  std::int64_t promoted = 0;                   // the change of parameters that did it; 0: none
  std::vector<std::vector<std::string>> nics;  // by cluster

  bool running() const { return state == ExperimentState::running; }
};
Json json_of(const ExperimentEntry& entry);
std::string_view verdict_text(const ExperimentEntry& entry);
ExperimentEntry experiment_entry_of(const Json& body);
std::string experiment_key(std::int64_t number);  // in the store and of its folder

}  // namespace paceline::daemon
