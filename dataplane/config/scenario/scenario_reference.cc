// The reference page of keys, written from the table that reads them.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "dataplane/config/keys/scenario_keys.h"
#include "dataplane/config/scenario/scenario_reader.h"

namespace paceline::config {

namespace {

constexpr std::string_view kHead = "| key | default | allowed | meaning |\n|---|---|---|---|\n";

// " (a/b)": the values of `topology` or `kind` that use a key. Empty if all do.
std::string users_text(std::string_view used_by) {
  std::string users(used_by);
  std::replace(users.begin(), users.end(), ' ', '/');
  return users.empty() ? "" : fmt::format(" ({})", users);
}

// `told`: the users that the heading of the table has told already.
std::string row(const KeySpec& key, const Field& field, const std::string& value,
                std::string_view told = "") {
  return fmt::format("| `{}` | {} | {} | {}{} |\n", key.name(), value, allowed_text(key, field),
                     key.meaning, key.used_by == told ? "" : users_text(key.used_by));
}

// The users that all keys of a table share.
std::string_view users_of(std::string_view table) {
  std::optional<std::string_view> users;
  for (const KeySpec& key : scenario_keys()) {
    if (key.table() != table) continue;
    if (users && *users != key.used_by) return {};
    users = key.used_by;
  }
  return users.value_or("");
}

}  // namespace

std::string scenario_reference_markdown() {
  std::string out;
  Scenario defaults;
  std::string_view table = "-";
  std::string_view users;
  for (const KeySpec& key : scenario_keys()) {
    if (key.table() != table) {
      table = key.table();
      users = users_of(table);
      out += table.empty() ? "### Top of a scenario\n\n"
                           : fmt::format("\n### `[{}]`{}\n\n", table, users_text(users));
      out += kHead;
    }
    const Field field = key.field(defaults);
    out += row(key, field, value_text(key, field), users);
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
    const Field field = experiment_field(experiment, key.path);
    out += row(key, field, value_text(key, field));
  }
  return out;
}

}  // namespace paceline::config
