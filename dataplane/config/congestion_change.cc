#include "dataplane/config/congestion_change.h"

#include <utility>
#include <variant>

namespace paceline::config {

namespace {

constexpr double kMostNames = 256;
constexpr double kMostName = 63;
constexpr double kMostPath = 4096;

}  // namespace

RecordField nic_names_field() {
  return {.name = "nics",
          .type = FieldType::list,
          .meaning = "names of NICs; absent: all",
          .least = 1,
          .most = kMostNames,
          .of = {{.least = 1, .most = kMostName}},
          .each_once = true};
}

const std::vector<RecordField>& congestion_change_fields() {
  static const std::vector<RecordField> fields{
      {.name = "algorithm",
       .meaning = "another algorithm, or plugin:PATH: starts from the profile's values",
       .least = 1,
       .most = kMostPath},
      {.name = "profile",
       .meaning = "starts from this profile's values",
       .least = 1,
       .most = kMostName},
      {.name = "params",
       .type = FieldType::object,
       .meaning = "numbers by name; those not named stay as they are, or as the profile has them",
       .of = {{.type = FieldType::number}}}};
  return fields;
}

CongestionChange congestion_change_of(const nlohmann::json& record) {
  CongestionChange out;
  if (record.contains("algorithm")) out.algorithm = record["algorithm"].get<std::string>();
  if (record.contains("profile")) out.profile = record["profile"].get<std::string>();
  out.params = record.value("params", out.params);
  return out;
}

ResolvedChange resolve_change(const CongestionChange& change, const cc::AlgorithmInfo& algorithm,
                              const std::string& profile,
                              const std::vector<cc::ParamOverride>& values,
                              const cc::PortFacts& facts) {
  ResolvedChange out;
  out.profile =
      change.afresh() ? change.profile.value_or(std::string(cc::kDefaultProfile)) : profile;
  std::vector<cc::ParamOverride> overrides;
  if (!change.afresh()) overrides = values;
  for (const auto& [name, value] : change.params) overrides.push_back({name, value});
  cc::ResolvedParams resolved = cc::resolve_params(
      algorithm, change.afresh() ? out.profile : std::string(), overrides, facts);
  if (const auto* const errors = std::get_if<std::vector<cc::ParamError>>(&resolved)) {
    for (const cc::ParamError& error : *errors) out.errors.push_back(error.message);
  } else {
    out.values = std::move(std::get<std::vector<double>>(resolved));
  }
  return out;
}

}  // namespace paceline::config
