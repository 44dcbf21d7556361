#include "dataplane/service/congestion/congestion_desk.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "cc/registry.h"
#include "dataplane/attach/text.h"
#include "dataplane/telemetry/series.h"

namespace paceline::service {

namespace {

std::string_view arm_words(std::optional<std::uint8_t> arm) {
  if (!arm) return "";
  return *arm == 0 ? ", by the champion's arm" : ", by the candidate's arm";
}

}  // namespace

CongestionDesk::CongestionDesk(Service& service)
    : service_(service), shelf_(service.settings().plugin_folders) {
  if (const std::string wrong = reader_.open(service.segment()); !wrong.empty()) {
    spdlog::error("the guard does not see what workers count: {}", wrong);
  }
  for (const NicPlace place : service.nics()) {
    const service::Nic& of = service.worker(place.worker).nics().nic(place.nic);
    Nic nic;
    nic.name = attach::text_of(of.info.name);
    nic.place = place;
    nic.facts = of.congestion.facts;
    nic.champion = nic.current = initial_arm(of.congestion);
    nic.in_force.algorithm = of.congestion.primary.algorithm;
    nics_.push_back(std::move(nic));
  }
}

std::vector<std::size_t> CongestionDesk::pick(const std::optional<std::vector<std::string>>& names,
                                              std::vector<std::string>& errors) const {
  std::vector<std::size_t> out;
  if (!names) {
    for (std::size_t i = 0; i < nics_.size(); ++i) out.push_back(i);
    return out;
  }
  for (const std::string& name : *names) {
    const auto at =
        std::find_if(nics_.begin(), nics_.end(), [&](const Nic& nic) { return nic.name == name; });
    if (at == nics_.end()) {
      errors.push_back(fmt::format("there is no NIC \"{}\"", name));
    } else {
      out.push_back(static_cast<std::size_t>(at - nics_.begin()));
    }
  }
  return out;
}

std::vector<std::string> CongestionDesk::apply(const std::vector<Change>& changes) {
  std::vector<std::string> errors;
  // First whether every engine takes it, then all of them: a task for each worker, each time.
  for (const bool in_earnest : {false, true}) {
    for (std::size_t w = 0; w < service_.workers(); ++w) {
      ServiceWorker& worker = service_.worker(w);
      const Change* first = nullptr;
      for (const Change& change : changes) {
        if (first == nullptr && nics_[change.nic].place.worker == w) first = &change;
      }
      if (first == nullptr) continue;
      const bool ran = worker.call(nics_[first->nic].place.nic, [&](Picos now) {
        for (const Change& change : changes) {
          const Nic& nic = nics_[change.nic];
          if (nic.place.worker != w) continue;
          const transport::CcSetup& setup = change.arm->setup;
          if (!in_earnest) {
            const transport::Engine& engine = *worker.nics().nic(nic.place.nic).engine;
            const std::string why = change.by_peer != nullptr
                                        ? engine.reconfigure_refusal(*change.by_peer)
                                        : engine.reconfigure_refusal(setup);
            if (!why.empty()) errors.push_back(nic.name + ": " + why);
            continue;
          }
          const NicInForce in_force = in_force_after(change);
          if (change.by_peer != nullptr) {
            worker.reconfigure(now, nic.place.nic, *change.by_peer, in_force);
          } else {
            worker.reconfigure(now, nic.place.nic, setup, in_force);
          }
        }
      });
      if (!ran) errors.push_back(worker.name() + " has ended");
    }
    if (!errors.empty()) return errors;
  }
  for (const Change& change : changes) {
    Nic& nic = nics_[change.nic];
    nic.current = *change.arm;
    nic.in_force = in_force_after(change);
    // Looks begin anew with what was counted up to here.
    GuardSample now;
    if (sample(change.nic, now)) nic.judge.begin(now);
    nic.by_arm.forget();
    nic.reported = false;
  }
  return errors;
}

CongestionDesk::Outcome CongestionDesk::configure(const ControlRequest& request) {
  Outcome out;
  const std::vector<std::size_t> picked = pick(request.nics, out.errors);
  if (request.change.empty()) {
    out.errors.emplace_back("nothing to change: algorithm, profile or params is needed");
  }
  for (const std::size_t n : picked) {
    if (const Trial* const trial = trial_of(n)) {
      out.errors.push_back(
          fmt::format("{}: the trial \"{}\" is running", nics_[n].name, trial->name));
    }
  }
  // Nothing is loaded for a request that is refused anyway.
  const CcChange change = with_plugin(request.change, out.errors);
  if (change.names_file()) return out;
  std::vector<CcArm> arms;
  for (const std::size_t n : picked) {
    ResolvedArm resolved = resolve_arm(nics_[n].current, change, nics_[n].facts);
    if (std::string why = quarantine_of(n, resolved.arm.setup.primary.algorithm);
        resolved.errors.empty() && !why.empty()) {
      out.errors.push_back(std::move(why));
    }
    for (const std::string& error : resolved.errors) {
      out.errors.push_back(nics_[n].name + ": " + error);
    }
    arms.push_back(std::move(resolved.arm));
  }
  if (!out.errors.empty()) return out;
  std::vector<Change> changes;
  for (std::size_t i = 0; i < picked.size(); ++i) {
    const Nic& nic = nics_[picked[i]];
    const bool changed = !arms[i].same_values(nic.current);
    out.nics.push_back({picked[i], nic.in_force.generation + (changed ? 1 : 0), changed});
    if (changed) changes.push_back({picked[i], &arms[i], 0, 0});
  }
  if (request.dry_run) {
    for (Changed& changed : out.nics) {
      changed.generation = nics_[changed.nic].in_force.generation;
    }
    return out;
  }
  out.errors = apply(changes);
  if (!out.errors.empty()) return out;
  for (std::size_t i = 0; i < picked.size(); ++i) {
    nics_[picked[i]].champion = nics_[picked[i]].current = arms[i];
  }
  return out;
}

// --- the guard ---

bool CongestionDesk::sample(std::size_t nic, GuardSample& out) {
  using telemetry::NicSeries;
  if (nic >= reader_.nics().size() || !reader_.read(nic, sample_)) return false;
  const auto of = [&](NicSeries series) { return sample_.values[telemetry::series_index(series)]; };
  // Our own segment: the series are where our own table says.
  constexpr std::size_t kSent = telemetry::counter_index("tx_data_packets");
  constexpr std::size_t kAgain = telemetry::counter_index("retransmitted_packets");
  static_assert(kSent < telemetry::kEngineSeries && kAgain < telemetry::kEngineSeries);
  out.at_ns = sample_.body.at_ns;
  out.data_packets = sample_.values[kSent] + sample_.values[kAgain];
  out.retransmitted_packets = sample_.values[kAgain];
  out.paused_ns = of(NicSeries::paused_ns);
  out.stalled_ns = of(NicSeries::stalled_ns);
  out.stopped_ns = of(NicSeries::host_stopped_ns);
  out.dropped_packets = of(NicSeries::last_hop_drops);
  return true;
}

void CongestionDesk::tick(std::uint64_t now_ms) {
  now_ms_ = now_ms;
  for (std::size_t i = 0; i < nics_.size(); ++i) look(i);
  for (Trial& trial : trials_) {
    if (trial.state != TrialState::running || remaining_ms(trial) != 0) continue;
    put_champion_back(trial, TrialState::abandoned,
                      fmt::format("nobody renewed it for {} ms", trial.hold_ms));
  }
}

void CongestionDesk::look(std::size_t nic) {
  GuardSample now;
  if (!sample(nic, now)) return;
  constexpr std::size_t kQuarantines = telemetry::counter_index("plugin_quarantines");
  if (sample_.values[kQuarantines] > nics_[nic].quarantines) {
    nics_[nic].quarantines = sample_.values[kQuarantines];
    notice_quarantine(nic);
  }
  Nic& of = nics_[nic];
  const GuardLimits limits = limits_of(nic);
  const auto trip = of.judge.look(now, limits);
  const bool two = of.in_force.clusters != 0 && sample_.body.generation == of.in_force.generation;
  if (two) {
    // What one of the arms did is said of that one.
    const auto by_arm = of.by_arm.look(now, sample_.clusters, limits);
    if (by_arm) return tripped(nic, by_arm->trip, {}, by_arm->arm);
  }
  if (trip) {
    // The port towards a NIC serves the arm of its own cluster.
    std::optional<std::uint8_t> arm;
    if (two) {
      arm = trip->rule == GuardRule::dropped ? std::optional(of.in_force.arm) : of.by_arm.suspect();
    }
    tripped(nic, *trip, {}, arm);
  } else if (of.judge.calm() && (!two || of.by_arm.calm())) {
    of.reported = false;
  }
}

void CongestionDesk::note(Nic& nic, GuardEvent event) {
  event.number = ++nic.last_event;
  nic.events.push_back(std::move(event));
  if (nic.events.size() > kMostEvents) nic.events.pop_front();
}

void CongestionDesk::tripped(std::size_t n, const GuardTrip& trip, std::string detail,
                             std::optional<std::uint8_t> arm) {
  Nic& nic = nics_[n];
  Trial* const trial = trial_of(n);
  const bool revert = trial != nullptr && trial->arm != 0;
  const bool of_judge = trip.rule != GuardRule::quarantined;
  if (!revert && of_judge && nic.reported) return;
  nic.reported = nic.reported || of_judge;
  GuardEvent event;
  event.nic = nic.name;
  event.at_unix_ns = service_.settings().start_unix_ns + now_ms_ * 1'000'000;
  event.trip = trip;
  event.reverted = revert;
  event.detail = std::move(detail);
  event.arm = arm;
  if (trial != nullptr) event.trial = trial->name;
  spdlog::warn("guard: {}: {} is {}, allowed {}{}: {}{}{}", nic.name, guard_rule_name(trip.rule),
               trip.figure, trip.limit, arm_words(arm),
               revert ? "the champion is put back" : "reported", event.detail.empty() ? "" : "; ",
               event.detail);
  if (!revert) return note(nic, event);
  // Latched first: the champion's first body says so.
  for (const std::size_t other : trial->nics) {
    note(nics_[other], event);
    nics_[other].latched = nics_[other].last_event;
  }
  put_champion_back(*trial, TrialState::tripped,
                    of_judge ? fmt::format("guard of {}: {} was {}, allowed {}{}", nic.name,
                                           guard_rule_name(trip.rule), trip.figure, trip.limit,
                                           arm_words(event.arm))
                             : fmt::format("guard of {}: {}", nic.name, event.detail));
}

CongestionDesk::Outcome CongestionDesk::clear_guard(const ControlRequest& request) {
  Outcome out;
  const std::vector<std::size_t> picked = pick(request.nics, out.errors);
  if (!out.errors.empty()) return out;
  for (const std::size_t n : picked) {
    Nic& nic = nics_[n];
    nic.latched = 0;
    ServiceWorker& worker = service_.worker(nic.place.worker);
    worker.call(nic.place.nic, [&](Picos) { worker.note_guard(nic.place.nic, 0); });
  }
  return out;
}

}  // namespace paceline::service
