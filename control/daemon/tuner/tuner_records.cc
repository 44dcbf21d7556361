#include "control/daemon/tuner/tuner_records.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace paceline::daemon {

using tuner::online::Event;
using tuner::online::JournalEntry;
using tuner::online::Mode;

namespace {

constexpr const char* kKind = "tuner";  // in the store: documents "mode" and "state", and entries
constexpr std::size_t kMostEntries = 10'000;

}  // namespace

std::optional<Mode> TunerRecords::mode(Mode configured) const {
  const std::optional<Json> kept = store_.get(kKind, "mode");
  if (!kept || kept->value("configured", std::string()) != to_string(configured)) return {};
  return tuner::online::mode_of(kept->value("mode", std::string()));
}

std::string TunerRecords::keep_mode(std::string_view mode, Mode configured, const std::string& who,
                                    const std::string& why) {
  const Json kept{
      {"mode", mode}, {"configured", to_string(configured)}, {"who", who}, {"why", why}};
  const std::int64_t now = clock_.unix_ns();
  if (std::string wrong = store_.put(kKind, "mode", kept, now); !wrong.empty()) return wrong;
  write(Json{{"at_ns", now}, {"event", "mode"}, {"name", mode}, {"reason", why}, {"who", who}},
        "mode");
  return {};
}

void TunerRecords::forget_mode() { store_.erase(kKind, "mode"); }

void TunerRecords::prune() { store_.prune(kKind, kMostEntries); }

void TunerRecords::write(Json entry, std::string_view event) {
  touch();
  std::int64_t number = 0;
  const std::string wrong = store_.append(kKind, event, entry, clock_.unix_ns(), number);
  if (!wrong.empty()) spdlog::error("cannot write the tuner's journal: {}", wrong);
  spdlog::info("tuner: {} {}: {}", event, entry.value("name", std::string()),
               entry.value("reason", std::string()));
  hub_.publish("tuner", entry);
}

void TunerRecords::write(const JournalEntry& entry) {
  Json json = Json::parse(tuner::online::journal_json(entry));
  if (entry.event == Event::advised) advised_ = json;
  if (entry.event == Event::learned) workload_ = entry.reason;
  write(std::move(json), to_string(entry.event));
}

Json TunerRecords::listed(std::int64_t after, std::size_t most) const {
  return store_.listed(kKind, after, most);
}

std::optional<Json> TunerRecords::state(std::string_view algorithm) const {
  std::optional<Json> kept = store_.get(kKind, "state");
  if (kept && kept->value("algorithm", std::string()) != algorithm) kept.reset();
  return kept;
}

void TunerRecords::adopt(const Json& state) {
  advised_ = state.value("advised", Json());
  workload_ = state.value("workload", std::string());
}

void TunerRecords::save(Json state) {
  unsaved_ = false;
  state["advised"] = advised_;
  state["workload"] = workload_;
  const std::string wrong = store_.put(kKind, "state", state, clock_.unix_ns());
  if (!wrong.empty()) spdlog::error("cannot save the tuner's state: {}", wrong);
}

}  // namespace paceline::daemon
