#include "dataplane/service/congestion/congestion_controller.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "cc/registry.h"
#include "dataplane/service/congestion/trial_arms.h"

namespace paceline::service {

namespace {

std::string_view arm_words(std::optional<std::uint8_t> arm) {
  if (!arm) return "";
  return *arm == 0 ? ", by the champion's arm" : ", by the candidate's arm";
}

// Names a plug-in, and the reason for its quarantine.
std::string quarantine_words(cc::AlgorithmId algorithm, cc::plugin::Offence offence) {
  return fmt::format("{} is in quarantine because it {}: this service does not call it again",
                     cc::find(algorithm)->name, cc::plugin::offence_text(offence));
}

}  // namespace

CongestionController::CongestionController(Service& service)
    : start_unix_ns_(service.settings().start_unix_ns),
      shelf_(service.settings().plugin_folders),
      champions_(service),
      guard_(service.segment(), champions_.nics().size()) {}

config::CongestionChange CongestionController::with_plugin(const config::CongestionChange& change,
                                                           std::vector<std::string>& errors) const {
  config::CongestionChange out = change;
  const bool named = change.names_file();
  if (!named && !change.sha256.empty()) {
    errors.emplace_back("sha256 needs a plug-in: set algorithm to \"plugin:PATH\"");
  }
  if (!named || !errors.empty()) return out;
  const cc::Registered loaded = shelf_.load(change.file(), change.sha256);
  if (loaded.info == nullptr) {
    errors.push_back(loaded.error);
  } else {
    out.algorithm = loaded.info->name;
  }
  return out;
}

CcArm CongestionController::resolve(std::size_t n, const CcArm& in_force,
                                    const config::CongestionChange& change,
                                    std::vector<std::string>& errors) {
  const Champions::Nic& nic = champions_.nic(n);
  ResolvedArm resolved = resolve_arm(in_force, change, nic.facts);
  for (const std::string& error : resolved.errors) errors.push_back(nic.name + ": " + error);
  if (!resolved.errors.empty()) return {};
  const cc::AlgorithmId algorithm = resolved.arm.setup.primary.algorithm;
  const cc::plugin::Offence offence = champions_.quarantined(n, algorithm);
  if (offence != cc::plugin::Offence::none) {
    errors.push_back(nic.name + ": " + quarantine_words(algorithm, offence));
  }
  return std::move(resolved.arm);
}

std::vector<std::string> CongestionController::apply(const Changes& changes) {
  std::vector<std::string> errors = champions_.apply(changes);
  if (!errors.empty()) return errors;
  for (const Champions::Change& change : changes) guard_.restart(change.nic);
  return errors;
}

CongestionController::Outcome CongestionController::configure(const ControlRequest& request) {
  Outcome out;
  const std::vector<std::size_t> picked = champions_.pick(request.nics, out.errors);
  if (request.change.empty()) {
    out.errors.emplace_back("nothing to change: algorithm, profile or params is needed");
  }
  for (const std::size_t n : picked) {
    if (const Trial* const trial = trials_.running_on(n)) {
      out.errors.push_back(
          fmt::format("{}: the trial \"{}\" is running", champions_.nic(n).name, trial->name));
    }
  }
  // Loads nothing for a request that is refused anyway.
  const config::CongestionChange change = with_plugin(request.change, out.errors);
  if (change.names_file()) return out;
  std::vector<CcArm> arms;
  for (const std::size_t n : picked) {
    arms.push_back(resolve(n, champions_.nic(n).current, change, out.errors));
  }
  if (!out.errors.empty()) return out;
  Changes changes;
  for (std::size_t i = 0; i < picked.size(); ++i) {
    const Champions::Nic& nic = champions_.nic(picked[i]);
    const bool changed = !arms[i].same_values(nic.current);
    const bool grows = changed && !request.dry_run;
    out.nics.push_back({picked[i], nic.in_force.generation + (grows ? 1 : 0), changed});
    if (changed) changes.push_back({picked[i], &arms[i], 0, 0});
  }
  if (request.dry_run) return out;
  out.errors = apply(changes);
  if (!out.errors.empty()) return out;
  for (std::size_t i = 0; i < picked.size(); ++i) {
    champions_.set_champion(picked[i], arms[i]);
    champions_.name_current(picked[i], arms[i]);
  }
  return out;
}

// --- trials: a candidate against the champion, by arms and epochs ---

Trial* CongestionController::named(const std::string& name, std::vector<std::string>& errors) {
  Trial* const trial = trials_.find(name);
  if (trial == nullptr) errors.push_back(fmt::format("there is no trial \"{}\"", name));
  return trial;
}

Trial* CongestionController::running(const std::string& name, std::vector<std::string>& errors) {
  Trial* const trial = named(name, errors);
  if (trial == nullptr || trial->state == TrialState::running) return trial;
  errors.push_back(fmt::format("the trial \"{}\" is over: {}", trial->name, trial->why));
  return nullptr;
}

std::vector<std::string> CongestionController::begin_trial(const ControlRequest& request) {
  std::vector<std::string> errors;
  Trial trial;
  trial.name = request.name;
  trial.limits = request.guard;
  trial.hold_ms = request.hold_ms;
  if (request.clusters.empty()) {
    trial.nics = champions_.pick(request.nics, errors);
  } else {
    for (const std::vector<std::string>& names : request.clusters) {
      trial.clusters.push_back(champions_.pick(names, errors));
      const std::vector<std::size_t>& cluster = trial.clusters.back();
      trial.nics.insert(trial.nics.end(), cluster.begin(), cluster.end());
    }
    trial.arms.assign(trial.clusters.size(), 0);
    check_addresses(trial, champions_, errors);
  }
  for (std::string& why : trials_.refusals(request.name)) errors.push_back(std::move(why));
  const config::CongestionChange change =
      errors.empty() ? with_plugin(request.change, errors) : request.change;
  if (change.names_file()) return errors;
  for (const std::size_t n : trial.nics) {
    const Champions::Nic& nic = champions_.nic(n);
    if (const Trial* const other = trials_.running_on(n)) {
      errors.push_back(fmt::format("{}: the trial \"{}\" is running", nic.name, other->name));
    }
    if (guard_.latched(n) != 0) {
      errors.push_back(fmt::format(
          "{}: the guard's trip {} is latched: see paceline guard; paceline guard clear lets "
          "trials start again",
          nic.name, guard_.latched(n)));
    }
    trial.champions.push_back(nic.champion);
    trial.candidates.push_back(resolve(n, nic.champion, change, errors));
  }
  if (errors.empty() && !trial.clusters.empty()) errors = refusals_of(trial);
  if (errors.empty()) trials_.add(std::move(trial));
  return errors;
}

// Checks before the first block that the engines can run both arms at a time.
std::vector<std::string> CongestionController::refusals_of(const Trial& trial) {
  std::vector<std::string> errors;
  const auto by_peer = arms_by_peer(trial, trial.arms, champions_);
  for (std::size_t i = 0; i < trial.nics.size(); ++i) {
    const std::string why = champions_.refusal(trial.nics[i], by_peer[i]);
    if (!why.empty()) errors.push_back(champions_.nic(trial.nics[i]).name + ": " + why);
  }
  return errors;
}

CongestionController::Outcome CongestionController::use_arm(const ControlRequest& request) {
  Outcome out;
  Trial* const trial = running(request.name, out.errors);
  if (trial == nullptr) return out;
  if (!trial->clusters.empty() || !request.arms.empty()) return use_arms(*trial, request);
  Changes changes;
  for (std::size_t i = 0; i < trial->nics.size(); ++i) {
    changes.push_back({trial->nics[i],
                       request.arm == 0 ? &trial->champions[i] : &trial->candidates[i], request.arm,
                       request.epoch});
  }
  return put_arm(*trial, changes, request);
}

CongestionController::Outcome CongestionController::use_arms(Trial& trial,
                                                             const ControlRequest& request) {
  if (request.arms.size() != trial.clusters.size()) {
    return {{request.arms.empty()
                 ? fmt::format("the trial \"{}\" has {} clusters: arms is needed, an arm for each",
                               trial.name, trial.clusters.size())
                 : fmt::format("arms: {} given, the trial \"{}\" has {} clusters",
                               request.arms.size(), trial.name, trial.clusters.size())},
            {}};
  }
  const auto by_peer = arms_by_peer(trial, request.arms, champions_);
  Changes changes;
  for (std::size_t i = 0; i < trial.nics.size(); ++i) {
    const std::uint8_t own = by_peer[i].own_arm();
    changes.push_back({trial.nics[i], own == 0 ? &trial.champions[i] : &trial.candidates[i], own,
                       request.epoch, &by_peer[i],
                       static_cast<std::uint8_t>(trial.clusters.size())});
  }
  return put_arm(trial, changes, request);
}

CongestionController::Outcome CongestionController::put_arm(Trial& trial, const Changes& changes,
                                                            const ControlRequest& request) {
  Outcome out;
  out.errors = apply(changes);
  if (!out.errors.empty()) return out;
  trial.arms = request.arms;
  trial.arm =
      trial.arms.empty() ? request.arm : *std::max_element(trial.arms.begin(), trial.arms.end());
  trial.epoch = request.epoch;
  if (request.renew) trials_.renew(trial);
  for (const std::size_t n : trial.nics) {
    out.nics.push_back({n, champions_.nic(n).in_force.generation, true});
  }
  return out;
}

CongestionController::Outcome CongestionController::renew(const ControlRequest& request) {
  Outcome out;
  if (Trial* const trial = running(request.name, out.errors)) trials_.renew(*trial);
  return out;
}

CongestionController::Outcome CongestionController::end_trial(const ControlRequest& request) {
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
  Changes changes;
  for (std::size_t i = 0; i < trial->nics.size(); ++i) {
    const Champions::Nic& nic = champions_.nic(trial->nics[i]);
    const bool changed = runs && (nic.in_force.arm != 0 || nic.in_force.epoch != 0 ||
                                  !kept[i].same_values(nic.current));
    out.nics.push_back({trial->nics[i], nic.in_force.generation + (changed ? 1 : 0), changed});
    if (changed) changes.push_back({trial->nics[i], &kept[i], 0, 0});
  }
  out.errors = apply(changes);
  if (!out.errors.empty()) return out;
  for (std::size_t i = 0; runs && i < trial->nics.size(); ++i) {
    champions_.set_champion(trial->nics[i], kept[i]);
  }
  trials_.remove(*trial);
  return out;
}

// Cannot be refused, because these values were in force before. If a worker has ended, its NICs
// run no candidate either.
void CongestionController::put_champion_back(Trial& trial, TrialState state, std::string why) {
  Changes changes;
  for (std::size_t i = 0; i < trial.nics.size(); ++i) {
    const std::size_t n = trial.nics[i];
    changes.push_back({n, &trial.champions[i], 0, 0});
    if (guard_.latched(n) != 0) champions_.note_guard(n, guard_.latched(n));
  }
  for (const std::string& error : apply(changes)) spdlog::error("trial {}: {}", trial.name, error);
  trials_.end(trial, state, std::move(why));
  spdlog::warn("the trial {} is over: {}", trial.name, trial.why);
}

// --- the guard ---

void CongestionController::tick(std::uint64_t now_ms) {
  now_ms_ = now_ms;
  trials_.tick(now_ms);
  for (std::size_t i = 0; i < champions_.nics().size(); ++i) look(i);
  for (Trial* const trial : trials_.expired()) {
    put_champion_back(*trial, TrialState::abandoned,
                      fmt::format("not renewed for {} ms", trial->hold_ms));
  }
}

void CongestionController::look(std::size_t nic) {
  if (!guard_.look(nic)) return;
  if (const auto all = guard_.new_quarantine()) {
    tripped(nic, {GuardRule::quarantined, static_cast<double>(*all), 0}, quarantines_on(nic));
  }
  const auto finding = guard_.judge(limits_of(nic), champions_.nic(nic).in_force);
  if (finding) tripped(nic, finding->trip, {}, finding->arm);
}

// Names all of them: it is not recorded which one is new.
std::string CongestionController::quarantines_on(std::size_t nic) {
  std::vector<std::string> out;
  for (const cc::AlgorithmInfo& info : cc::algorithms()) {
    const cc::plugin::Offence offence = champions_.quarantined(nic, info.id);
    if (offence != cc::plugin::Offence::none) out.push_back(quarantine_words(info.id, offence));
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

void CongestionController::tripped(std::size_t n, const GuardTrip& trip, std::string detail,
                                   std::optional<std::uint8_t> arm) {
  Trial* const trial = trials_.running_on(n);
  const bool revert = trial != nullptr && trial->arm != 0;
  const bool of_judge = trip.rule != GuardRule::quarantined;
  if (!revert && of_judge && !guard_.report(n)) return;
  GuardEvent event;
  event.nic = champions_.nic(n).name;
  event.at_unix_ns = start_unix_ns_ + now_ms_ * 1'000'000;
  event.trip = trip;
  event.reverted = revert;
  event.detail = std::move(detail);
  event.arm = arm;
  if (trial != nullptr) event.trial = trial->name;
  spdlog::warn("guard: {}: {} is {}, allowed {}{}: {}{}{}", event.nic, guard_rule_name(trip.rule),
               trip.figure, trip.limit, arm_words(arm),
               revert ? "the champion is put back" : "reported", event.detail.empty() ? "" : "; ",
               event.detail);
  if (!revert) return guard_.note(n, std::move(event));
  // Latched first, so that the champion's first telemetry body shows the trip.
  for (const std::size_t other : trial->nics) {
    guard_.note(other, event);
    guard_.latch(other);
  }
  put_champion_back(*trial, TrialState::tripped,
                    of_judge ? fmt::format("guard of {}: {} was {}, allowed {}{}", event.nic,
                                           guard_rule_name(trip.rule), trip.figure, trip.limit,
                                           arm_words(event.arm))
                             : fmt::format("guard of {}: {}", event.nic, event.detail));
}

CongestionController::Outcome CongestionController::clear_guard(const ControlRequest& request) {
  Outcome out;
  const std::vector<std::size_t> picked = champions_.pick(request.nics, out.errors);
  if (!out.errors.empty()) return out;
  for (const std::size_t n : picked) {
    guard_.clear(n);
    champions_.note_guard(n, 0);
  }
  return out;
}

}  // namespace paceline::service
