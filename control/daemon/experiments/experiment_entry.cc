// Experiments as the store and the API have them.
#include <fmt/format.h>

#include <cmath>

#include "control/daemon/experiments/experiment_run.h"
#include "dataplane/base/enum_text.h"

namespace paceline::daemon {

namespace live = experiment::live;

namespace {

constexpr EnumTexts<6> kStates{"running", "concluded", "stopped", "tripped", "failed", "refused"};

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

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

}  // namespace

std::string experiment_key(std::int64_t number) { return fmt::format("{:06}", number); }

std::string_view to_text(ExperimentState state) { return enum_text(kStates, state); }

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
  out.state = enum_value<ExperimentState>(kStates, member_or(body, "state", std::string()))
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

// Where it is, how long it may take, and what can be said so far. The interval is the one that may
// be looked at as often as one likes.
Json ExperimentRun::progress() const {
  const live::Schedule& schedule = runner_.schedule();
  const double block_s = static_cast<double>(schedule.block_ns) / 1e9;
  const std::uint64_t in_block = now() > block_began_ns_ ? now() - block_began_ns_ : 0;
  const double done_s = block_ * block_s + std::min(static_cast<double>(in_block) / 1e9, block_s);
  const auto left_of = [&](std::uint32_t pairs) {
    return std::max(0.0, 2 * pairs * block_s - done_s);
  };
  Json out{{"doing", doing_},
           {"block", block_},
           {"blocks", schedule.blocks()},
           {"pairs", schedule.pairs()},
           {"share", schedule.blocks() == 0 ? 1.0 : done_s / (schedule.blocks() * block_s)},
           {"seconds_left_at_least", left_of(runner_.plan().pairs_min)},
           {"seconds_left_at_most", left_of(schedule.pairs())}};
  if (!well_) out["trouble"] = edges_.trouble();
  const live::LiveAnalysis quick = runner_.analysis({.full = false});
  out["pairs_usable"] = quick.usable;
  out["pairs_attempted"] = quick.attempted;
  const live::MetricResult& primary = quick.primary();
  const auto effect = [&](double mean) {
    return number_or_null(live::effect_of(primary.metric, mean));
  };
  out["estimate"] = {{"metric", live::info(primary.metric).name},
                     {"pairs", primary.n},
                     {"effect", effect(primary.mean)},
                     {"low", effect(primary.sequence.low)},
                     {"high", effect(primary.sequence.high)}};
  return out;
}

}  // namespace paceline::daemon
