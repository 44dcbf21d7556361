// Reads a telemetry segment (segment.h) that another process writes. Nothing in it is trusted:
// every position and size is checked once against the actual memory, and after that no read goes
// outside it, whatever the segment says. Reading into a sample that has its room does not allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/telemetry/message_figures.h"
#include "dataplane/telemetry/segment.h"

namespace paceline::telemetry {

struct SeriesInfo {
  std::string name;
  std::string unit;
  SeriesKind kind = SeriesKind::counter;
};

struct NicText {
  std::string name;
  std::uint64_t rate_bps = 0;
  std::uint32_t worker = 0;
  std::uint32_t mtu = 0;
};

// Figures of a NIC towards the ports of one cluster.
struct ClusterSample {
  ClusterFigures figures{};
  MessagesBySize messages{};
};

struct NicSample {
  NicBody body{};                     // `sequence` as it was read: even, and another after a write
  std::vector<std::uint64_t> values;  // by SegmentReader::series()
  MessagesBySize messages{};
  std::vector<ClusterSample> clusters;  // body.clusters of them; of minor 0 none
};

// How much of messages is wanted: their distributions are most of what a NIC publishes.
enum class MessageDetail : bool { totals, whole };

class SegmentReader {
 public:
  // Reads the catalogue from `memory`, which is aligned to 8 and outlives the reader. Returns what
  // is wrong, or an empty text. After an error only open() may be called.
  std::string open(std::span<const std::byte> memory);

  // As they were at open().
  const SegmentHeader& header() const { return header_; }
  std::span<const SeriesInfo> series() const { return series_; }
  std::optional<std::size_t> find(std::string_view name) const;
  std::span<const NicText> nics() const { return nics_; }
  std::size_t records() const { return header_.records; }

  // False, with `out` unusable: the body was never at rest, so its writer is gone (or the reader
  // was unlucky many times in a row).
  bool read(std::size_t nic, NicSample& out) const;
  // The same into the caller's memory: `values` has a place for each of series(). With totals,
  // MessageFigures::slowdown stays unchanged.
  bool read(std::size_t nic, NicBody& body, std::span<std::uint64_t> values,
            MessagesBySize& messages, std::vector<ClusterSample>& clusters,
            MessageDetail wanted) const;
  // Nothing was written since a read() that gave this sequence number.
  bool at_rest_since(std::size_t nic, std::uint32_t sequence) const;
  // Whether there may be a queue pair: where not, read_record() need not be asked.
  bool has_record(std::size_t nic, std::size_t index) const;
  // As read(); number 0: no queue pair.
  bool read_record(std::size_t nic, std::size_t index, QueuePairRecord& out) const;

 private:
  std::string check(std::size_t size) const;
  const std::byte* nic_at(std::size_t nic) const {
    return memory_.data() + header_.nics_at + nic * header_.nic_stride;
  }

  std::span<const std::byte> memory_;
  SegmentHeader header_{};
  std::vector<SeriesInfo> series_;
  std::vector<NicText> nics_;
};

}  // namespace paceline::telemetry
