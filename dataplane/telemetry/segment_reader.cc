#include "dataplane/telemetry/segment_reader.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "dataplane/telemetry/sequence.h"

namespace paceline::telemetry {

namespace {

// More than any service has, and few enough that no sum below overflows.
constexpr std::uint64_t kMostSeries = 4096;
constexpr std::uint64_t kMostNics = 4096;
constexpr std::uint64_t kMostRecords = 1U << 20U;
constexpr std::uint64_t kMostClusterRoom = 4096;

template <std::size_t N>
std::string text_in(const std::array<char, N>& chars) {
  const void* const end = std::memchr(chars.data(), 0, N);
  const std::size_t length =
      end == nullptr ? N : static_cast<std::size_t>(static_cast<const char*>(end) - chars.data());
  return {chars.data(), length};
}

std::size_t record_bytes(const SegmentHeader& header) {
  if (header.minor < 2) return kQueuePairRecordBytes1;
  return header.minor < 3 ? kQueuePairRecordBytes2 : sizeof(QueuePairRecord);
}

constexpr bool aligned(std::uint64_t place) { return place % 8 == 0; }

// [at, at + count * stride) lies in `room`; count and stride are below 2^32.
constexpr bool fits(std::uint64_t at, std::uint64_t count, std::uint64_t stride,
                    std::uint64_t room) {
  return at <= room && count * stride <= room - at;
}

// With totals, distributions stay unchanged.
void load_messages(MessagesBySize& messages, const std::byte* at, MessageDetail wanted) {
  const std::size_t of_size =
      wanted == MessageDetail::whole ? sizeof(MessageFigures) : offsetof(MessageFigures, slowdown);
  for (std::size_t size = 0; size < kMessageSizes; ++size) {
    load_words(&messages[size], at + size * sizeof(MessageFigures), of_size);
  }
}

}  // namespace

std::string SegmentReader::check(std::size_t size) const {
  const SegmentHeader& h = header_;
  if (h.magic != kSegmentMagic) return "not a telemetry segment";
  if (h.major != kSegmentMajor) {
    return "a telemetry segment of version " + std::to_string(h.major) + "; this reader knows " +
           std::to_string(kSegmentMajor);
  }
  if (h.header_bytes < (h.minor == 0 ? kSegmentHeaderBytes0 : sizeof(SegmentHeader))) {
    return "its header is too short";
  }
  if (h.total_bytes > size) return "it is cut off";
  if (h.series > kMostSeries || h.nics > kMostNics || h.records > kMostRecords ||
      h.clusters > kMostClusterRoom) {
    return "it claims more series, NICs, records or clusters than there can be";
  }
  if (!aligned(h.series_at) || !aligned(h.series_stride) || !aligned(h.nics_at) ||
      !aligned(h.nic_stride) || !aligned(h.body_at) || !aligned(h.values_at) ||
      !aligned(h.messages_at) || !aligned(h.records_at) || !aligned(h.record_stride) ||
      !aligned(h.clusters_at) || !aligned(h.cluster_stride) || !aligned(h.cluster_messages_at)) {
    return "its places are not multiples of 8";
  }
  if (h.series_stride < sizeof(SeriesText) ||
      !fits(h.series_at, h.series, h.series_stride, h.total_bytes)) {
    return "its table of series lies outside it";
  }
  const std::uint64_t stride = h.nic_stride;
  if (stride < sizeof(NicHeader) || stride > h.total_bytes ||
      !fits(h.nics_at, h.nics, stride, h.total_bytes)) {
    return "its NICs lie outside it";
  }
  if (!fits(h.body_at, 1, sizeof(NicBody), stride) ||
      !fits(h.values_at, h.series, sizeof(std::uint64_t), stride) ||
      !fits(h.messages_at, 1, sizeof(MessagesBySize), stride) ||
      (h.records != 0 && h.record_stride < record_bytes(h)) ||
      !fits(h.records_at, h.records, h.record_stride, h.clusters != 0 ? h.clusters_at : stride) ||
      (h.clusters != 0 &&
       (h.cluster_stride < sizeof(ClusterFigures) ||
        !fits(h.cluster_messages_at, 1, sizeof(MessagesBySize), h.cluster_stride))) ||
      !fits(h.clusters_at, h.clusters, h.cluster_stride, stride)) {
    return "the data of a NIC lies outside the segment";
  }
  return {};
}

std::string SegmentReader::open(std::span<const std::byte> memory) {
  memory_ = memory;
  series_.clear();
  nics_.clear();
  header_ = {};
  header_.nics = 0;
  if (reinterpret_cast<std::uintptr_t>(memory.data()) % 8 != 0) return "it is not aligned";
  if (memory.size() < kSegmentHeaderBytes0) return "too short for a telemetry segment";
  // Copied once; later changes of the memory are not read.
  load_words(&header_, memory.data(), kSegmentHeaderBytes0);
  if (header_.minor != 0 && memory.size() >= sizeof(header_)) {
    load_words(&header_, memory.data(), sizeof(header_));
  }
  if (std::string wrong = check(memory.size()); !wrong.empty()) {
    header_ = {};
    return wrong;
  }
  for (std::uint32_t i = 0; i < header_.series; ++i) {
    SeriesText text;
    load_words(&text, memory.data() + header_.series_at + std::size_t{i} * header_.series_stride,
               sizeof(text));
    const auto kind = static_cast<std::uint8_t>(text.kind);
    if (kind > static_cast<std::uint8_t>(SeriesKind::gauge)) {
      header_ = {};
      return "series " + std::to_string(i) + " is of an unknown kind";
    }
    series_.push_back({text_in(text.name), text_in(text.unit), text.kind});
  }
  for (std::uint32_t i = 0; i < header_.nics; ++i) {
    NicHeader nic;
    load_words(&nic, nic_at(i), sizeof(nic));
    nics_.push_back({text_in(nic.name), nic.rate_bps, nic.worker, nic.mtu});
  }
  return {};
}

std::optional<std::size_t> SegmentReader::find(std::string_view name) const {
  for (std::size_t i = 0; i < series_.size(); ++i) {
    if (series_[i].name == name) return i;
  }
  return std::nullopt;
}

bool SegmentReader::read(std::size_t nic, NicSample& out) const {
  out.values.resize(series_.size());
  return read(nic, out.body, out.values, out.messages, out.clusters, MessageDetail::whole);
}

bool SegmentReader::read(std::size_t nic, NicBody& body, std::span<std::uint64_t> values,
                         MessagesBySize& messages, std::vector<ClusterSample>& clusters,
                         MessageDetail wanted) const {
  assert(nic < nics_.size() && values.size() == series_.size());
  const std::byte* const at = nic_at(nic);
  const std::byte* const block = at + header_.body_at;
  std::uint32_t sequence = 0;
  const bool whole = read_guarded(block, sequence, [&] {
    body.epoch = detail::load_word<std::uint32_t>(block + offsetof(NicBody, epoch));
    load_words(reinterpret_cast<std::byte*>(&body) + 8, block + 8, sizeof(NicBody) - 8);
    load_words(values.data(), at + header_.values_at, values.size() * 8);
    load_messages(messages, at + header_.messages_at, wanted);
    clusters.resize(std::min(body.clusters, header_.clusters));
    const std::byte* cluster_at = at + header_.clusters_at;
    for (ClusterSample& cluster : clusters) {
      load_words(&cluster.figures, cluster_at, sizeof(ClusterFigures));
      load_messages(cluster.messages, cluster_at + header_.cluster_messages_at, wanted);
      cluster_at += header_.cluster_stride;
    }
  });
  body.sequence = sequence;
  return whole;
}

bool SegmentReader::at_rest_since(std::size_t nic, std::uint32_t sequence) const {
  assert(nic < nics_.size());
  return detail::load_word<std::uint32_t>(nic_at(nic) + header_.body_at) == sequence;
}

bool SegmentReader::has_record(std::size_t nic, std::size_t index) const {
  assert(nic < nics_.size() && index < header_.records);
  const std::byte* const block =
      nic_at(nic) + header_.records_at + index * std::size_t{header_.record_stride};
  return detail::load_word<std::uint32_t>(block + offsetof(QueuePairRecord, number)) != 0;
}

bool SegmentReader::read_record(std::size_t nic, std::size_t index, QueuePairRecord& out) const {
  assert(nic < nics_.size() && index < header_.records);
  const std::byte* const block =
      nic_at(nic) + header_.records_at + index * std::size_t{header_.record_stride};
  std::uint32_t sequence = 0;
  const bool whole = read_guarded(block, sequence, [&] {
    out.number = detail::load_word<std::uint32_t>(block + offsetof(QueuePairRecord, number));
    out.source_port = 0;
    load_words(reinterpret_cast<std::byte*>(&out) + 8, block + 8, record_bytes(header_) - 8);
  });
  out.sequence = sequence;
  return whole;
}

}  // namespace paceline::telemetry
