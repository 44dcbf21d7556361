// A telemetry segment that a test writes.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataplane/telemetry/segment_reader.h"
#include "dataplane/telemetry/segment_writer.h"

namespace paceline::daemon {

struct alignas(64) Line {
  std::array<std::byte, 64> bytes;
};

struct FakeSegment {
  explicit FakeSegment(std::vector<std::string> nics, std::uint64_t start = 1) {
    for (std::string& name : nics) setup.nics.push_back({std::move(name), 25'000'000'000, 0, 4096});
    setup.records = 8;
    setup.publish_interval_ns = 5'000'000;
    setup.service_start_unix_ns = start;
    memory.resize((telemetry::SegmentWriter::bytes_needed(setup) + 63) / 64);
    writer = std::make_unique<telemetry::SegmentWriter>(std::as_writable_bytes(std::span(memory)),
                                                        setup);
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(memory)); }
  // Where there are clusters, each NIC is in the one of its own place.
  void write(std::size_t nic) {
    body.clusters = static_cast<std::uint32_t>(clusters.size());
    body.own_cluster = static_cast<std::uint32_t>(nic);
    std::vector<telemetry::SegmentWriter::Cluster> all;
    for (const telemetry::ClusterSample& cluster : clusters) {
      all.push_back({cluster.figures, &cluster.messages});
    }
    writer->write(nic, body, values, messages, telemetry::kAllSizes, all);
  }

  telemetry::SegmentSetup setup;
  std::vector<Line> memory;
  std::unique_ptr<telemetry::SegmentWriter> writer;
  telemetry::NicBody body{};
  telemetry::NicValues values{};
  telemetry::MessagesBySize messages{};
  std::vector<telemetry::ClusterSample> clusters;
};

}  // namespace paceline::daemon
