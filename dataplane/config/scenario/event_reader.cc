// [[event]]: what happens to links during a run.

#include <fmt/format.h>

#include <algorithm>

#include "dataplane/config/scenario/table_reader.h"

namespace paceline::config {

namespace {

void read_event(const TomlNode& node, std::vector<EventConfig>& out, ReadContext& context) {
  std::vector<std::string_view> names;
  for (const KeySpec& key : event_keys()) names.push_back(key.name());
  EventConfig event;
  event.where = to_string(node.where);
  bool good = true;
  for (const TomlMember& m : node.members) {
    const auto keys = event_keys();
    const auto key =
        std::find_if(keys.begin(), keys.end(), [&](const KeySpec& k) { return k.name() == m.key; });
    if (key == keys.end()) {
      report_unknown_key(m, "event", names, context);
      good = false;
      continue;
    }
    if (m.key == "link") event.where = to_string(m.value.where);
    good = read_value(*key, event_field(event, m.key), m.value, context) && good;
  }
  for (const std::string_view key : {"at", "link", "action"}) {
    if (node.find(key) != nullptr) continue;
    context.errors->add(node.where, fmt::format("an [[event]] needs \"{}\"", key));
    good = false;
  }
  if (!good) return;
  for (const KeySpec& key : event_keys()) {
    if (key.used_by.empty()) continue;
    const std::string padded = fmt::format(" {} ", key.used_by);
    const bool used = padded.find(fmt::format(" {} ", event.action)) != std::string::npos;
    const TomlMember* given = node.find(key.name());
    if (used && given == nullptr && key.name() != "direction") {
      context.errors->add(node.where, fmt::format("event.action = \"{}\" needs event.{}",
                                                  event.action, key.name()));
      good = false;
    } else if (!used && given != nullptr) {
      context.errors->add(given->value.where,
                          fmt::format("event.{} does nothing with event.action = \"{}\"; it is "
                                      "for {}",
                                      key.name(), event.action, key.used_by));
      good = false;
    }
  }
  if (good) out.push_back(std::move(event));
}

}  // namespace

void read_events(const TomlNode& list, std::vector<EventConfig>& out, ReadContext& context) {
  out.clear();
  each_table(list, "event", context,
             [&](const TomlNode& table) { read_event(table, out, context); });
}

}  // namespace paceline::config
