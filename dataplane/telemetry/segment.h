// The telemetry of a service in shared memory: the counters of its workers, for readers that may
// map it (the daemon, `paceline top`), without requests to the service. A versioned ABI that
// describes itself: a reader finds series by name and does without those that the writer does not
// have.
//
// Layout: SegmentHeader, then SeriesText[series], then for each NIC a NicHeader and a NicBody: its
// series as 64-bit numbers, MessagesBySize, and then QueuePairRecord[records] and, for each cluster
// of receivers there may be, ClusterFigures and MessagesBySize. The header has all offsets, which
// are multiples of 64. Numbers are in the machine's byte order.
//
// Only the worker that owns a NIC writes the NIC's part. A sequence number guards each body and
// each record: it is odd during a write. A reader copies, reads the number again, and uses the copy
// if the number was even and has not changed. A writer that dies in the middle leaves an odd
// number: readers give up after some tries and report it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "dataplane/telemetry/cluster_figures.h"
#include "dataplane/telemetry/message_figures.h"

namespace paceline::telemetry {

inline constexpr std::uint64_t kSegmentMagic = 0x314C'4554'4350ULL;  // "PCTEL1"
inline constexpr std::uint16_t kSegmentMajor = 1;                    // others are refused
inline constexpr std::uint16_t kSegmentMinor = 3;                    // grows with what is appended

enum class SeriesKind : std::uint8_t {
  counter,  // grows, from 0 at the start of the service
  gauge,    // a level
};

struct SegmentHeader {
  std::uint64_t magic = kSegmentMagic;
  std::uint16_t major = kSegmentMajor;
  std::uint16_t minor = kSegmentMinor;
  std::uint32_t header_bytes = sizeof(SegmentHeader);
  std::uint64_t total_bytes = 0;
  std::uint64_t service_start_unix_ns = 0;
  std::uint32_t service_pid = 0;
  std::uint32_t series = 0;  // SeriesText entries at series_at, series_stride apart
  std::uint32_t series_at = 0;
  std::uint32_t series_stride = 0;
  std::uint32_t nics = 0;  // at nics_at, nic_stride apart
  std::uint32_t nics_at = 0;
  std::uint64_t nic_stride = 0;
  std::uint32_t body_at = 0;      // of the following, from the NIC's begin: its NicBody
  std::uint32_t values_at = 0;    // std::uint64_t[series]
  std::uint32_t messages_at = 0;  // MessagesBySize
  std::uint32_t records_at = 0;   // QueuePairRecord[records], record_stride apart
  std::uint32_t records = 0;      // room for queue pairs
  std::uint32_t record_stride = 0;
  std::uint64_t publish_interval_ns = 0;  // between two writings of a body by a worker that works
  // Since minor 1. Clusters lie cluster_stride apart from the NIC's begin: ClusterFigures, and
  // then, cluster_messages_at from the cluster's begin, MessagesBySize.
  std::uint32_t clusters = 0;  // room for clusters
  std::uint32_t clusters_at = 0;
  std::uint32_t cluster_stride = 0;
  std::uint32_t cluster_messages_at = 0;
};
static_assert(std::is_trivially_copyable_v<SegmentHeader>);
// Size of a header of minor 0, of a segment without clusters.
inline constexpr std::size_t kSegmentHeaderBytes0 = offsetof(SegmentHeader, clusters);

struct SeriesText {
  std::array<char, 48> name{};  // as in docs/telemetry.md; a closing zero
  std::array<char, 15> unit{};  // "bytes", "packets", "ns", "1"
  SeriesKind kind = SeriesKind::counter;
};
static_assert(sizeof(SeriesText) == 64);

// Constant from the start on.
struct NicHeader {
  std::array<char, 32> name{};
  std::uint64_t rate_bps = 0;
  std::uint32_t worker = 0;
  std::uint32_t mtu = 0;
};

struct NicBody {
  std::uint32_t sequence = 0;  // odd: being written
  std::uint32_t epoch = 0;     // of the experiment's block in force, low 8 bits; 0: none
  std::uint64_t at_ns = 0;     // the worker's clock when this was written
  std::uint64_t generation =
      0;  // of congestion-control parameters in force: grows with each change
  std::array<char, 24> algorithm{};
  std::uint32_t arm = 0;    // of the parameters in force: 0 is the champion
  std::uint32_t guard = 0;  // 0, or the number of the guard's trip that is latched
  // Since minor 1: clusters in force (0: the NIC has one arm for everything that it sends), and the
  // index of its own cluster, kNoCluster if it is in none. `arm` is then its own cluster's.
  std::uint32_t clusters = 0;
  std::uint32_t own_cluster = 0;
  // std::uint64_t values[series] at values_at, MessagesBySize at messages_at and what there is of
  // clusters follow, under the same sequence number.
};

// A queue pair as it was last looked at: workers go round, a few in each turn.
struct QueuePairRecord {
  std::uint32_t sequence = 0;
  std::uint32_t number = 0;  // 0: the record is empty
  std::uint64_t at_ns = 0;
  std::array<std::uint8_t, 16> peer{};  // GID; of UD zero
  std::uint32_t peer_number = 0;
  std::uint32_t user = 0;  // of the program
  std::uint32_t pid = 0;
  std::uint8_t type = 0;     // transport::QpType
  std::uint8_t state = 0;    // transport::QpState
  std::uint8_t limiter = 0;  // cc::Limiter in force
  std::uint8_t on_fallback = 0;
  std::array<char, 24> algorithm{};
  std::uint64_t rate_bps = 0;      // decision in force
  std::uint64_t window_bytes = 0;  // all ones: none
  std::uint64_t inflight_bytes = 0;
  std::uint64_t backlog_bytes = 0;  // posted, not sent
  std::uint64_t srtt_ns = 0;        // 0: not measured
  std::uint64_t min_rtt_ns = 0;
  std::uint64_t tx_bytes = 0;  // payload, first transmissions
  std::uint64_t rx_bytes = 0;
  std::uint64_t retransmitted_packets = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t naks_received = 0;
  std::uint64_t rnr_received = 0;
  std::uint64_t cnps_received = 0;
  std::uint64_t cnps_sent = 0;
  std::uint64_t completions = 0;
  std::array<std::uint64_t, 7> limiter_ns{};  // of its congestion context, by cc::Limiter
  // Since minor 2; 0 before.
  std::uint64_t source_port = 0;  // UDP: the path entropy of its packets
  // Since minor 3: one-way delays to the peer and from it, by the latest probe; 0: none. Clocks are
  // compared for them: where they are further off than is known, it is below 0.
  std::int64_t one_way_there_ns = 0;
  std::int64_t one_way_back_ns = 0;
};
// Size of a record of minor versions 0 and 1.
inline constexpr std::size_t kQueuePairRecordBytes1 = offsetof(QueuePairRecord, source_port);
// Size of a record of minor version 2.
inline constexpr std::size_t kQueuePairRecordBytes2 = offsetof(QueuePairRecord, one_way_there_ns);
static_assert(std::is_trivially_copyable_v<QueuePairRecord> && sizeof(QueuePairRecord) % 8 == 0);

}  // namespace paceline::telemetry
