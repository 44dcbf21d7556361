#include "control/daemon/history.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace paceline::daemon {

namespace {

constexpr std::uint64_t kHistoryMagic = 0x3249'4854'5350ULL;  // "PSTHI2"
constexpr std::size_t kLineBytes = 64;

void mix(std::uint64_t& hash, std::string_view text) {
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x0000'0100'0000'01B3ULL;
  hash = (hash ^ 0xFFU) * 0x0000'0100'0000'01B3ULL;
}

std::size_t gauges_of(std::span<const SeriesInfo> series) {
  return static_cast<std::size_t>(std::count_if(series.begin(), series.end(), [](const auto& s) {
    return s.kind == telemetry::SeriesKind::gauge;
  }));
}

// The slot a look goes into: the newest where the clock was set back, unless by more than the ring
// holds, which tells nothing any more then.
std::int64_t slot_for(std::int64_t newest, std::int64_t slot, std::size_t slots) {
  return newest > slot && newest - slot < static_cast<std::int64_t>(slots) ? newest : slot;
}

}  // namespace

// FNV-1a: no secret, only a sum that tells one layout from another.
std::uint64_t History::layout_of(std::string_view nic, std::span<const SeriesInfo> series,
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

std::size_t History::header_bytes(std::size_t gauges) {
  const std::size_t bytes = sizeof(Header) + (kResolutions - 1) * gauges * sizeof(std::uint64_t);
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

std::size_t History::bytes_of(std::span<const SeriesInfo> series, const Resolutions& resolutions) {
  const std::size_t gauges = gauges_of(series);
  std::size_t bytes = header_bytes(gauges);
  for (const Resolution& r : resolutions) {
    bytes += SlotRing::bytes_of(r.slots(), series.size() + gauges);
  }
  return bytes;
}

History::History(std::string_view nic, std::vector<SeriesInfo> series,
                 const Resolutions& resolutions, std::span<std::byte> memory)
    : series_(std::move(series)), resolutions_(resolutions) {
  assert(memory.size() >= bytes_of(series_, resolutions_));
  assert(resolutions_[2].slot_ns % resolutions_[1].slot_ns == 0);
  highest_at_.resize(series_.size());
  for (std::size_t i = 0; i < series_.size(); ++i) {
    if (series_[i].kind != telemetry::SeriesKind::gauge) continue;
    highest_at_[i] = static_cast<std::uint32_t>(series_.size() + gauges_.size());
    gauges_.push_back(static_cast<std::uint32_t>(i));
  }
  values_.resize(series_.size());
  shift_.resize(series_.size());

  header_ = reinterpret_cast<Header*>(memory.data());
  const std::uint64_t layout = layout_of(nic, series_, resolutions_);
  taken_up_ = header_->magic == kHistoryMagic && header_->layout == layout;
  if (!taken_up_) *header_ = Header{};
  auto* highest = reinterpret_cast<std::uint64_t*>(memory.data() + sizeof(Header));
  for (std::uint64_t*& of : highest_) {
    of = highest;
    highest += gauges_.size();
  }
  std::size_t at = header_bytes(gauges_.size());
  for (std::size_t i = 0; i < kResolutions; ++i) {
    const std::size_t slots = resolutions_[i].slots();
    const std::size_t columns = series_.size() + gauges_.size();
    const std::size_t bytes = SlotRing::bytes_of(slots, columns);
    rings_[i] = SlotRing(header_->heads[i], memory.subspan(at, bytes), slots, columns, taken_up_);
    at += bytes;
  }
  header_->layout = layout;
  header_->magic = kHistoryMagic;
}

bool History::follows(std::int64_t unix_ns, std::uint64_t instance) {
  const bool out = begun_ && instance == instance_ && unix_ns - last_unix_ns_ <= kLongestPause;
  begun_ = true;
  instance_ = instance;
  last_unix_ns_ = unix_ns;
  return out;
}

// Totals go on from the row in force: the first look of a new count says nothing about the time
// before it.
void History::begin_count() {
  const std::uint64_t* const totals = rings_[0].last();
  for (std::size_t i = 0; i < values_.size(); ++i) shift_[i] = totals[i] - values_[i];
  for (const std::uint32_t i : gauges_) shift_[i] = 0;
  unwritten_ = true;
}

void History::add(std::int64_t unix_ns, std::uint64_t instance,
                  std::span<const std::uint64_t> values) {
  assert(values.size() == series_.size());
  if (!follows(unix_ns, instance)) {
    std::copy(values.begin(), values.end(), values_.begin());
    begin_count();
    return;
  }
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (values[i] < values_[i]) shift_[i] += values_[i] - values[i];
    values_[i] = values[i];
  }
  for (const std::uint32_t i : gauges_) shift_[i] = 0;
  unwritten_ = true;
  look(unix_ns);
}

void History::add_same(std::int64_t unix_ns, std::uint64_t instance) {
  if (follows(unix_ns, instance)) {
    look(unix_ns);
  } else {
    begin_count();
  }
}

void History::look(std::int64_t unix_ns) {
  if (unix_ns < second_from_ns_ || unix_ns >= second_until_ns_) finish_slots(unix_ns);
  SlotRing& fine = rings_[0];
  const std::int64_t wanted = unix_ns / resolutions_[0].slot_ns;
  const std::int64_t slot = slot_for(fine.newest(), wanted, fine.slots());
  if (slot < fine.newest()) {
    fine.begin_again([&](std::uint64_t* cells) {
      std::copy_n(fine.last(), series_.size() + gauges_.size(), cells);
    });
  }
  const bool changed = std::exchange(unwritten_, false);
  if (changed) {
    put_totals(slot);
  } else {
    fine.touch(slot);
  }
  put_highest(changed);
}

void History::put_totals(std::int64_t slot) {
  rings_[0].put(slot, [&](std::uint64_t* const cells, const SlotRing::Past& past) {
    for (std::size_t i = 0; i < values_.size(); ++i) cells[i] = values_[i] + shift_[i];
    for (const std::uint32_t i : gauges_) {
      const std::size_t column = highest_at_[i];
      // Looks of this slot that found nothing new saw the levels of the row before.
      const std::uint64_t before = past.row == nullptr ? 0 : past.row[past.own ? column : i];
      cells[column] = std::max(before, values_[i]);
    }
  });
}

void History::put_highest(bool changed) {
  Unfinished& second = header_->unfinished[0];
  if (second.looks++ != 0 && !changed) return;
  const bool first = second.looks == 1;
  const std::uint64_t* const levels = rings_[0].last();
  std::uint64_t* highest = highest_[0];
  for (const std::uint32_t i : gauges_) {
    *highest = first ? levels[i] : std::max(*highest, levels[i]);
    ++highest;
  }
}

void History::finish_slots(std::int64_t unix_ns) {
  std::array<std::int64_t, kResolutions - 1> next{};
  for (std::size_t i = 0; i < next.size(); ++i) {
    next[i] = slot_for(header_->unfinished[i].slot, unix_ns / resolutions_[i + 1].slot_ns,
                       rings_[i + 1].slots());
  }
  const Unfinished second = header_->unfinished[0];
  if (next[0] != second.slot) {
    Unfinished& minute = header_->unfinished[1];
    for (std::size_t g = 0; second.looks != 0 && g < gauges_.size(); ++g) {
      std::uint64_t& highest = highest_[1][g];
      highest = minute.looks == 0 ? highest_[0][g] : std::max(highest, highest_[0][g]);
    }
    minute.looks += second.looks;
    finish(0, next[0]);
  }
  if (next[1] != header_->unfinished[1].slot) finish(1, next[1]);
  second_from_ns_ = unix_ns / resolutions_[1].slot_ns * resolutions_[1].slot_ns;
  second_until_ns_ = next[0] == unix_ns / resolutions_[1].slot_ns
                         ? second_from_ns_ + resolutions_[1].slot_ns
                         : second_from_ns_;  // set back: asked again with each look
}

void History::finish(std::size_t coarse, std::int64_t next) {
  Unfinished& open = header_->unfinished[coarse];
  SlotRing& ring = rings_[coarse + 1];
  const std::uint64_t* const totals = rings_[0].last();
  const std::uint64_t written = rings_[0].rows_written();
  if (next < open.slot) {
    ring.begin_again(
        [&](std::uint64_t* cells) { std::copy_n(totals, series_.size() + gauges_.size(), cells); });
    open.row = written;
  } else if (open.looks != 0 && open.row == written) {
    ring.touch(open.slot);
  } else if (open.looks != 0) {
    ring.put(open.slot, [&](std::uint64_t* const cells, const SlotRing::Past& /*past*/) {
      std::copy_n(totals, series_.size(), cells);
      std::copy_n(highest_[coarse], gauges_.size(), cells + series_.size());
    });
    open.row = written;
  }
  open.looks = 0;
  open.slot = next;
}

std::int64_t History::newest(std::size_t resolution) const {
  return resolution == 0 ? rings_[0].newest() : header_->unfinished.at(resolution - 1).slot;
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
  const SlotRing& ring = rings_.at(resolution);
  const std::int64_t slot_ns = resolutions_.at(resolution).slot_ns;
  const std::int64_t head = newest(resolution);
  const auto slots = static_cast<std::int64_t>(ring.slots());
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
      const SlotRing::Rows rows = ring.at(s);
      if (rows.last == nullptr) {
        part.values.emplace_back();
        if (gauge) part.highest.emplace_back();
        continue;
      }
      part.values.emplace_back(gauge ? rows.last[name] : rows.last[name] - rows.before[name]);
      if (!gauge) continue;
      part.highest.emplace_back(rows.last[rows.last == rows.before ? name : highest_at_[name]]);
    }
    out.series.push_back(std::move(part));
  }
  return out;
}

}  // namespace paceline::daemon
