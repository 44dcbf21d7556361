// What the sampler saw of one NIC, in rings of fixed size and of three resolutions: of counters how
// much they grew in each slot, of gauges the last level and the highest. Pure: the sampler adds
// looks with their time, the API asks for spans.
//
// A look writes one row of totals into the finest ring, or none where nothing has changed; the
// coarser rings get theirs when a second and a minute are over. Totals go on where a service or a
// daemon ended: what nobody saw is in none of them.
//
// The rings are in memory that somebody else may have brought (a file that is mapped), so that
// another process finds them again after this one was killed: a header says what they are, and
// memory that is not laid out like that is begun anew. Time is Unix time for that reason; when the
// clock is set back, samples go into the newest slot until time has caught up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/daemon/slot_ring.h"
#include "dataplane/telemetry/segment_reader.h"

namespace paceline::daemon {

using telemetry::SeriesInfo;

struct Resolution {
  std::int64_t slot_ns = 0;
  std::int64_t span_ns = 0;
  std::size_t slots() const { return static_cast<std::size_t>(span_ns / slot_ns); }
};

inline constexpr std::size_t kResolutions = 3;
using Resolutions = std::array<Resolution, kResolutions>;

// The finest is that of the sampler; a minute is whole seconds.
constexpr Resolutions usual_resolutions(std::int64_t interval_ns) {
  return {Resolution{interval_ns, 60'000'000'000}, Resolution{1'000'000'000, 3'600'000'000'000},
          Resolution{60'000'000'000, 86'400'000'000'000}};
}

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
  // Bytes that the rings of one NIC take.
  static std::size_t bytes_of(std::span<const SeriesInfo> series, const Resolutions& resolutions);

  // `memory`: bytes_of() of them, aligned to 8. Takes up what is there when it was laid out for the
  // same NIC, series and resolutions.
  History(std::string_view nic, std::vector<SeriesInfo> series, const Resolutions& resolutions,
          std::span<std::byte> memory);

  // What a NIC counted up to now. `instance`: of the service (when it was started): counters of
  // another one, or after a pause of the sampler of more than kLongestPause, are only the point to
  // count from, as is the first row. A counter that went back has not grown.
  void add(std::int64_t unix_ns, std::uint64_t instance, std::span<const std::uint64_t> values);
  // The same where values() have not changed: it costs next to nothing.
  void add_same(std::int64_t unix_ns, std::uint64_t instance);
  // As added last; zeros before.
  std::span<const std::uint64_t> values() const { return values_; }

  // The finest resolution that reaches back to `from` with at most `most` slots.
  std::size_t resolution_for(std::int64_t from_unix_ns, std::int64_t to_unix_ns,
                             std::int64_t now_unix_ns, std::size_t most) const;
  // Slots that begin in [from, to), at most those the ring holds; the slot that is being filled is
  // not among them. `names`: indices of series.
  HistoryPart part(std::size_t resolution, std::int64_t from_unix_ns, std::int64_t to_unix_ns,
                   std::span<const std::size_t> names) const;

  const std::vector<SeriesInfo>& series() const { return series_; }
  const Resolutions& resolutions() const { return resolutions_; }
  // Whether the memory held rows already.
  bool taken_up() const { return taken_up_; }

  static constexpr std::int64_t kLongestPause = 1'000'000'000;

 private:
  // Of the second and of the minute that is not over: what its row will need beside the totals.
  struct Unfinished {
    std::int64_t slot = -1;
    std::uint64_t looks = 0;
    std::uint64_t row = 0;  // newest of the finest ring when this ring got its last
  };
  struct Header {
    std::uint64_t magic = 0;
    std::uint64_t layout = 0;  // hash of all that places and meanings depend on
    std::array<SlotRing::Head, kResolutions> heads;
    std::array<Unfinished, kResolutions - 1> unfinished;
  };
  static std::size_t header_bytes(std::size_t gauges);
  static std::uint64_t layout_of(std::string_view nic, std::span<const SeriesInfo> series,
                                 const Resolutions& resolutions);

  // Whether what was counted before this look is known.
  bool follows(std::int64_t unix_ns, std::uint64_t instance);
  void begin_count();
  void look(std::int64_t unix_ns);
  void finish_slots(std::int64_t unix_ns);
  void finish(std::size_t coarse, std::int64_t next);
  void put_totals(std::int64_t slot);
  void put_highest(bool changed);
  std::int64_t newest(std::size_t resolution) const;

  std::vector<SeriesInfo> series_;
  Resolutions resolutions_;
  std::vector<std::uint32_t> gauges_;      // indices of series; the highest are behind the series
  std::vector<std::uint32_t> highest_at_;  // of each series that is a gauge: its column
  Header* header_ = nullptr;
  std::array<std::uint64_t*, kResolutions - 1> highest_{};  // of gauges_, of what is unfinished
  std::array<SlotRing, kResolutions> rings_;
  bool taken_up_ = false;
  bool begun_ = false;
  bool unwritten_ = false;  // the row in force has not the levels of values_
  std::uint64_t instance_ = 0;
  std::int64_t last_unix_ns_ = 0;
  // The second that is not over: where looks in it need not ask whether one is.
  std::int64_t second_from_ns_ = 0;
  std::int64_t second_until_ns_ = 0;
  std::vector<std::uint64_t> values_;
  std::vector<std::uint64_t> shift_;  // from a counter to its total
};

}  // namespace paceline::daemon
