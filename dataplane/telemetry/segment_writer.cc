#include "dataplane/telemetry/segment_writer.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string_view>

#include "dataplane/telemetry/sequence.h"

namespace paceline::telemetry {

namespace {

constexpr std::size_t round64(std::size_t bytes) { return (bytes + 63) & ~std::size_t{63}; }

template <std::size_t N>
void put(std::array<char, N>& to, std::string_view text) {
  std::copy_n(text.data(), std::min(text.size(), N - 1), to.data());
}

SegmentHeader layout(const SegmentSetup& setup) {
  SegmentHeader h;
  h.service_start_unix_ns = setup.service_start_unix_ns;
  h.service_pid = setup.service_pid;
  h.publish_interval_ns = setup.publish_interval_ns;
  h.series = static_cast<std::uint32_t>(kNicSeries);
  h.series_at = static_cast<std::uint32_t>(round64(sizeof(SegmentHeader)));
  h.series_stride = sizeof(SeriesText);
  h.nics = static_cast<std::uint32_t>(setup.nics.size());
  h.nics_at = static_cast<std::uint32_t>(round64(h.series_at + kNicSeries * sizeof(SeriesText)));
  h.body_at = static_cast<std::uint32_t>(round64(sizeof(NicHeader)));
  h.values_at = static_cast<std::uint32_t>(round64(h.body_at + sizeof(NicBody)));
  h.messages_at = static_cast<std::uint32_t>(round64(h.values_at + sizeof(NicValues)));
  h.records_at = static_cast<std::uint32_t>(round64(h.messages_at + sizeof(MessagesBySize)));
  h.records = setup.records;
  h.record_stride = static_cast<std::uint32_t>(round64(sizeof(QueuePairRecord)));
  h.clusters = static_cast<std::uint32_t>(kMostClusters);
  h.clusters_at =
      static_cast<std::uint32_t>(round64(h.records_at + std::size_t{h.records} * h.record_stride));
  h.cluster_messages_at = static_cast<std::uint32_t>(round64(sizeof(ClusterFigures)));
  h.cluster_stride =
      static_cast<std::uint32_t>(round64(h.cluster_messages_at + sizeof(MessagesBySize)));
  h.nic_stride = round64(h.clusters_at + std::size_t{h.clusters} * h.cluster_stride);
  h.total_bytes = h.nics_at + h.nics * h.nic_stride;
  return h;
}

}  // namespace

std::size_t SegmentWriter::bytes_needed(const SegmentSetup& setup) {
  return layout(setup).total_bytes;
}

SegmentWriter::SegmentWriter(std::span<std::byte> memory, const SegmentSetup& setup)
    : memory_(memory), header_(layout(setup)) {
  assert(memory.size() >= header_.total_bytes);
  std::memcpy(memory.data(), &header_, sizeof(header_));
  std::byte* at = memory.data() + header_.series_at;
  for (const Series& series : nic_series()) {
    SeriesText text;
    put(text.name, series.name);
    put(text.unit, series.unit);
    text.kind = series.kind;
    std::memcpy(at, &text, sizeof(text));
    at += header_.series_stride;
  }
  for (std::size_t i = 0; i < setup.nics.size(); ++i) {
    const SegmentNic& nic = setup.nics[i];
    NicHeader header;
    put(header.name, nic.name);
    header.rate_bps = nic.rate_bps;
    header.worker = nic.worker;
    header.mtu = nic.mtu;
    std::memcpy(nic_at(i), &header, sizeof(header));
  }
}

void SegmentWriter::write(std::size_t nic, const NicBody& body, const NicValues& values,
                          const MessagesBySize& messages, unsigned sizes,
                          std::span<const Cluster> clusters) const {
  assert(clusters.size() == body.clusters && clusters.size() <= header_.clusters);
  std::byte* const at = nic_at(nic);
  std::byte* const block = at + header_.body_at;
  const auto store_messages = [](std::byte* to, const MessagesBySize& of, unsigned which) {
    for (std::size_t s = 0; s < kMessageSizes; ++s) {
      if ((which >> s & 1U) == 0) continue;
      store_words(to + s * sizeof(MessageFigures), &of[s], sizeof(MessageFigures));
    }
  };
  write_guarded(block, [&] {
    detail::store_word(block + offsetof(NicBody, epoch), body.epoch);
    store_words(block + 8, reinterpret_cast<const std::byte*>(&body) + 8, sizeof(body) - 8);
    store_words(at + header_.values_at, values.data(), sizeof(values));
    store_messages(at + header_.messages_at, messages, sizes);
    std::byte* cluster_at = at + header_.clusters_at;
    for (const Cluster& cluster : clusters) {
      store_words(cluster_at, &cluster.figures, sizeof(ClusterFigures));
      store_messages(cluster_at + header_.cluster_messages_at, *cluster.messages, cluster.sizes);
      cluster_at += header_.cluster_stride;
    }
  });
}

void SegmentWriter::write_record(std::size_t nic, std::size_t index,
                                 const QueuePairRecord& record) const {
  std::byte* const block = record_at(nic, index);
  write_guarded(block, [&] {
    detail::store_word(block + offsetof(QueuePairRecord, number), record.number);
    store_words(block + 8, reinterpret_cast<const std::byte*>(&record) + 8, sizeof(record) - 8);
  });
}

std::uint32_t SegmentWriter::number_in(std::size_t nic, std::size_t index) const {
  return detail::load_word<std::uint32_t>(record_at(nic, index) +
                                          offsetof(QueuePairRecord, number));
}

}  // namespace paceline::telemetry
