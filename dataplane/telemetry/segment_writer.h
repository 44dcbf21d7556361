// Lays a telemetry segment out and writes it (segment.h). After construction it is constant: each
// worker writes the NICs that are its own, at the same time as others theirs. Does not allocate
// after that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/telemetry/segment.h"
#include "dataplane/telemetry/series.h"

namespace paceline::telemetry {

struct SegmentNic {
  std::string name;
  std::uint64_t rate_bps = 0;
  std::uint32_t worker = 0;
  std::uint32_t mtu = 0;
};

struct SegmentSetup {
  std::vector<SegmentNic> nics;
  std::uint32_t records = 0;  // of queue pairs, for each NIC
  std::uint64_t publish_interval_ns = 0;
  std::uint64_t service_start_unix_ns = 0;
  std::uint32_t service_pid = 0;
};

// Bits for SegmentWriter::write: the sizes of messages whose figures changed.
inline constexpr unsigned kAllSizes = (1U << kMessageSizes) - 1;

class SegmentWriter {
 public:
  // The memory that a segment of this setup needs.
  static std::size_t bytes_needed(const SegmentSetup& setup);
  // `memory` is zeroed, aligned to 64, has bytes_needed() and outlives the writer.
  SegmentWriter(std::span<std::byte> memory, const SegmentSetup& setup);

  std::size_t nics() const { return header_.nics; }
  std::size_t records() const { return header_.records; }

  // Figures of one cluster. Only the sizes in `sizes` of `messages` are written.
  struct Cluster {
    ClusterFigures figures{};
    const MessagesBySize* messages = nullptr;
    unsigned sizes = kAllSizes;
  };
  // Ignores `body.sequence`. Writes only the sizes in `sizes` of `messages`, and the first
  // body.clusters clusters, kMostClusters at most.
  void write(std::size_t nic, const NicBody& body, const NicValues& values,
             const MessagesBySize& messages, unsigned sizes = kAllSizes,
             std::span<const Cluster> clusters = {}) const;
  // Ignores `record.sequence`.
  void write_record(std::size_t nic, std::size_t index, const QueuePairRecord& record) const;
  // The number of the queue pair in it, 0: it is empty.
  std::uint32_t number_in(std::size_t nic, std::size_t index) const;

 private:
  std::byte* nic_at(std::size_t nic) const {
    return memory_.data() + header_.nics_at + nic * header_.nic_stride;
  }
  std::byte* record_at(std::size_t nic, std::size_t index) const {
    return nic_at(nic) + header_.records_at + index * header_.record_stride;
  }

  std::span<std::byte> memory_;
  SegmentHeader header_{};
};

}  // namespace paceline::telemetry
