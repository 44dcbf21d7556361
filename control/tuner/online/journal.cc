#include "control/tuner/online/journal.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "cc/params.h"
#include "control/experiment/text/number_text.h"

namespace paceline::tuner::online {

const char* to_string(Event event) {
  switch (event) {
    case Event::learned:
      return "learned";
    case Event::advised:
      return "advised";
    case Event::tried:
      return "tried";
    case Event::accepted:
      return "accepted";
    case Event::dropped:
      return "dropped";
    case Event::rejected:
      return "rejected";
    case Event::reverted:
      return "reverted";
    case Event::complained:
      return "complained";
    case Event::froze:
      return "froze";
    case Event::resumed:
      return "resumed";
    case Event::rested:
      return "rested";
  }
  return "";
}

std::vector<Change> changes_between(const cc::AlgorithmInfo& info, const std::vector<double>& from,
                                    const std::vector<double>& to) {
  std::vector<Change> out;
  for (std::size_t i = 0; i < info.params.size(); ++i) {
    if (from[i] != to[i]) out.push_back({std::string(info.params[i].name), from[i], to[i]});
  }
  return out;
}

std::string words_of(const std::vector<Change>& changes) {
  std::string out;
  for (const Change& change : changes) {
    if (!out.empty()) out += ", ";
    out += change.param + " " + cc::number_text(change.from) + " -> " + cc::number_text(change.to);
  }
  return out.empty() ? "nothing" : out;
}

std::string journal_json(const JournalEntry& entry) {
  nlohmann::ordered_json json;
  json["at_ns"] = entry.at_ns;
  json["event"] = to_string(entry.event);
  if (!entry.name.empty()) json["name"] = entry.name;
  json["reason"] = entry.reason;
  if (!entry.signature.empty()) json["signature"] = entry.signature;
  if (!entry.changes.empty()) {
    auto& changes = json["changes"] = nlohmann::ordered_json::array();
    for (const Change& change : entry.changes) {
      changes.push_back({{"param", change.param}, {"from", change.from}, {"to", change.to}});
    }
  }
  if (entry.evidence.pairs > 0) {
    auto& evidence = json["evidence"];
    evidence["pairs"] = entry.evidence.pairs;
    evidence["mean"] = experiment::rounded(entry.evidence.mean);
    if (std::isfinite(entry.evidence.interval.low)) {
      evidence["low"] = experiment::rounded(entry.evidence.interval.low);
      evidence["high"] = experiment::rounded(entry.evidence.interval.high);
    }
  }
  return json.dump();
}

}  // namespace paceline::tuner::online
