#include "dataplane/service/congestion/trial_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace paceline::service {

const Trial* TrialTable::find(std::string_view name) const {
  const auto at = std::find_if(trials_.begin(), trials_.end(),
                               [&](const Trial& trial) { return trial.name == name; });
  return at == trials_.end() ? nullptr : &*at;
}

Trial* TrialTable::find(std::string_view name) {
  return const_cast<Trial*>(std::as_const(*this).find(name));
}

const Trial* TrialTable::running_on(std::size_t nic) const {
  const auto at = std::find_if(trials_.begin(), trials_.end(), [&](const Trial& trial) {
    return trial.state == TrialState::running &&
           std::find(trial.nics.begin(), trial.nics.end(), nic) != trial.nics.end();
  });
  return at == trials_.end() ? nullptr : &*at;
}

Trial* TrialTable::running_on(std::size_t nic) {
  return const_cast<Trial*>(std::as_const(*this).running_on(nic));
}

std::vector<std::string> TrialTable::refusals(const std::string& name) const {
  std::vector<std::string> errors;
  if (find(name) != nullptr) {
    errors.push_back(fmt::format("there is a trial \"{}\" already: end it first", name));
  }
  if (trials_.size() >= kMostTrials)
    errors.push_back(fmt::format("{} trials are kept", kMostTrials));
  return errors;
}

void TrialTable::add(Trial trial) {
  renew(trial);
  trials_.push_back(std::move(trial));
}

void TrialTable::remove(const Trial& trial) {
  trials_.remove_if([&](const Trial& other) { return &other == &trial; });
}

void TrialTable::end(Trial& trial, TrialState state, std::string why) const {
  trial.arm = 0;
  trial.arms.assign(trial.clusters.size(), 0);
  trial.epoch = 0;
  trial.state = state;
  trial.why = std::move(why);
}

std::uint64_t TrialTable::remaining_ms(const Trial& trial) const {
  const std::uint64_t ends = trial.renewed_ms + trial.hold_ms;
  return trial.state == TrialState::running && ends > now_ms_ ? ends - now_ms_ : 0;
}

std::vector<Trial*> TrialTable::expired() {
  std::vector<Trial*> out;
  for (Trial& trial : trials_) {
    if (trial.state == TrialState::running && remaining_ms(trial) == 0) out.push_back(&trial);
  }
  return out;
}

}  // namespace paceline::service
