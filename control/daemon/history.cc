#include "control/daemon/history.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace paceline::daemon {

namespace {

constexpr std::uint64_t kHistoryMagic = 0x3149'4854'5350ULL;  // "PSTHI1"

struct HistoryHeader {
  std::uint64_t magic = kHistoryMagic;
  std::uint64_t layout = 0;  // hash of all that places and meanings depend on
};

void mix(std::uint64_t& hash, std::string_view text) {
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x0000'0100'0000'01B3ULL;
  hash = (hash ^ 0xFFU) * 0x0000'0100'0000'01B3ULL;
}

// FNV-1a: no secret, only a sum that tells one layout from another.
std::uint64_t layout_of(std::string_view nic, std::span<const SeriesInfo> series,
                        const Resolutions& resolutions) {
  std::uint64_t hash = 0xCBF2'9CE4'8422'2325ULL;
  mix(hash, nic);
  for (const SeriesInfo& s : series) {
    mix(hash, s.name);
    mix(hash, s.kind == telemetry::SeriesKind::gauge ? "gauge" : "counter");
  }
  for (const Resolution& r : resolutions) {
    mix(hash, std::to_string(r.slot_ns));
    mix(hash, std::to_string(r.span_ns));
  }
  return hash;
}

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

std::size_t columns_of(std::span<const SeriesInfo> series) {
  std::size_t columns = 0;
  for (const SeriesInfo& s : series) columns += s.kind == telemetry::SeriesKind::gauge ? 2 : 1;
  return columns;
}

std::size_t ring_bytes(std::size_t slots, std::size_t columns) {
  return sizeof(std::int64_t) + aligned(slots * sizeof(std::uint32_t)) +
         slots * columns * sizeof(std::uint64_t);
}

}  // namespace

std::size_t History::bytes_of(std::span<const SeriesInfo> series, const Resolutions& resolutions) {
  std::size_t bytes = sizeof(HistoryHeader);
  for (const Resolution& r : resolutions) bytes += ring_bytes(r.slots(), columns_of(series));
  return bytes;
}

History::History(std::string_view nic, std::vector<SeriesInfo> series,
                 const Resolutions& resolutions, std::span<std::byte> memory)
    : series_(std::move(series)), resolutions_(resolutions) {
  assert(memory.size() >= bytes_of(series_, resolutions_));
  for (const SeriesInfo& s : series_) {
    column_.push_back(static_cast<std::uint32_t>(columns_));
    const bool gauge = s.kind == telemetry::SeriesKind::gauge;
    (gauge ? gauges_ : counters_).push_back(static_cast<std::uint32_t>(column_.size() - 1));
    columns_ += gauge ? 2 : 1;
  }
  before_.resize(series_.size());
  grown_.reserve(counters_.size());

  HistoryHeader header;
  std::memcpy(&header, memory.data(), sizeof(header));
  const std::uint64_t layout = layout_of(nic, series_, resolutions_);
  taken_up_ = header.magic == kHistoryMagic && header.layout == layout;
  std::byte* at = memory.data() + sizeof(header);
  for (std::size_t i = 0; i < kResolutions; ++i) {
    Ring& ring = rings_[i];
    ring.resolution = resolutions_[i];
    ring.slots = resolutions_[i].slots();
    ring.head = reinterpret_cast<std::int64_t*>(at);
    at += sizeof(std::int64_t);
    ring.looks = reinterpret_cast<std::uint32_t*>(at);
    at += aligned(ring.slots * sizeof(std::uint32_t));
    ring.cells = reinterpret_cast<std::uint64_t*>(at);
    at += ring.slots * columns_ * sizeof(std::uint64_t);
    if (!taken_up_) {
      *ring.head = -1;
      std::memset(ring.looks, 0, ring.slots * sizeof(std::uint32_t));
    }
  }
  header = {kHistoryMagic, layout};
  std::memcpy(memory.data(), &header, sizeof(header));
}

std::uint64_t* History::row(const Ring& ring, std::int64_t slot) const {
  return ring.cells + static_cast<std::size_t>(slot) % ring.slots * columns_;
}

