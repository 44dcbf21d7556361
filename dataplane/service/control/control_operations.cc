#include "dataplane/service/control/control_operations.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "cc/plugin/plugin.h"
#include "cc/registry.h"
#include "dataplane/attach/text.h"
#include "dataplane/base/text/printable.h"
#include "dataplane/config/algorithm_catalogue.h"
#include "dataplane/config/fault_kinds.h"
#include "dataplane/service/protocol/control_protocol.h"

namespace paceline::service {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostLinkEvents = 1U << 16;

// Limit on the errors of one answer.
constexpr std::size_t kMostErrors = 64;

Json head(std::uint64_t id, bool ok) {
  return {{"schema", kControlSchema}, {"id", id}, {"ok", ok}};
}

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

Json refusal(std::uint64_t id, std::vector<std::string> errors) {
  if (errors.size() > kMostErrors) {
    const std::size_t more = errors.size() - kMostErrors;
    errors.resize(kMostErrors);
    errors.push_back(fmt::format("and {} more", more));
  }
  Json out = head(id, false);
  out["errors"] = errors;
  return out;
}

Json values_of(const transport::CcChoice& choice) {
  Json out = Json::object();
  const cc::AlgorithmInfo& info = *cc::find(choice.algorithm);
  for (std::size_t i = 0; i < info.params.size() && i < choice.values.size(); ++i) {
    out[std::string(info.params[i].name)] = choice.values[i];
  }
  return out;
}

// Description of a loaded plug-in.
Json plugin_json(const cc::AlgorithmInfo& info) {
  const cc::plugin::Plugin& plugin = *cc::plugin_of(info.id);
  Json out = config::algorithm_json(info);
  out["plugin"] = config::origin_json({plugin.path, plugin.sha256});
  return out;
}

Json plugins(Json out) {
  Json list = Json::array();
  for (const cc::AlgorithmInfo& info : cc::algorithms()) {
    if (cc::is_plugin(info.id)) list.push_back(plugin_json(info));
  }
  out["plugins"] = std::move(list);
  return out;
}

Json choice_of(const transport::CcChoice& choice) {
  return {{"algorithm", cc::find(choice.algorithm)->name}, {"values", values_of(choice)}};
}

Json limits_of(const GuardLimits& limits) {
  const auto limit = [](double value) { return value < 0 ? Json(nullptr) : Json(value); };
  return {{"retransmitted_share", limit(limits.retransmitted_share)},
          {"retransmitted_packets", limit(limits.retransmitted_packets)},
          {"pause_share", limit(limits.pause_share)},
          {"stall_ms", limit(limits.stall_ms)},
          {"drops_packets", limit(limits.drops_packets)}};
}

Json hello(Service& service, const CongestionController& controller,
           const std::string& attach_socket, Json out) {
  out["version"] = PACELINE_VERSION;
  out["pid"] = ::getpid();
  out["start_unix_ns"] = service.settings().start_unix_ns;
  out["testbed"] = service.settings().testbed;
  Json nics = Json::array();
  for (const Champions::Nic& nic : controller.nics()) {
    nics.push_back({{"name", nic.name},
                    {"worker", nic.place.worker},
                    {"rate_mbps", nic.facts.link_rate.bps / 1'000'000},
                    {"mtu", nic.facts.mtu_bytes},
                    {"base_rtt_ns", nic.facts.base_rtt_ns}});
  }
  out["nics"] = std::move(nics);
  out["attach_socket"] = attach_socket;
  return out;
}

Json parameters(const CongestionController& controller, Json out) {
  Json nics = Json::array();
  for (const Champions::Nic& nic : controller.nics()) {
    const transport::CcSetup& setup = nic.current.setup;
    Json fallback = choice_of(setup.fallback);
    fallback["profile"] = nic.current.fallback_profile;
    Json entry({{"name", nic.name},
                {"algorithm", cc::find(setup.primary.algorithm)->name},
                {"profile", nic.current.profile},
                {"values", values_of(setup.primary)},
                {"fallback", std::move(fallback)},
                {"generation", nic.in_force.generation},
                {"arm", nic.in_force.arm},
                {"epoch", nic.in_force.epoch}});
    if (const cc::plugin::Plugin* const plugin = cc::plugin_of(setup.primary.algorithm)) {
      entry["plugin"] = config::origin_json({plugin->path, plugin->sha256});
    }
    nics.push_back(std::move(entry));
  }
  out["nics"] = std::move(nics);
  return out;
}

Json changed_nics(const CongestionController& controller,
                  const CongestionController::Outcome& outcome, Json out) {
  Json nics = Json::array();
  for (const CongestionController::Changed& changed : outcome.nics) {
    nics.push_back({{"name", controller.nics()[changed.nic].name},
                    {"generation", changed.generation},
                    {"changed", changed.changed}});
  }
  out["nics"] = std::move(nics);
  return out;
}

// Values derived from a NIC's rate may differ between NICs: the answer has those of the first NIC.
Json trial_arms(const Trial& trial, Json out) {
  Json arms = Json::array();
  for (const auto& side : {trial.champions, trial.candidates}) {
    arms.push_back(choice_of(side.front().setup.primary));
  }
  out["arms"] = std::move(arms);
  return out;
}

Json trials_list(const CongestionController& controller, Json out) {
  Json trials = Json::array();
  for (const Trial& trial : controller.trials()) {
    Json names = Json::array();
    for (const std::size_t nic : trial.nics) names.push_back(controller.nics()[nic].name);
    trials.push_back({{"name", trial.name},
                      {"nics", std::move(names)},
                      {"arm", trial.arm},
                      {"epoch", trial.epoch},
                      {"hold_ms", trial.hold_ms},
                      {"remaining_ms", controller.remaining_ms(trial)},
                      {"state", enum_text(kTrialStates, trial.state)},
                      {"why", trial.why}});
    if (trial.clusters.empty()) continue;
    Json clusters = Json::array();
    for (const auto& cluster : trial.clusters) {
      Json members = Json::array();
      for (const std::size_t nic : cluster) members.push_back(controller.nics()[nic].name);
      clusters.push_back(std::move(members));
    }
    trials.back()["clusters"] = std::move(clusters);
    trials.back()["arms"] = trial.arms;
  }
  out["trials"] = std::move(trials);
  return out;
}

Json guard_state(const CongestionController& controller, Json out) {
  Json nics = Json::array();
  for (std::size_t i = 0; i < controller.nics().size(); ++i) {
    const Champions::Nic& nic = controller.nics()[i];
    Json trips = Json::array();
    for (const GuardEvent& event : controller.guard().events(i)) {
      trips.push_back({{"number", event.number},
                       {"at_unix_ns", event.at_unix_ns},
                       {"rule", guard_rule_name(event.trip.rule)},
                       {"figure", event.trip.figure},
                       {"limit", event.trip.limit},
                       {"action", event.reverted ? "reverted" : "reported"},
                       {"nic", event.nic},
                       {"trial", event.trial}});
      if (event.arm) trips.back()["arm"] = *event.arm;
      if (!event.detail.empty()) trips.back()["detail"] = event.detail;
    }
    nics.push_back({{"name", nic.name},
                    {"limits", limits_of(controller.limits_of(i))},
                    {"trips", std::move(trips)},
                    {"latched", controller.guard().latched(i) != 0}});
  }
  out["nics"] = std::move(nics);
  return out;
}

// Puts a text that is too long for a message into memory that the client maps.
bool put_aside(const std::string& text, ControlAnswer& answer) {
  if (!answer.memory.make("paceline-answer", text.size(), attach::SharedWrite::maker_only)) {
    return false;
  }
  std::copy_n(std::as_bytes(std::span(text)).data(), text.size(), answer.memory.data());
  answer.descriptor = answer.memory.descriptor();
  return true;
}

}  // namespace

