// Samples of one NIC, in a ring of time slots: per slot the growth of each counter, and the last
// and highest level of each gauge. Pure: the sampler adds samples with their time, the API asks for
// spans.
//
// A slot refers to two rows of totals: its last sample, and the row in force before its first
// sample. The growth is their difference, computed on request. So a sample costs one row, and a
// sample without news refers to the row in force. Totals continue across restarts of the service;
// what was counted between samples of two services is in no slot. When the clock is set back,
// samples go into the newest slot until time has caught up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/telemetry/segment_reader.h"

namespace paceline::daemon {

using telemetry::SeriesInfo;

// Length of a slot, and how far back the ring reaches.
struct HistorySpan {
  std::int64_t slot_ns = 10'000'000;
  std::int64_t span_ns = 60'000'000'000;
  std::size_t slots() const { return static_cast<std::size_t>(span_ns / slot_ns); }
};

// One series over a span; missing slots have no value (the sampler did not run, or the service).
struct SeriesPart {
  const SeriesInfo* info = nullptr;
  std::vector<std::optional<std::uint64_t>> values;   // growth, or the last level
  std::vector<std::optional<std::uint64_t>> highest;  // of gauges
};

struct HistoryPart {
  std::int64_t first_unix_ns = 0;  // where the first slot begins
  std::int64_t slot_ns = 0;
  std::size_t slots = 0;
  std::vector<SeriesPart> series;
};

class History {
 public:
  History(std::vector<SeriesInfo> series, HistorySpan span);

  // Adds the totals of a NIC. `instance`: start time of the service. The first totals, those of
  // another instance, and those after a pause of the sampler of more than kLongestPause are only
  // the base for later growth. A counter that went back has not grown.
  void add(std::int64_t unix_ns, std::uint64_t instance, std::span<const std::uint64_t> values);
  // The same when values() have not changed: costs next to nothing.
  void add_same(std::int64_t unix_ns, std::uint64_t instance);
  // As added last; zeros before the first.
  std::span<const std::uint64_t> values() const { return values_; }

  // Slots that begin in [from, to), at most those the ring holds; the slot that is being filled is
  // not among them. `names`: indices of series.
  HistoryPart part(std::int64_t from_unix_ns, std::int64_t to_unix_ns,
                   std::span<const std::size_t> names) const;

  const HistorySpan& span() const { return span_; }
  std::size_t bytes() const;

  static constexpr std::int64_t kLongestPause = 1'000'000'000;

 private:
  static constexpr std::uint64_t kMissing = ~std::uint64_t{0};
  // Rows are counted from the first ever; 0 is all zeros.
  struct Slot {
    std::uint64_t before = kMissing;  // row in force when it was first looked at
    std::uint64_t row = 0;            // and when it was last
  };

  // Whether what was counted before this look is known.
  bool follows(std::int64_t unix_ns, std::uint64_t instance);
  void begin_count();
  void look(std::int64_t unix_ns);
  void write_row(Slot& slot);
  Slot& enter(std::int64_t slot);
  std::size_t place(std::int64_t slot) const;
  std::uint64_t* row(std::uint64_t number);
  const std::uint64_t* row(std::uint64_t number) const;

  std::vector<SeriesInfo> series_;
  HistorySpan span_;
  std::vector<std::uint32_t> gauges_;      // indices of series; the highest are behind the series
  std::vector<std::uint32_t> highest_at_;  // of each series that is a gauge: its column
  std::vector<Slot> slots_;
  std::size_t stride_ = 0;  // cells from a row to the next
  std::vector<std::uint64_t> cells_;
  std::int64_t newest_ = -1;  // slot, counted since 1970; -1: none
  std::uint64_t row_ = 0;     // written last
  bool begun_ = false;
  bool unwritten_ = false;  // the row in force has not the levels of values_
  std::uint64_t instance_ = 0;
  std::int64_t last_unix_ns_ = 0;
  std::vector<std::uint64_t> values_;
  std::vector<std::uint64_t> shift_;  // from a counter to its total
};

}  // namespace paceline::daemon
