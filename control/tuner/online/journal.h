// Actions of the tuner, taken, advised or stopped, one entry each, for an append-only journal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cc/interface/algorithm.h"
#include "control/experiment/analysis/statistics.h"
#include "dataplane/config/scenario.h"

namespace paceline::tuner::online {

enum class Event : std::uint8_t {
  learned,  // the workload's signature
  advised,  // what would be done in mode auto
  tried,    // a candidate for the first time
  accepted,
  dropped,     // a candidate: no better
  rejected,    // a candidate: it broke a constraint, or was refused
  reverted,    // the incumbent broke a constraint: back to the champion
  complained,  // the champion broke one; there is nothing to go back to
  froze,
  resumed,
  rested,  // nothing left to try for a while
};
const char* to_string(Event event);

struct Evidence {
  std::uint32_t pairs = 0;
  double mean = 0;  // of the difference of J
  experiment::Interval interval{};
};

struct Change {
  std::string param;
  double from = 0;
  double to = 0;
};

struct JournalEntry {
  std::int64_t at_ns = 0;  // end of the window that led to it
  Event event{};
  std::string name;             // preset, or the parameter that moves
  std::vector<Change> changes;  // against the incumbent of that time
  std::string reason;           // a sentence
  Evidence evidence;            // pairs = 0: none
  std::string signature;        // key; empty: not known
};

// Where two parameter sets differ.
std::vector<Change> changes_between(const cc::AlgorithmInfo& info, const std::vector<double>& from,
                                    const std::vector<double>& to);

// One line of JSON without its newline.
std::string journal_json(const JournalEntry& entry);
// "additive_increase_mbps 40 -> 50, increase_timer_us 55 -> 44"; "nothing" for none.
std::string words_of(const std::vector<Change>& changes);

}  // namespace paceline::tuner::online