std::string ControlOperations::refuse(const std::string& why) { return text_of(refusal(0, {why})); }

// Any NIC's clock can have a fault, but only emulated links can.
std::string ControlOperations::plan(const config::LinkFault& fault,
                                    std::vector<fabric::LinkEvent>& out) {
  const config::FaultKindInfo* const kind = config::find_fault_kind(fault.action);
  if (kind == nullptr || !kind->of_clock) return service_.worker(0).nics().plan_fault(fault, out);
  if (service_.find_nic(fault.target)) return {};
  return fmt::format("target: there is no NIC {} here", fault.target);
}

// Worker 0 has all emulated NICs.
std::vector<std::string> ControlOperations::inject(const std::vector<config::LinkFault>& faults,
                                                   std::size_t& links) {
  ServiceWorker& worker = service_.worker(0);
  std::vector<std::string> errors;
  std::vector<fabric::LinkEvent> events;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const std::string wrong = plan(faults[i], events);
    if (!wrong.empty()) errors.push_back(fmt::format("events[{}].{}", i, wrong));
  }
  if (errors.empty() && events.size() > kMostLinkEvents) {
    errors.push_back(fmt::format("events: {} events of links, allowed are {} in one request",
                                 events.size(), kMostLinkEvents));
  }
  if (!errors.empty()) return errors;
  std::set<std::uint32_t> changed;
  for (const fabric::LinkEvent& event : events) changed.insert(event.link);
  links = changed.size();
  if (!worker.call(0, [&](Picos now) { worker.nics().change_links(now, events); })) {
    return {"the worker has ended"};
  }
  for (const config::LinkFault& fault : faults) {
    service_.faults().add(FaultBook::steady_now(), fault, worker.nics().fault_links(fault.target));
    spdlog::info("fault: {} {} in {} us", fault.target, fault.action,
                 fault.after.count / 1'000'000);
  }
  probes_.change_clocks();
  return {};
}

