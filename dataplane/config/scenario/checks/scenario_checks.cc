#include "dataplane/config/scenario/checks/scenario_checks.h"

#include <fmt/format.h>

#include "cc/registry.h"
#include "dataplane/config/keys/scenario_keys.h"

namespace paceline::config {

namespace {

// A key of another generator or topology does nothing, and its author does not know. (Inherited:
// in a table shared by several scenarios it may serve another one.)
void check_unused(const Scenario& scenario, const GivenKeys& given, ReadContext& context) {
  for (const KeySpec& key : scenario_keys()) {
    const GivenKeys::Entry* entry = given.find(key.path);
    if (key.used_by.empty() || entry == nullptr || entry->inherited) continue;
    const bool fabric = key.path.starts_with("fabric.");
    const std::string_view chooser = fabric ? "fabric.topology" : "workload.kind";
    if (!given.usable({chooser})) continue;
    const std::string& chosen = fabric ? scenario.fabric.topology : scenario.workload.kind;
    const std::string padded = fmt::format(" {} ", key.used_by);
    if (padded.find(fmt::format(" {} ", chosen)) != std::string::npos) continue;
    context.errors->add(entry->where, fmt::format("{} does nothing with {} = \"{}\"; it is for {}",
                                                  key.path, chooser, chosen, key.used_by));
  }
}

}  // namespace

void check_scenario(const Scenario& scenario, const GivenKeys& given, const Where& start,
                    ReadContext& context) {
  check_fabric(scenario, given, start, context);
  check_transport(scenario, given, start, context);
  check_workload(scenario, given, start, context);
  check_probing(scenario, given, start, context);
  check_faults(scenario, given, start, context);
  check_unused(scenario, given, context);
}

void check_cc_needs(const Scenario& scenario, const CcConfig& cc, const TomlNode& node,
                    std::string_view table, ReadContext& context) {
  const cc::AlgorithmInfo* const info = cc::find(cc.algorithm);
  if (info == nullptr) return;
  cc::PortFacts facts;
  facts.telemetry = has_telemetry(scenario);
  facts.notices = scenario.fabric.notice.enabled;
  const std::string_view need = cc::unmet_need(*info, facts);
  if (need.empty()) return;
  const TomlMember* const given = node.find("algorithm");
  if (need != cc::kTelemetryNeeds) {
    context.errors->add(given != nullptr ? given->value.where : node.where,
                        fmt::format("{}.algorithm = \"{}\" needs {}", table, cc.algorithm, need));
    return;
  }
  context.errors->add(given != nullptr ? given->value.where : node.where,
                      fmt::format("{}.algorithm = \"{}\" needs {}; here it is {}, \"{}\", \"{}\"",
                                  table, cc.algorithm, need, scenario.fabric.telemetry,
                                  scenario.transport.reliability, scenario.transport.peers));
}

}  // namespace paceline::config
