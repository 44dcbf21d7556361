// Trials: a candidate against the champion, by arms and epochs.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "dataplane/service/congestion/congestion_desk.h"

namespace paceline::service {

std::uint64_t CongestionDesk::remaining_ms(const Trial& trial) const {
  const std::uint64_t ends = trial.renewed_ms + trial.hold_ms;
  return trial.state == TrialState::running && ends > now_ms_ ? ends - now_ms_ : 0;
}

// The one that runs there.
Trial* CongestionDesk::trial_of(std::size_t nic) {
  for (Trial& trial : trials_) {
    if (trial.state == TrialState::running &&
        std::find(trial.nics.begin(), trial.nics.end(), nic) != trial.nics.end()) {
      return &trial;
    }
  }
  return nullptr;
}

const Trial* CongestionDesk::find_trial(const std::string& name) const {
  const auto at = std::find_if(trials_.begin(), trials_.end(),
                               [&](const Trial& trial) { return trial.name == name; });
  return at == trials_.end() ? nullptr : &*at;
}

Trial* CongestionDesk::named(const std::string& name, std::vector<std::string>& errors) {
  for (Trial& trial : trials_) {
    if (trial.name == name) return &trial;
  }
  errors.push_back(fmt::format("there is no trial \"{}\"", name));
  return nullptr;
}

std::vector<std::string> CongestionDesk::begin_trial(const ControlRequest& request) {
  std::vector<std::string> errors;
  Trial trial;
  trial.name = request.name;
  if (request.clusters.empty()) {
    trial.nics = pick(request.nics, errors);
  } else {
    pick_clusters(request, trial, errors);
  }
  trial.limits = request.guard;
  trial.hold_ms = request.hold_ms;
  trial.renewed_ms = now_ms_;
  if (find_trial(request.name) != nullptr) {
    errors.push_back(fmt::format("there is a trial \"{}\" already: end it first", request.name));
  }
  if (trials_.size() >= kMostTrials)
    errors.push_back(fmt::format("{} trials are kept", kMostTrials));
  const CcChange change = errors.empty() ? with_plugin(request.change, errors) : request.change;
  if (change.names_file()) return errors;
  for (const std::size_t n : trial.nics) {
    const Nic& nic = nics_[n];
    if (const Trial* const other = trial_of(n)) {
      errors.push_back(fmt::format("{}: the trial \"{}\" is running", nic.name, other->name));
    }
    if (nic.latched != 0) {
      errors.push_back(fmt::format(
          "{}: the guard's trip {} is latched: see paceline guard; paceline guard clear lets "
          "trials start again",
          nic.name, nic.latched));
    }
    ResolvedArm resolved = resolve_arm(nic.champion, change, nic.facts);
    for (const std::string& error : resolved.errors) errors.push_back(nic.name + ": " + error);
    if (std::string why = quarantine_of(n, resolved.arm.setup.primary.algorithm);
        resolved.errors.empty() && !why.empty()) {
      errors.push_back(std::move(why));
    }
    trial.champions.push_back(nic.champion);
    trial.candidates.push_back(std::move(resolved.arm));
  }
  if (errors.empty() && !trial.clusters.empty()) errors = refusals_of(trial);
  if (errors.empty()) trials_.push_back(std::move(trial));
  return errors;
}

CongestionDesk::Outcome CongestionDesk::use_arm(const ControlRequest& request) {
  Outcome out;
  Trial* const trial = named(request.name, out.errors);
  if (trial == nullptr) return out;
  if (trial->state != TrialState::running) {
    out.errors.push_back(fmt::format("the trial \"{}\" is over: {}", trial->name, trial->why));
    return out;
  }
  if (!trial->clusters.empty() || !request.arms.empty()) return use_arms(*trial, request);
  std::vector<Change> changes;
  for (std::size_t i = 0; i < trial->nics.size(); ++i) {
    changes.push_back({trial->nics[i],
                       request.arm == 0 ? &trial->champions[i] : &trial->candidates[i], request.arm,
                       request.epoch});
  }
  out.errors = apply(changes);
  if (!out.errors.empty()) return out;
  trial->arm = request.arm;
  trial->epoch = request.epoch;
  if (request.renew) trial->renewed_ms = now_ms_;
  for (const std::size_t n : trial->nics) {
    out.nics.push_back({n, nics_[n].in_force.generation, true});
  }
  return out;
}

CongestionDesk::Outcome CongestionDesk::renew(const ControlRequest& request) {
  Outcome out;
  Trial* const trial = named(request.name, out.errors);
  if (trial == nullptr) return out;
  if (trial->state != TrialState::running) {
    out.errors.push_back(fmt::format("the trial \"{}\" is over: {}", trial->name, trial->why));
    return out;
  }
  trial->renewed_ms = now_ms_;
  return out;
}

CongestionDesk::Outcome CongestionDesk::end_trial(const ControlRequest& request) {
  Outcome out;
  Trial* const trial = named(request.name, out.errors);
  if (trial == nullptr) return out;
  const bool runs = trial->state == TrialState::running;
  if (!runs && request.keep_candidate) {
    out.errors.push_back(fmt::format("the trial \"{}\" is over, its candidate is not kept: {}",
                                     trial->name, trial->why));
    return out;
  }
  const std::vector<CcArm>& kept = request.keep_candidate ? trial->candidates : trial->champions;
  std::vector<Change> changes;
  for (std::size_t i = 0; i < trial->nics.size(); ++i) {
    const Nic& nic = nics_[trial->nics[i]];
    const bool changed = runs && (nic.in_force.arm != 0 || nic.in_force.epoch != 0 ||
                                  !kept[i].same_values(nic.current));
    out.nics.push_back({trial->nics[i], nic.in_force.generation + (changed ? 1 : 0), changed});
    if (changed) changes.push_back({trial->nics[i], &kept[i], 0, 0});
  }
  out.errors = apply(changes);
  if (!out.errors.empty()) return out;
  for (std::size_t i = 0; runs && i < trial->nics.size(); ++i) {
    nics_[trial->nics[i]].champion = kept[i];
  }
  trials_.remove_if([&](const Trial& t) { return &t == trial; });
  return out;
}

// Cannot be refused: these values were in force before. A worker that has ended has no candidate
// in force either.
void CongestionDesk::put_champion_back(Trial& trial, TrialState state, std::string why) {
  std::vector<Change> changes;
  for (std::size_t i = 0; i < trial.nics.size(); ++i) {
    const std::size_t n = trial.nics[i];
    changes.push_back({n, &trial.champions[i], 0, 0});
    if (nics_[n].latched == 0) continue;
    ServiceWorker& worker = service_.worker(nics_[n].place.worker);
    worker.call(nics_[n].place.nic,
                [&](Picos) { worker.note_guard(nics_[n].place.nic, nics_[n].latched); });
  }
  for (const std::string& error : apply(changes)) spdlog::error("trial {}: {}", trial.name, error);
  trial.arm = 0;
  trial.arms.assign(trial.clusters.size(), 0);
  trial.epoch = 0;
  trial.state = state;
  trial.why = std::move(why);
  spdlog::warn("the trial {} is over: {}", trial.name, trial.why);
}

}  // namespace paceline::service