// Takes the links down first, so that nothing that the engine sends at its end leaves the NIC.
std::vector<std::string> ControlOperations::take_away(const std::vector<std::string>& names) {
  std::vector<std::string> errors;
  std::vector<NicPlace> places;
  for (const std::string& name : names) {
    const auto place = service_.find_nic(name);
    if (!place) {
      errors.push_back(fmt::format("nics: there is no \"{}\"", printable(name)));
    } else if (service_.gone(*place)) {
      errors.push_back(fmt::format("nics: \"{}\" was taken away before", name));
    } else {
      places.push_back(*place);
    }
  }
  if (!errors.empty()) return errors;
  for (const NicPlace place : places) {
    ServiceWorker& worker = service_.worker(place.worker);
    config::LinkFault down;
    down.target = attach::text_of(worker.nics().nic(place.nic).info.name);
    down.action = "down";
    std::vector<fabric::LinkEvent> events;
    // A port of this machine keeps its link, because others use it, too.
    if (worker.nics().plan_fault(down, events).empty()) {
      worker.call(place.nic, [&](Picos now) { worker.nics().change_links(now, events); });
    }
    sessions_.take_away(place);
  }
  return {};
}

ControlAnswer ControlOperations::answer(std::string_view text, const ControlClient& client) {
  const ParsedControl parsed = parse_control(text);
  const ControlRequest& request = parsed.request;
  ControlAnswer answer;
  std::vector<std::string> errors = parsed.errors;
  Json out = head(request.id, true);
  if (errors.empty()) {
    const auto changed = [&](const CongestionController::Outcome& outcome) {
      errors = outcome.errors;
      if (errors.empty()) out = changed_nics(congestion_, outcome, std::move(out));
    };
    const auto add = [&](const Json& members) {
      if (errors.empty()) out.update(members);
    };
    switch (request.op) {
      case ControlOp::hello:
        out = hello(service_, congestion_, attach_socket_, std::move(out));
        break;
      case ControlOp::telemetry:
        out["bytes"] = service_.segment().size();
        answer.descriptor = service_.segment_descriptor();
        break;
      case ControlOp::status: {
        std::string status = sessions_.status();
        if (status.size() + 128 <= kMostControlBytes) {
          out["status"] = Json::parse(status);
        } else if (put_aside(status, answer)) {
          out["bytes"] = status.size();
        } else {
          errors.emplace_back("no shared memory for an answer");
        }
        break;
      }
      case ControlOp::parameters:
        out = parameters(congestion_, std::move(out));
        break;
      case ControlOp::configure:
        changed(congestion_.configure(request));
        break;
      case ControlOp::trial:
        errors = congestion_.begin_trial(request);
        if (errors.empty()) out = trial_arms(*congestion_.find_trial(request.name), std::move(out));
        break;
      case ControlOp::use_arm: {
        const CongestionController::Outcome outcome = congestion_.use_arm(request);
        errors = outcome.errors;
        std::uint64_t generation = 0;
        for (const auto& nic : outcome.nics) generation = std::max(generation, nic.generation);
        out["generation"] = generation;
        break;
      }
      case ControlOp::renew:
        errors = congestion_.renew(request).errors;
        if (errors.empty()) {
          out["remaining_ms"] = congestion_.remaining_ms(*congestion_.find_trial(request.name));
        }
        break;
      case ControlOp::end_trial:
        changed(congestion_.end_trial(request));
        break;
      case ControlOp::trials:
        out = trials_list(congestion_, std::move(out));
        break;
      case ControlOp::guard:
        out = guard_state(congestion_, std::move(out));
        break;
      case ControlOp::clear_guard:
        errors = congestion_.clear_guard(request).errors;
        break;
      case ControlOp::load_plugin: {
        const cc::Registered loaded = congestion_.shelf().load(request.path, request.change.sha256);
        if (loaded.info == nullptr) {
          errors.push_back(loaded.error);
        } else {
          out["plugin"] = plugin_json(*loaded.info);
        }
        break;
      }
      case ControlOp::plugins:
        out = plugins(std::move(out));
        break;
      case ControlOp::capture: {
        const CaptureController::Begun begun = captures_.begin(client, request);
        errors = begun.errors;
        if (!errors.empty()) break;
        out["bytes"] = begun.ring_bytes;
        out["page_bytes"] = begun.page_bytes;
        answer.descriptor = begun.ring;
        answer.second_descriptor = begun.page;
        break;
      }
      case ControlOp::fault: {
        std::size_t links = 0;
        errors = inject(request.faults, links);
        out["links"] = links;
        break;
      }
      case ControlOp::take_away:
        errors = take_away(*request.nics);
        break;
      case ControlOp::probe_open:
        add(probes_.open(client, request.probe, errors));
        break;
      case ControlOp::probe_begin:
        add(probes_.begin(client, request.probe, errors));
        break;
      case ControlOp::probes:
        add(probes_.figures(client, errors));
        break;
    }
  }
  const bool ok = errors.empty();
  if (!ok) {
    answer.descriptor = -1;
    answer.text = text_of(refusal(request.id, std::move(errors)));
  } else {
    answer.text = text_of(out);
  }
  if (answer.text.size() <= kMostControlBytes) return answer;
  // Any other answer that is too long is put aside as a whole.
  const std::string whole = std::move(answer.text);
  Json brief = head(request.id, ok);
  brief["bytes"] = whole.size();
  if (put_aside(whole, answer)) {
    answer.text = text_of(brief);
  } else {
    answer.text = text_of(refusal(request.id, {"no shared memory for an answer"}));
  }
  return answer;
}

}  // namespace paceline::service
