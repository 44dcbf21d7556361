#include "control/daemon/experiments/experiment_entry.h"

#include <fmt/format.h>

#include <cstdlib>

#include "dataplane/base/text/enum_text.h"

namespace paceline::daemon {

namespace live = experiment::live;

namespace {

constexpr EnumTexts<6> kExperimentStates{"running", "concluded", "stopped",
                                         "tripped", "failed",    "refused"};

template <class T>
T member_or(const Json& body, const char* name, T otherwise) {
  const auto at = body.find(name);
  if (at == body.end()) return otherwise;
  try {
    return at->get<T>();
  } catch (const Json::exception&) {
    return otherwise;
  }
}

}  // namespace

std::string experiment_key(std::int64_t number) { return fmt::format("{:06}", number); }

std::string_view to_text(ExperimentState state) { return enum_text(kExperimentStates, state); }

std::string_view verdict_text(const ExperimentEntry& entry) {
  return entry.verdict ? live::to_text(*entry.verdict) : std::string_view();
}

Json json_of(const ExperimentEntry& entry) {
  return {{"id", std::to_string(entry.number)},
          {"name", entry.name},
          {"who", entry.who},
          {"why", entry.why},
          {"schedule_sha256", entry.digest},
          {"aa", entry.null_experiment},
          {"promote", entry.promote},
          {"state", to_text(entry.state)},
          {"ended", entry.ended},
          {"verdict", verdict_text(entry)},
          {"reasons", entry.reasons},
          {"started_unix_ns", entry.started_unix_ns},
          {"ended_unix_ns", entry.ended_unix_ns},
          {"promoted_by_change", entry.promoted},
          {"nics", entry.nics}};
}

ExperimentEntry experiment_entry_of(const Json& body) {
  ExperimentEntry out;
  if (!body.is_object()) return out;
  const std::string id = member_or(body, "id", std::string("0"));
  out.number = std::atoll(id.c_str());
  out.name = member_or(body, "name", std::string());
  out.who = member_or(body, "who", std::string());
  out.why = member_or(body, "why", std::string());
  out.digest = member_or(body, "schedule_sha256", std::string());
  out.null_experiment = member_or(body, "aa", false);
  out.promote = member_or(body, "promote", false);
  out.state =
      enum_value<ExperimentState>(kExperimentStates, member_or(body, "state", std::string()))
          .value_or(ExperimentState::failed);
  out.ended = member_or(body, "ended", std::string());
  out.verdict = live::verdict_named(member_or(body, "verdict", std::string()));
  out.reasons = member_or(body, "reasons", std::vector<std::string>());
  out.started_unix_ns = member_or(body, "started_unix_ns", std::int64_t{0});
  out.ended_unix_ns = member_or(body, "ended_unix_ns", std::int64_t{0});
  out.promoted = member_or(body, "promoted_by_change", std::int64_t{0});
  out.nics = member_or(body, "nics", std::vector<std::vector<std::string>>());
  return out;
}

}  // namespace paceline::daemon
