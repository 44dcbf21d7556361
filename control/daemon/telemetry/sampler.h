// Reads the telemetry segment of the service every few milliseconds, keeps the latest sample of
// each NIC and adds it to its history. Lost, torn or stalled telemetry is a state that others can
// query, never an exception. Time is an argument; the sampler's owner calls it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/daemon/telemetry/history.h"
#include "control/daemon/telemetry/queue_pair_history.h"
#include "dataplane/attach/shared_memory.h"
#include "dataplane/telemetry/segment_reader.h"

namespace paceline::daemon {

struct SamplerSettings {
  HistorySpan history;
  // Intervals after which a NIC with bytes in flight and unchanged figures counts as stalled.
  std::uint32_t stalled_after = 50;
};

enum class TelemetryState : std::uint8_t {
  lost,     // no segment: no service, or one that does not answer
  torn,     // its writer died while it wrote
  stalled,  // something is in flight, and nothing has been counted for long
  fresh,
};
std::string_view telemetry_state_name(TelemetryState state);

// The state at the last look. Distributions of messages (MessageFigures::slowdown) are of the same
// look if everything was asked for, else at most a second old.
struct NicLatest {
  telemetry::NicBody body;
  telemetry::MessagesBySize messages{};
  std::vector<telemetry::ClusterSample> clusters;
};

// Changes of a NIC between two samples, besides its counters.
struct NicChange {
  std::size_t nic = 0;
  telemetry::NicBody before;
  telemetry::NicBody after;
};

class Sampler {
 public:
  explicit Sampler(SamplerSettings settings) : settings_(settings) {}

  // Takes a mapped segment. Histories of NICs that the segment before had, too, continue. Returns
  // an error, or an empty text. notes(): lines for the log.
  std::string open(attach::SharedMemory segment);
  // The same for memory that outlives the sampler, or a close(): tests.
  std::string open(std::span<const std::byte> segment);
  // The service is gone. History and the last samples stay.
  void close();
  bool is_open() const { return open_; }

  // Samples all NICs; call it every interval. changes() holds what changed, until the next call.
  void sample(std::int64_t now_unix_ns);
  // Whether looks from now on take distributions of messages, too, four fifths of what a NIC
  // publishes: experiments and the tuner need them. At first they do.
  void set_detail(telemetry::MessageDetail detail) { detail_ = detail; }
  // Looks at all queue pairs; call it every second.
  void look_at_queue_pairs(std::int64_t now_unix_ns);

  TelemetryState state(std::size_t nic) const;
  bool fresh(std::size_t nic) const { return state(nic) == TelemetryState::fresh; }
  // All NICs are fresh, and there is at least one.
  bool fresh() const;

  std::span<const telemetry::NicText> nics() const { return names_; }
  std::optional<std::size_t> find_nic(std::string_view name) const;
  const telemetry::SegmentHeader& header() const { return reader_.header(); }
  // All series: those of the segment, then message_series().
  std::span<const SeriesInfo> series() const { return series_; }
  std::optional<std::size_t> find_series(std::string_view name) const;

  const NicLatest& latest(std::size_t nic) const { return states_.at(nic)->latest; }
  // By series().
  std::span<const std::uint64_t> values(std::size_t nic) const { return history(nic).values(); }
  std::int64_t sampled_at_unix_ns(std::size_t nic) const { return states_.at(nic)->read_unix_ns; }
  const History& history(std::size_t nic) const { return *states_.at(nic)->history; }
  std::vector<telemetry::QueuePairRecord> queue_pairs(std::size_t nic) const;
  const QueuePairHistory& queue_pair_history() const { return queue_pairs_; }
  const std::vector<NicChange>& changes() const { return changes_; }

  const SamplerSettings& settings() const { return settings_; }
  void set_stalled_after(std::uint32_t looks) { settings_.stalled_after = looks; }
  std::size_t history_bytes() const;
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }
  std::uint64_t samples() const { return samples_; }

 private:
  struct NicState {
    std::int64_t second_at_unix_ns = 0;
    std::int64_t read_unix_ns = 0;
    std::uint32_t unchanged = 0;  // samples since its figures changed
    bool read = false;            // the last try brought a sample
    bool known = false;           // there was a sample of this segment
    bool whole = false;           // and it has its distributions
    NicLatest latest;
    std::unique_ptr<History> history;
    telemetry::MessagesBySize second_ago{};
  };

  std::string take_catalogue(std::span<const std::byte> segment);
  void read_nic(std::size_t nic, std::int64_t now_unix_ns);
  bool fetch(std::size_t nic, NicState& state, bool whole);
  bool put_quantiles(NicState& state, std::int64_t now_unix_ns);

  SamplerSettings settings_;
  attach::SharedMemory memory_;
  telemetry::SegmentReader reader_;
  bool open_ = false;
  std::vector<SeriesInfo> series_;
  std::size_t segment_series_ = 0;
  std::vector<std::uint64_t> row_;  // of the NIC that is being looked at
  telemetry::MessageDetail detail_ = telemetry::MessageDetail::whole;
  std::vector<telemetry::NicText> names_;
  std::vector<std::unique_ptr<NicState>> states_;
  std::size_t inflight_ = 0;  // index of the series + 1; 0: the segment has none
  std::size_t backlog_ = 0;
  QueuePairHistory queue_pairs_;
  std::vector<telemetry::QueuePairRecord> records_;
  std::vector<NicChange> changes_;
  std::vector<std::string> notes_;
  std::uint64_t samples_ = 0;
};

}  // namespace paceline::daemon
