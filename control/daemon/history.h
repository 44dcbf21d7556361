// What the sampler saw of one NIC, in rings of fixed size and of three resolutions: of counters how
// much they grew in each slot, of gauges the last level and the highest. Pure: the sampler adds
// rows with their time, the API asks for spans.
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

// The finest is that of the sampler.
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
  // count from, as is the first row.
  void add(std::int64_t unix_ns, std::uint64_t instance, std::span<const std::uint64_t> values);

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
  struct Ring {
    Resolution resolution;
    std::int64_t* head = nullptr;    // number of the newest slot since 1970; -1: none
    std::uint32_t* looks = nullptr;  // rows added to each slot; 0: missing
    std::uint64_t* cells = nullptr;  // columns_ of them for each slot
    std::size_t slots = 0;
  };
  // What a column of counters grows by with a row: most do not, and cost nothing then.
  struct Growth {
    std::size_t column = 0;
    std::uint64_t by = 0;
  };
  void add_to(Ring& ring, std::int64_t unix_ns, std::span<const std::uint64_t> values);
  std::uint64_t* row(const Ring& ring, std::int64_t slot) const;

  std::vector<SeriesInfo> series_;
  Resolutions resolutions_;
  std::vector<std::uint32_t> column_;  // of each series; a gauge's highest is behind its last
  std::size_t columns_ = 0;
  std::array<Ring, kResolutions> rings_;
  bool taken_up_ = false;
  bool begun_ = false;
  std::uint64_t instance_ = 0;
  std::int64_t last_unix_ns_ = 0;
  std::vector<std::uint64_t> before_;
  std::vector<std::uint32_t> counters_;  // indices of series
  std::vector<std::uint32_t> gauges_;
  std::vector<Growth> grown_;
};

}  // namespace paceline::daemon
