// Writes one worker's counters into the telemetry segment: the bodies of its NICs, at most once per
// interval and only if something has happened, and the records of queue pairs in turn. The work of
// each update is bounded; it neither allocates nor blocks. For the worker's thread, except for the
// constructor.
//
// While messages are outstanding, the worker wakes for each update, so that a reader learns of a
// stall although nothing happens. Without outstanding messages no update is due, and an idle worker
// sleeps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cc/interface/algorithm.h"
#include "dataplane/base/units.h"
#include "dataplane/driver/loop/worker_watch.h"
#include "dataplane/probing/probe_end.h"
#include "dataplane/service/adapters/completion_adapter.h"
#include "dataplane/service/nics/nic_set.h"
#include "dataplane/telemetry/nic_meter.h"
#include "dataplane/telemetry/segment_writer.h"
#include "dataplane/telemetry/series.h"

namespace paceline::service {

struct WorkerFigures {
  std::uint64_t turns = 0;
  std::uint64_t busy_turns = 0;
  std::uint64_t sleeps = 0;
  std::uint64_t busy_cycles = 0;  // of busy turns; gaps that count as hiccups left out
  WatchCounters watch{};
};

// The congestion control of a NIC, as published to readers.
struct NicInForce {
  std::uint64_t generation = 1;
  cc::AlgorithmId algorithm{};
  std::uint8_t arm = 0;  // with clusters: that of its own cluster
  std::uint8_t epoch = 0;
  // Two arms at a time, by the destination's cluster (transport/congestion/arms.h); 0: one arm for
  // all.
  std::uint8_t clusters = 0;
  std::uint8_t own_cluster = telemetry::kNoCluster;
  std::array<std::uint8_t, telemetry::kMostClusters> arm_of{};
};

class TelemetryPublisher {
 public:
  // Queue pairs that are looked at each time, of all NICs together: 1,000 within 100 ms at the
  // usual interval of 5 ms.
  static constexpr std::size_t kRecordsAtATime = 52;
  // How many congestion contexts of a NIC are added up each time.
  static constexpr std::uint32_t kContextsAtATime = 64;

  // By NIC, or empty while there is no probing.
  using Probes = std::vector<std::unique_ptr<probing::ProbeEnd>>;

  // All arguments outlive the publisher.
  TelemetryPublisher(NicSet& nics, const std::vector<PairTable>& pairs,
                     std::vector<telemetry::NicMeter>& meters, const Probes& probes,
                     Picos interval);
  // Without this call nothing is ever due.
  void open(const telemetry::SegmentWriter& writer, std::size_t first_nic);

  // After each turn; `busy`: something happened in it.
  bool due(Picos now, bool busy) {
    active_ |= busy;
    return active_ && now >= next_;
  }
  void publish(Picos now, const WorkerFigures& worker);
  Picos next_deadline() const { return active_ ? next_ : kNever; }

  void count_session(std::size_t nic, bool more);
  // Both are told at once, in the next turn.
  void note(std::size_t nic, const NicInForce& in_force);
  void note_guard(std::size_t nic, std::uint32_t guard);

 private:
  struct State {
    telemetry::NicValues values{};
    NicInForce in_force{};
    std::uint32_t guard = 0;
    std::uint32_t sessions = 0;
    std::uint64_t seen = 0;      // a sum that grows with every event
    std::uint64_t progress = 0;  // a sum that grows while messages get on
    bool waited = false;         // messages were in flight at the last look
    bool changed = true;         // something else must be published
    std::uint64_t stalled_ns = 0;
    std::uint32_t next_context = 0;  // where the sums continue
    transport::ContextSums sums{};   // of this round, so far
    transport::ContextSums whole{};  // of the last one
    // Towards each cluster, as of the last round.
    struct Cluster {
      std::uint64_t moved = 0;
      bool waited = false;
      std::uint64_t stalled_ns = 0;
    };
    std::array<Cluster, telemetry::kMostClusters> clusters{};
    Picos round_at{0};
    // Counts of probes so far: those of earlier clients, and those of the current one.
    probing::PathCounts probed_before{};
    probing::PathCounts probed{};
  };

  void add_contexts(Picos now, std::size_t nic);
  void watch_clusters(Picos now, std::size_t nic);
  // True: messages are in flight.
  bool look(Picos now, std::size_t nic, const WorkerFigures& worker);
  void fill(Picos now, std::size_t nic, const WorkerFigures& worker);
  void fill_probes(std::size_t nic);
  void write_records(Picos now);

  NicSet& nics_;
  const std::vector<PairTable>& pairs_;
  std::vector<telemetry::NicMeter>& meters_;
  const Probes& probes_;
  Picos interval_;
  const telemetry::SegmentWriter* writer_ = nullptr;
  std::size_t first_nic_ = 0;
  std::uint64_t packets_ = 0;  // of all NICs, as of the last look
  std::vector<State> states_;
  bool active_ = false;
  Picos next_{0};
  Picos last_{0};
  std::size_t record_nic_ = 0;  // where the round of queue pairs continues
  std::size_t record_place_ = 0;
  std::size_t records_left_ = 0;  // places until all were seen since something happened
};

}  // namespace paceline::service
