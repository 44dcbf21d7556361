// Sets of congestion-control parameters: what somebody asks for, what is in force, what was. All of
// it pure: resolved by the algorithms' own tables, as the service does it, so that a mistake is
// told before anything is sent.
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
  std::optional<config::PluginOrigin> plugin;  // of which the algorithm is
  friend bool operator==(const ParamSet&, const ParamSet&) = default;
};

nlohmann::json json_of(const ParamSet& set);
// Nothing when it is none.
std::optional<ParamSet> param_set_of(const nlohmann::json& body);

// What the service says of a NIC.
struct NicParams {
  std::string nic;
  ParamSet set;
  std::uint64_t generation = 0;
  std::uint32_t arm = 0;
  std::uint32_t epoch = 0;
  nlohmann::json fallback = nlohmann::json::object();
};
// Of the answer to `parameters`; `error` when it cannot be read.
std::vector<NicParams> nic_params_of(const nlohmann::json& answer, std::string& error);

struct ParamsRequest {
  std::vector<std::string> nics;  // empty: all
  config::CongestionChange change;
};
// The members nics, algorithm, profile and params of a body, beside why and dry_run; each mistake
// is an error.
std::vector<config::RecordField> params_request_fields();
ParamsRequest params_request_of(nlohmann::json body, std::vector<std::string>& errors);

// The set that comes of a change on a NIC with this set in force. Each mistake is an error.
ParamSet resolve(const config::CongestionChange& change, const ParamSet& in_force,
                 std::uint64_t link_mbps, std::vector<std::string>& errors,
                 const config::AlgorithmCatalogue& known = config::AlgorithmCatalogue::built_in());

// How the service is asked for an algorithm: by its name, or by the file and content of a plug-in.
void name_algorithm(const ParamSet& set, nlohmann::json& members);

enum class ChangeAction : std::uint8_t {
  set,
  profile,
  promote,  // the candidate of an experiment
  revert,
  put_back,  // into a service that was started anew
  found,     // somebody else made it
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

// A change as the journal has it.
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
    std::uint64_t generation = 0;  // with `to` in force; 0: not known
  };
  std::map<std::string, Nic> nics;
  std::vector<std::string> errors;
  // Of a revert: everything is as it was right after this change; 0: before the first.
  std::optional<std::int64_t> restored;
  std::int64_t undone = 0;  // of a revert by one step: the change that it takes back
};
nlohmann::json json_of(const Change& change);  // without number and time, which the store has
Change change_of(std::int64_t number, std::int64_t at_unix_ns, const nlohmann::json& body);

// What each NIC has to get for everything to be as it was right after change `to` (0: before the
// first there is); without it, as before the last change that no revert has taken back yet: one
// revert after the other steps back through the journal. What was put back into a service that was
// started anew is no step. `changes`: in order; only applied ones count. Errors say why not.
struct RevertPlan {
  std::map<std::string, ParamSet> wanted;
  std::int64_t restored = 0;
  std::int64_t undone = 0;
};
RevertPlan revert_to(const std::vector<Change>& changes, std::optional<std::int64_t> to,
                     std::vector<std::string>& errors);

// "eta 0.95 -> 0.9", one for each value that differs; "algorithm dcqcn -> cadence" alone where
// that does.
std::vector<std::string> differences(const ParamSet& from, const ParamSet& to);

}  // namespace paceline::daemon
