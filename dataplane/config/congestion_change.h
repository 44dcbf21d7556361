// A change of congestion control, as an operator asks for it: the same value from the body of an
// HTTP request to the service that carries it out.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cc/interface/algorithm.h"
#include "cc/params.h"
#include "dataplane/config/record.h"

namespace paceline::config {

// Prefix of an algorithm that is named by a plug-in's file.
inline constexpr std::string_view kPluginPrefix = "plugin:";

struct CongestionChange {
  std::optional<std::string> algorithm;  // a name, or "plugin:PATH"
  std::string sha256;                    // with a PATH: of the file; empty: any
  std::optional<std::string> profile;
  std::map<std::string, double> params;

  // For a plug-in that is not loaded yet.
  bool names_file() const { return algorithm && algorithm->starts_with(kPluginPrefix); }
  std::string file() const { return algorithm->substr(kPluginPrefix.size()); }
  bool empty() const { return !algorithm && !profile && params.empty(); }
  // An algorithm or a profile given starts from that profile's values, otherwise the change starts
  // from those in force.
  bool afresh() const { return algorithm || profile; }
};

// The members algorithm, profile and params of a record.
const std::vector<RecordField>& congestion_change_fields();
// Names of NICs, each once.
RecordField nic_names_field();
// Makes a change from a record that was checked against those fields.
CongestionChange congestion_change_of(const nlohmann::json& record);

struct ResolvedChange {
  std::string profile;
  std::vector<double> values;
  std::vector<std::string> errors;  // sentences; with any there are no values
};
// `profile` and `values`: in force, of this algorithm where the change names none.
ResolvedChange resolve_change(const CongestionChange& change, const cc::AlgorithmInfo& algorithm,
                              const std::string& profile,
                              const std::vector<cc::ParamOverride>& values,
                              const cc::PortFacts& facts);

}  // namespace paceline::config
