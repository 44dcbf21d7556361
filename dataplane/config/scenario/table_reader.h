// Reads the tables of a scenario by the table of keys: types, units, ranges, unknown keys.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cc/interface/algorithm.h"
#include "cc/registry.h"
#include "dataplane/config/keys/scenario_keys.h"
#include "dataplane/config/scenario.h"
#include "dataplane/config/toml/diagnostics.h"
#include "dataplane/config/toml/toml_tree.h"

namespace paceline::config {

// Which keys were given, where, and whether their values could be used.
class GivenKeys {
 public:
  struct Entry {
    std::string path;
    Where where;
    bool inherited = false;
    bool usable = true;
  };

  void add(Entry entry) { entries_.push_back(std::move(entry)); }
  const Entry* find(std::string_view path) const;
  bool given(std::string_view path) const { return find(path) != nullptr; }
  // No named key failed to read: a check over them means something.
  bool usable(std::initializer_list<std::string_view> paths) const;
  // Position of the first of `paths` that was given, else `otherwise`.
  Where place(std::initializer_list<std::string_view> paths, const Where& otherwise) const;

 private:
  std::vector<Entry> entries_;
};

struct ReadContext {
  std::span<const cc::AlgorithmInfo> algorithms;
  std::string folder;  // relative file names of the document start here; "" = as they are
  Diagnostics* errors = nullptr;
  std::function<cc::Registered(const std::string& path)> load_plugin{};
  bool has_workload = true;  // false: a testbed, where programs bring the traffic
};

// Writes node's value into `field`; false (and an error) when it is not a value of this key.
bool read_value(const KeySpec& key, const Field& field, const TomlNode& node, ReadContext& context);

// "unknown key" with the nearest valid one, or the list.
void report_unknown_key(const TomlMember& member, std::string_view table,
                        std::span<const std::string_view> valid, ReadContext& context);

// take(table) for each table of an array of tables, [[name]].
template <class List, class Take>
void each_table(List& list, std::string_view name, ReadContext& context, Take take) {
  if (list.type != TomlNode::Type::array) {
    return context.errors->add(list.where,
                               fmt::format("{0}: expected an array of tables, [[{0}]]", name));
  }
  for (auto& item : list.items) {
    if (item.is_table()) {
      take(item);
    } else {
      context.errors->add(item.where,
                          fmt::format("{}: expected a table, [[{}]]", describe(item), name));
    }
  }
}

// The name of a table [[what]]; null, with an error, if there is no usable name.
const TomlMember* read_name(const TomlNode& node, std::string_view what, std::string& out,
                            ReadContext& context);
// Likewise; also an error when one of `others` has it.
template <class Named>
bool read_new_name(const TomlNode& node, std::string_view what, const std::vector<Named>& others,
                   std::string& out, ReadContext& context) {
  const TomlMember* m = read_name(node, what, out, context);
  if (m == nullptr) return false;
  if (std::none_of(others.begin(), others.end(), [&](const Named& n) { return n.name == out; })) {
    return true;
  }
  context.errors->add(m->value.where, fmt::format("a second {} named \"{}\"", what, out));
  return false;
}

// All keys of a scenario under `root`. Keys in `handled_elsewhere` (first components) are skipped.
void read_scenario_table(const TomlNode& root, std::span<const std::string_view> handled_elsewhere,
                         Scenario& out, GivenKeys& given, ReadContext& context);

// The [[event]] tables of a scenario. Whether their links exist is check_scenario's business.
void read_events(const TomlNode& list, std::vector<EventConfig>& out, ReadContext& context);

// The [[fault]] tables of a scenario. Whether their targets exist is check_scenario's business.
enum class FaultPlace : std::uint8_t { scenario, testbed };
void read_faults(const TomlNode& list, std::vector<FaultConfig>& out, ReadContext& context,
                 FaultPlace place = FaultPlace::scenario);

// The [[fabric.ecn.at_rate]] tables of a scenario.
void read_marking_rates(const TomlNode& list, std::vector<EcnAtRate>& out, ReadContext& context);

// A [cc] table: algorithm, profile, params and fallback, checked against the algorithms' tables.
// `also_valid` are keys of the same table that the caller reads (an arm's name).
void read_cc_table(const TomlNode& node, std::string_view table,
                   std::span<const std::string_view> also_valid, CcConfig& out,
                   ReadContext& context);

// Rules between keys (receiver < hosts, kmin <= kmax, ...).
void check_scenario(const Scenario& scenario, const GivenKeys& given, const Where& start,
                    ReadContext& context);
// Checks a scenario against a [cc] table (or the body of an [[arm]], `table`) that it runs with:
// what the algorithm needs from fabric and transport.
void check_cc_needs(const Scenario& scenario, const CcConfig& cc, const TomlNode& node,
                    std::string_view table, ReadContext& context);

}  // namespace paceline::config
