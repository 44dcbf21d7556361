// Data for the charts of a report, beyond the metrics of runs: distribution of completion times
// over all messages of an arm, slowdown by message size, and the course of one repetition over
// time. Plain data in virtual time, as deterministic as the metrics; no verdict is drawn from it
// (messages of a run are not independent), so it stands outside the content hash of the results.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/numbers/histogram.h"
#include "dataplane/base/units.h"

namespace paceline::experiment {

// Messages of (2^(k-1), 2^k] bytes share a bin: k = 0 for one byte, 16 for 32769 to 65536.
unsigned size_octave(std::uint64_t message_bytes);

// Completion times and slowdowns of the messages of one scenario under one arm, over all runs that
// were merged. Merging in any order gives the same.
struct Distribution {
  std::uint32_t runs = 0;
  std::uint64_t outstanding = 0;  // of the messages: entered with their age, a lower bound
  Histogram fct_ns;
  std::map<unsigned, Histogram> slowdown;  // by size_octave, in thousandths

  void add(std::uint64_t message_bytes, Picos fct, Picos ideal);
  void merge(const Distribution& other);
};

// Figures of the fabric and the engines in each interval of a run.
enum class Signal : std::uint8_t {
  deepest_queue,  // bytes in the fullest switch port, greatest of the looks in the interval
  queued,         // bytes in all switch ports together, greatest of the looks
  delivered,      // payload bytes accepted in sequence, all hosts
  paused,         // picoseconds for which a class of a link was paused, summed
  cnps,           // congestion notification packets sent
  marked,         // packets marked congestion-experienced
  dropped,        // packets lost in switches, for whatever reason
  retransmitted,  // payload bytes sent again
};
inline constexpr std::size_t kSignals = 8;
struct SignalSpec {
  Signal signal;
  std::string_view name;  // key in the results file
  std::string_view unit;
  bool gauge;  // a level at some time; otherwise an amount per interval
  std::string_view meaning;
};
const std::array<SignalSpec, kSignals>& signal_table();

// One run over time: interval i covers (i x interval, (i + 1) x interval], the last one ends at
// `end`. Every signal has one value per interval.
struct TimeSeries {
  std::uint32_t repetition = 0;
  std::uint64_t seed = 0;  // of the run
  Picos interval{0};
  std::uint32_t looks = 0;  // per interval
  Picos end{0};
  std::array<std::vector<std::uint64_t>, kSignals> values;

  std::size_t size() const { return values[0].size(); }
  const std::vector<std::uint64_t>& operator[](Signal signal) const {
    return values[static_cast<std::size_t>(signal)];
  }
};

struct ArmDetail {  // of one scenario under one arm
  std::string scenario;
  std::string arm;
  Distribution distribution;  // runs = 0: not recorded
  TimeSeries series;          // empty: not recorded
};

// As read back from a file, a distribution is its figures: the histogram itself is not kept.
struct CdfPoint {
  std::uint64_t value = 0;  // the middle of a bucket, off by less than 1 %
  std::uint64_t count = 0;  // messages up to and including this bucket
};
struct SizeSlowdown {
  std::uint64_t up_to_bytes = 0;  // and more than half of it
  std::uint64_t messages = 0;
  double p50 = 0, p95 = 0, p99 = 0, max = 0;
};
struct ArmFigures {
  std::string scenario;
  std::string arm;
  std::uint32_t runs = 0;
  std::uint64_t messages = 0;
  std::uint64_t outstanding = 0;
  std::vector<CdfPoint> fct_ns;  // ascending
  std::vector<SizeSlowdown> slowdown;
  TimeSeries series;
};
ArmFigures figures_of(const ArmDetail& detail);

// The `detail` member of a results file.
struct Detail {
  std::string file;                    // the experiment file as it was named on the command line
  std::vector<std::string> overrides;  // --set of that command line, in order
  std::vector<ArmFigures> arms;        // scenario by scenario, arm by arm

  bool empty() const { return arms.empty(); }
  const ArmFigures* find(std::string_view scenario, std::string_view arm) const;
};

}  // namespace paceline::experiment
