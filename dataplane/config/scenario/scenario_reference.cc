// The reference page of keys, written from the table that reads them.

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "dataplane/config/keys/scenario_keys.h"
#include "dataplane/config/scenario/scenario_reader.h"

namespace paceline::config {

namespace {

constexpr std::string_view kHead = "| key | default | allowed | meaning |\n|---|---|---|---|\n";

std::string row(const KeySpec& key, const Field& field, const std::string& value) {
  std::string meaning(key.meaning);
  if (!key.used_by.empty()) {
    std::string users(key.used_by);
    std::replace(users.begin(), users.end(), ' ', '/');
    meaning += fmt::format(" ({})", users);
  }
  return fmt::format("| `{}` | {} | {} | {} |\n", key.name(), value, allowed_text(key, field),
                     meaning);
}

std::string row(const KeySpec& key, const Field& field) {
  return row(key, field, value_text(key, field));
}

}  // namespace

std::string scenario_reference_markdown() {
  std::string out;
  Scenario defaults;
  std::string_view table = "-";
  for (const KeySpec& key : scenario_keys()) {
    if (key.table() != table) {
      table = key.table();
      out += table.empty() ? "### Top of a scenario\n\n" : fmt::format("\n### `[{}]`\n\n", table);
      out += kHead;
    }
    out += row(key, key.field(defaults));
  }
  EcnAtRate at_rate;
  out += "\n### `[[fabric.ecn.at_rate]]`\n\n";
  out += kHead;
  for (const KeySpec& key : marking_rate_keys()) {
    out += row(key, marking_rate_field(at_rate, key.name()), "none");
  }
  EventConfig event;
  out += "\n### `[[event]]`\n\n";
  out += kHead;
  for (const KeySpec& key : event_keys()) {
    out += row(key, event_field(event, key.name()), "none");
  }
  FaultConfig fault;
  out += "\n### `[[fault]]`\n\n";
  out += kHead;
  for (const KeySpec& key : fault_keys()) {
    out += row(key, fault_field(fault, key.name()), "none");
  }
  const CcConfig cc;
  out += fmt::format(
      "\n### `[cc]` of a scenario, body of an `[[arm]]`\n\n"
      "{}| `algorithm` | \"{}\" | see `paceline cc list` | An arm must name it. |\n"
      "| `profile` | \"{}\" | profiles of the algorithm, \"default\" | Named set of "
      "parameter values, with its source. |\n"
      "| `params` | empty | `paceline cc show NAME` | Single parameters over the profile: "
      "a number in the parameter's unit, or a quantity with a unit of its kind. |\n"
      "| `fallback` | \"{}\" | reactive algorithms | Replaces a proactive algorithm "
      "towards foreign peers. |\n"
      "| `fallback_profile` | \"{}\" | profiles of `fallback` | |\n",
      kHead, cc.algorithm, cc.profile, cc.fallback, cc.fallback_profile);
  Experiment experiment;
  out += "\n### Top of an experiment\n\n";
  out += kHead;
  for (const KeySpec& key : experiment_keys()) {
    out += row(key, experiment_field(experiment, key.path));
  }
  return out;
}

}  // namespace paceline::config