void History::add(std::int64_t unix_ns, std::uint64_t instance,
                  std::span<const std::uint64_t> values) {
  assert(values.size() == series_.size());
  const bool follows = begun_ && instance == instance_ && unix_ns - last_unix_ns_ <= kLongestPause;
  grown_.clear();
  for (const std::uint32_t i : counters_) {
    if (values[i] > before_[i]) grown_.push_back({column_[i], values[i] - before_[i]});
    before_[i] = values[i];
  }
  begun_ = true;
  instance_ = instance;
  last_unix_ns_ = unix_ns;
  // The first row of a new count says nothing about the time before it.
  if (!follows) return;
  for (Ring& ring : rings_) add_to(ring, unix_ns, values);
}

void History::add_to(Ring& ring, std::int64_t unix_ns, std::span<const std::uint64_t> values) {
  std::int64_t slot = unix_ns / ring.resolution.slot_ns;
  const auto slots = static_cast<std::int64_t>(ring.slots);
  if (*ring.head > slot && *ring.head - slot < slots) slot = *ring.head;  // the clock was set back
  if (*ring.head > slot) *ring.head = -1;  // by more than the ring holds: it tells nothing any more
  if (slot > *ring.head) {
    const std::int64_t first = std::max(*ring.head + 1, slot - slots + 1);
    for (std::int64_t s = *ring.head < 0 ? slot - slots + 1 : first; s <= slot; ++s) {
      ring.looks[static_cast<std::size_t>(s) % ring.slots] = 0;
    }
    std::fill_n(row(ring, slot), columns_, 0);
    *ring.head = slot;
  }
  std::uint64_t* const cells = row(ring, slot);
  for (const Growth& grown : grown_) cells[grown.column] += grown.by;
  for (const std::uint32_t i : gauges_) {
    std::uint64_t* const cell = cells + column_[i];
    cell[0] = values[i];
    cell[1] = std::max(cell[1], values[i]);
  }
  ++ring.looks[static_cast<std::size_t>(slot) % ring.slots];
}

std::size_t History::resolution_for(std::int64_t from_unix_ns, std::int64_t to_unix_ns,
                                    std::int64_t now_unix_ns, std::size_t most) const {
  for (std::size_t i = 0; i + 1 < kResolutions; ++i) {
    const Resolution& r = resolutions_[i];
    if (now_unix_ns - from_unix_ns <= r.span_ns &&
        (to_unix_ns - from_unix_ns) / r.slot_ns <= static_cast<std::int64_t>(most)) {
      return i;
    }
  }
  return kResolutions - 1;
}

HistoryPart History::part(std::size_t resolution, std::int64_t from_unix_ns,
                          std::int64_t to_unix_ns, std::span<const std::size_t> names) const {
  const Ring& ring = rings_.at(resolution);
  const std::int64_t slot_ns = ring.resolution.slot_ns;
  const std::int64_t head = *ring.head;
  const auto slots = static_cast<std::int64_t>(ring.slots);
  const auto up = [slot_ns](std::int64_t ns) { return ns <= 0 ? 0 : (ns - 1) / slot_ns + 1; };
  const std::int64_t first =
      std::max(up(from_unix_ns), std::max<std::int64_t>(head - slots + 1, 0));
  const std::int64_t end = head < 0 ? first : std::min(up(to_unix_ns), head);
  HistoryPart out;
  out.slot_ns = slot_ns;
  out.first_unix_ns = first * slot_ns;
  out.slots = static_cast<std::size_t>(std::max<std::int64_t>(end - first, 0));
  for (const std::size_t name : names) {
    SeriesPart part;
    part.info = &series_.at(name);
    const bool gauge = part.info->kind == telemetry::SeriesKind::gauge;
    part.values.reserve(out.slots);
    for (std::int64_t s = first; s < end; ++s) {
      if (ring.looks[static_cast<std::size_t>(s) % ring.slots] == 0) {
        part.values.emplace_back();
        if (gauge) part.highest.emplace_back();
        continue;
      }
      const std::uint64_t* const cell = row(ring, s) + column_[name];
      part.values.emplace_back(cell[0]);
      if (gauge) part.highest.emplace_back(cell[1]);
    }
    out.series.push_back(std::move(part));
  }
  return out;
}

}  // namespace paceline::daemon
