#include "control/daemon/telemetry/history.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace paceline::daemon {

namespace {

constexpr std::size_t kCellsOfLine = 8;  // a row takes whole lines of the cache
// Slots in the ring name one row each, and the oldest the one before it.
constexpr std::size_t kMoreRows = 1;

}  // namespace

History::History(std::vector<SeriesInfo> series, HistorySpan span)
    : series_(std::move(series)), span_(span) {
  assert(span_.slots() > 0);
  highest_at_.resize(series_.size());
  for (std::size_t i = 0; i < series_.size(); ++i) {
    if (series_[i].kind != telemetry::SeriesKind::gauge) continue;
    highest_at_[i] = static_cast<std::uint32_t>(series_.size() + gauges_.size());
    gauges_.push_back(static_cast<std::uint32_t>(i));
  }
  values_.resize(series_.size());
  shift_.resize(series_.size());
  slots_.resize(span_.slots());
  const std::size_t columns = series_.size() + gauges_.size();
  stride_ = (columns + kCellsOfLine - 1) / kCellsOfLine * kCellsOfLine;
  cells_.resize((slots_.size() + kMoreRows) * stride_);
}

std::size_t History::bytes() const {
  return cells_.size() * sizeof(std::uint64_t) + slots_.size() * sizeof(Slot);
}

std::size_t History::place(std::int64_t slot) const {
  return static_cast<std::size_t>(slot) % slots_.size();
}

std::uint64_t* History::row(std::uint64_t number) {
  return cells_.data() + number % (slots_.size() + kMoreRows) * stride_;
}

const std::uint64_t* History::row(std::uint64_t number) const {
  return cells_.data() + number % (slots_.size() + kMoreRows) * stride_;
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
  const std::uint64_t* const totals = row(row_);
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
  std::int64_t slot = unix_ns / span_.slot_ns;
  if (slot < newest_) {
    // The clock was set back by more than the ring holds: no slot of it is valid any more.
    if (newest_ - slot < static_cast<std::int64_t>(slots_.size())) {
      slot = newest_;
    } else {
      newest_ = -1;
    }
  }
  Slot& at = enter(slot);
  if (std::exchange(unwritten_, false)) {
    write_row(at);
  } else if (at.before == kMissing) {
    at = {row_, row_};
  }
}

History::Slot& History::enter(std::int64_t slot) {
  if (slot > newest_) {
    const std::int64_t oldest = slot - static_cast<std::int64_t>(slots_.size()) + 1;
    const std::int64_t first = newest_ < 0 ? oldest : std::max(newest_ + 1, oldest);
    for (std::int64_t s = std::max<std::int64_t>(first, 0); s <= slot; ++s) slots_[place(s)] = {};
    newest_ = slot;
  }
  return slots_[place(slot)];
}

// A slot has at most one row of its own.
void History::write_row(Slot& slot) {
  const bool first = slot.before == kMissing;
  if (first) slot = {row_, row_};
  const bool own = slot.row != slot.before;
  const std::uint64_t* const past = row(slot.row);
  const std::uint64_t number = own ? slot.row : row_ + 1;
  std::uint64_t* const cells = row(number);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (series_[i].kind == telemetry::SeriesKind::counter) cells[i] = values_[i] + shift_[i];
  }
  for (const std::uint32_t i : gauges_) {
    const std::size_t column = highest_at_[i];
    // Looks of this slot that found nothing new saw the levels of the row before.
    const std::uint64_t before = first ? 0 : past[own ? column : i];
    cells[column] = std::max(before, values_[i]);
    cells[i] = values_[i];
  }
  row_ = slot.row = number;
}

HistoryPart History::part(std::int64_t from_unix_ns, std::int64_t to_unix_ns,
                          std::span<const std::size_t> names) const {
  const auto up = [&](std::int64_t ns) { return ns <= 0 ? 0 : (ns - 1) / span_.slot_ns + 1; };
  const std::int64_t oldest = newest_ - static_cast<std::int64_t>(slots_.size()) + 1;
  const std::int64_t first = std::max({up(from_unix_ns), oldest, std::int64_t{0}});
  const std::int64_t end = newest_ < 0 ? first : std::min(up(to_unix_ns), newest_);
  HistoryPart out;
  out.slot_ns = span_.slot_ns;
  out.first_unix_ns = first * span_.slot_ns;
  out.slots = static_cast<std::size_t>(std::max<std::int64_t>(end - first, 0));
  for (const std::size_t name : names) {
    SeriesPart part;
    part.info = &series_.at(name);
    const bool gauge = part.info->kind == telemetry::SeriesKind::gauge;
    part.values.reserve(out.slots);
    for (std::int64_t s = first; s < end; ++s) {
      const Slot& slot = slots_[place(s)];
      if (slot.before == kMissing) {
        part.values.emplace_back();
        if (gauge) part.highest.emplace_back();
        continue;
      }
      const std::uint64_t* const last = row(slot.row);
      const std::uint64_t* const before = row(slot.before);
      part.values.emplace_back(gauge ? last[name] : last[name] - before[name]);
      if (gauge) part.highest.emplace_back(last[last == before ? name : highest_at_[name]]);
    }
    out.series.push_back(std::move(part));
  }
  return out;
}

}  // namespace paceline::daemon
