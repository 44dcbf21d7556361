// Sets of congestion-control parameters: requested, in force, earlier. Pure functions. They resolve
// a request against the same tables as the service does, so that mistakes are reported before
// anything is sent.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/config/algorithm_catalogue.h"
#include "dataplane/config/congestion_change.h"

namespace paceline::daemon {

struct ParamSet {
  std::string algorithm;
  std::string profile;
  std::map<std::string, double> values;
  std::optional<config::PluginOrigin> plugin;  // the plug-in that the algorithm comes from
  friend bool operator==(const ParamSet&, const ParamSet&) = default;
};

nlohmann::json json_of(const ParamSet& set);
// Nothing if `body` is not a parameter set.
std::optional<ParamSet> param_set_of(const nlohmann::json& body);

// Parameters of a NIC, as the service reports them.
struct NicParams {
  std::string nic;
  ParamSet set;
  std::uint64_t generation = 0;
  std::uint32_t arm = 0;
  std::uint32_t epoch = 0;
  nlohmann::json fallback = nlohmann::json::object();
};
// Reads the service's answer to `parameters`; sets `error` if that fails.
std::vector<NicParams> nic_params_of(const nlohmann::json& answer, std::string& error);

struct ParamsRequest {
  std::vector<std::string> nics;  // empty: all
  config::CongestionChange change;
};
// The fields nics, algorithm, profile and params of a request's body. Adds an error per mistake;
// the members why and dry_run are ignored.
std::vector<config::RecordField> params_request_fields();
ParamsRequest params_request_of(nlohmann::json body, std::vector<std::string>& errors);

// The set that `change` makes of the set in force on a NIC. Adds an error per mistake.
ParamSet resolve(const config::CongestionChange& change, const ParamSet& in_force,
                 std::uint64_t link_mbps, std::vector<std::string>& errors,
                 const config::AlgorithmCatalogue& known = config::AlgorithmCatalogue::built_in());

// Adds to a request to the service the algorithm's name, or its plug-in's file and checksum.
void name_algorithm(const ParamSet& set, nlohmann::json& members);

enum class ChangeAction : std::uint8_t {
  set,
  profile,
  promote,  // the candidate of an experiment
  revert,
  put_back,  // into a service that was restarted
  found,     // not made by this daemon
};
enum class ChangeState : std::uint8_t {
  pending,  // the service is being asked
  applied,
  refused,
  unknown,  // the service did not answer
  not_applied,
  dry_run,
};
std::string_view to_text(ChangeAction action);
std::string_view to_text(ChangeState state);

// A change, as recorded in the journal.
struct Change {
  std::int64_t number = 0;
  std::int64_t at_unix_ns = 0;
  ChangeAction action = ChangeAction::set;
  ChangeState state = ChangeState::pending;
  std::string who;
  std::string why;
  struct Nic {
    ParamSet from;
    ParamSet to;
    std::uint64_t generation = 0;  // of the NIC with `to` in force; 0: unknown
  };
  std::map<std::string, Nic> nics;
  std::vector<std::string> errors;
  // Revert: restores the state right after this change; 0: the state before the first change.
  std::optional<std::int64_t> restored;
  std::int64_t undone = 0;  // revert by one step: the change that is undone
};
nlohmann::json json_of(const Change& change);  // without number and time, which the store has
Change change_of(std::int64_t number, std::int64_t at_unix_ns, const nlohmann::json& body);

// The sets that restore the state right after change `to` (0: before the first change). Without
// `to`, the state before the last change that no revert has undone, so that repeated reverts step
// back through the journal; changes with the action put_back do not count as steps. `changes`: in
// order; only applied ones count. Adds an error if there is no such state.
struct RevertPlan {
  std::map<std::string, ParamSet> wanted;
  std::int64_t restored = 0;
  std::int64_t undone = 0;
};
RevertPlan revert_to(const std::vector<Change>& changes, std::optional<std::int64_t> to,
                     std::vector<std::string>& errors);

// "eta 0.95 -> 0.9" for each value that differs; if the algorithms differ, only
// "algorithm dcqcn -> cadence".
std::vector<std::string> differences(const ParamSet& from, const ParamSet& to);

}  // namespace paceline::daemon
