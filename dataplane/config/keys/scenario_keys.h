// The one table of scenario keys. It drives reading, the detection of unknown keys, range checks
// and the reference page (docs/scenarios.md): a key exists when it has a row here.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "dataplane/config/scenario.h"

namespace paceline::config {

// The field a key fills; its type says how the value is written.
using Field = std::variant<bool*, std::uint32_t*, std::uint64_t*, double*, Picos*, Rate*,
                           std::string*, std::vector<std::uint32_t>*>;

enum class Form : std::uint8_t {
  plain,   // as the field's type says; std::uint64_t is a count
  bytes,   // a size with a unit ("400kB"); a key named *_bytes takes a bare integer too
  choice,  // one of `choices`
  path,    // a file, relative to the folder of the TOML file that names it
};

struct KeySpec {
  std::string_view path = {};  // "fabric.ecn.kmin"
  Form form = Form::plain;
  Field (*field)(Scenario&) = nullptr;
  double min = 0;  // in the base unit: ps, b/s, bytes
  double max = 0;
  std::span<const std::string_view> choices = {};
  std::string_view used_by = {};  // kinds of workload, for keys of [fabric] topologies, that heed
                                  // the key, separated by spaces; "" = all
  std::string_view meaning = {};
  bool open_min = false;  // min itself is not allowed

  std::string_view name() const { return path.substr(path.rfind('.') + 1); }
  std::string_view table() const {
    const auto dot = path.rfind('.');
    return dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
  }
};

// The most hosts a fabric may have, and the most ports of all their NICs.
inline constexpr std::uint32_t kMostHosts = 524'288;
inline constexpr std::uint32_t kMostEndpoints = 1U << 20;

std::span<const KeySpec> scenario_keys();

// Keys at the top of an experiment file; their `field` is null, see experiment_field.
std::span<const KeySpec> experiment_keys();
Field experiment_field(Experiment& experiment, std::string_view name);

// Keys of an [[event]]; their `field` is null, see event_field. used_by: the actions that heed it.
std::span<const KeySpec> event_keys();
Field event_field(EventConfig& event, std::string_view name);

// Keys of a [[fault]]; their `field` is null, see fault_field.
std::span<const KeySpec> fault_keys();
Field fault_field(FaultConfig& fault, std::string_view name);

// Keys of a [[fabric.ecn.at_rate]]; their `field` is null, see marking_rate_field.
std::span<const KeySpec> marking_rate_keys();
Field marking_rate_field(EcnAtRate& one, std::string_view name);

// Keys of the [cc] table of a scenario and of an [[arm]]: algorithm, profile, fallback,
// fallback_profile, params. Their values are checked against the algorithms' own tables.
std::span<const std::string_view> cc_keys();

std::span<const std::string_view> workload_kinds();

// "[1Mb/s .. 3200Gb/s]", "(0 .. 1]", or the choices; "" when anything goes. `field` is any field of
// this key: only its type matters.
std::string allowed_text(const KeySpec& key, const Field& field);

// How a value of this key is written: "size", "time", "integer" ...
std::string_view type_text(const KeySpec& key, const Field& field);

// The value of the field, as it would be written.
std::string value_text(const KeySpec& key, const Field& field);

}  // namespace paceline::config
