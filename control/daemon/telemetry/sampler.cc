#include "control/daemon/telemetry/sampler.h"

#include <algorithm>

#include "control/daemon/telemetry/message_series.h"

namespace paceline::daemon {

using telemetry::MessageDetail;
using telemetry::NicBody;
using telemetry::QueuePairRecord;

namespace {

constexpr std::int64_t kQuantileSpan = 1'000'000'000;

bool same_series(std::span<const SeriesInfo> a, std::span<const SeriesInfo> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const SeriesInfo& x, const SeriesInfo& y) {
                      return x.name == y.name && x.kind == y.kind;
                    });
}

}  // namespace

std::string_view telemetry_state_name(TelemetryState state) {
  switch (state) {
    case TelemetryState::lost:
      return "lost";
    case TelemetryState::torn:
      return "torn";
    case TelemetryState::stalled:
      return "stalled";
    case TelemetryState::fresh:
      return "fresh";
  }
  return "lost";
}

std::string Sampler::open(attach::SharedMemory segment) {
  close();
  memory_ = std::move(segment);
  return take_catalogue(memory_.bytes());
}

std::string Sampler::open(std::span<const std::byte> segment) {
  close();
  return take_catalogue(segment);
}

void Sampler::close() {
  open_ = false;
  queue_pairs_.clear();
  for (const auto& state : states_) state->read = false;
}

std::string Sampler::take_catalogue(std::span<const std::byte> segment) {
  if (std::string wrong = reader_.open(segment); !wrong.empty()) return wrong;
  std::vector<SeriesInfo> series(reader_.series().begin(), reader_.series().end());
  segment_series_ = series.size();
  for (SeriesInfo& added : message_series()) series.emplace_back(std::move(added));
  const bool same = same_series(series, series_);
  if (!same && !series_.empty())
    notes_.emplace_back("the service has other series: history starts again");
  series_ = std::move(series);
  const auto place = [&](std::string_view name) {
    const auto at = reader_.find(name);
    return at ? *at + 1 : 0;
  };
  row_.resize(series_.size());
  inflight_ = place("inflight_bytes");
  backlog_ = place("backlog_bytes");

  std::vector<std::unique_ptr<NicState>> before = std::move(states_);
  const std::vector<telemetry::NicText> names_before = std::move(names_);
  states_.clear();
  names_.assign(reader_.nics().begin(), reader_.nics().end());
  for (std::size_t nic = 0; nic < names_.size(); ++nic) {
    states_.push_back(nullptr);
    for (std::size_t i = 0; same && i < before.size(); ++i) {
      if (before[i] && names_before[i].name == names_[nic].name)
        states_[nic] = std::move(before[i]);
    }
    if (!states_[nic]) {
      states_[nic] = std::make_unique<NicState>();
      states_[nic]->history = std::make_unique<History>(series_, settings_.history);
    }
    states_[nic]->known = false;
    states_[nic]->unchanged = 0;
  }
  queue_pairs_.keep_nics(static_cast<std::uint32_t>(names_.size()));
  open_ = true;
  return {};
}

void Sampler::sample(std::int64_t now_unix_ns) {
  changes_.clear();
  if (!open_) return;
  ++samples_;
  for (std::size_t nic = 0; nic < states_.size(); ++nic) read_nic(nic, now_unix_ns);
}

void Sampler::read_nic(std::size_t nic, std::int64_t now_unix_ns) {
  NicState& s = *states_[nic];
  const bool second = !s.known || now_unix_ns - s.second_at_unix_ns >= kQuantileSpan ||
                      now_unix_ns < s.second_at_unix_ns;
  const bool whole = second || detail_ == MessageDetail::whole;
  // An idle NIC need not be read again.
  const bool same = s.known && s.read && (s.whole || !whole) &&
                    reader_.at_rest_since(nic, s.latest.body.sequence);
  bool changed = false;
  if (same) {
    ++s.unchanged;
  } else {
    if (!fetch(nic, s, whole)) return;
    changed = true;
  }
  s.read_unix_ns = now_unix_ns;
  if (second) {
    if (same) std::copy(s.history->values().begin(), s.history->values().end(), row_.begin());
    changed = put_quantiles(s, now_unix_ns) || changed;
  }
  const std::uint64_t instance = reader_.header().service_start_unix_ns;
  if (changed) {
    s.history->add(now_unix_ns, instance, row_);
  } else {
    s.history->add_same(now_unix_ns, instance);
  }
  s.known = true;
}

// Fills row_, except for quantiles, which stay unchanged.
bool Sampler::fetch(std::size_t nic, NicState& s, bool whole) {
  NicBody body;
  const std::span<std::uint64_t> row(row_);
  s.whole = whole;
  s.read = reader_.read(nic, body, row.first(segment_series_), s.latest.messages, s.latest.clusters,
                        whole ? MessageDetail::whole : MessageDetail::totals);
  if (!s.read) return false;
  const NicBody& before = s.latest.body;
  s.unchanged = s.known && body.sequence == before.sequence ? s.unchanged + 1 : 0;
  const std::span<const std::uint64_t> values = s.history->values();
  std::copy(values.begin() + static_cast<std::ptrdiff_t>(segment_series_), values.end(),
            row_.begin() + static_cast<std::ptrdiff_t>(segment_series_));
  put_message_counters(s.latest.messages, row.subspan(segment_series_));
  if (s.known && (body.generation != before.generation || body.guard != before.guard ||
                  body.arm != before.arm || body.epoch != before.epoch)) {
    changes_.push_back({nic, before, body});
  }
  s.latest.body = body;
  return true;
}

// Whether any is another.
bool Sampler::put_quantiles(NicState& s, std::int64_t now_unix_ns) {
  const telemetry::MessagesBySize& now = s.latest.messages;
  put_slowdowns(s.known ? s.second_ago : now, now, std::span(row_).subspan(segment_series_));
  s.second_ago = now;
  s.second_at_unix_ns = now_unix_ns;
  return !std::equal(row_.begin(), row_.end(), s.history->values().begin());
}

void Sampler::look_at_queue_pairs(std::int64_t now_unix_ns) {
  if (!open_) return;
  for (std::size_t nic = 0; nic < states_.size(); ++nic) {
    records_ = queue_pairs(nic);
    queue_pairs_.add(static_cast<std::uint32_t>(nic), now_unix_ns, records_);
  }
}

std::vector<QueuePairRecord> Sampler::queue_pairs(std::size_t nic) const {
  std::vector<QueuePairRecord> out;
  if (!open_) return out;
  QueuePairRecord record;
  for (std::size_t i = 0; i < reader_.records(); ++i) {
    if (!reader_.has_record(nic, i)) continue;
    if (reader_.read_record(nic, i, record) && record.number != 0) out.push_back(record);
  }
  return out;
}

TelemetryState Sampler::state(std::size_t nic) const {
  const NicState& s = *states_.at(nic);
  if (!open_) return TelemetryState::lost;
  if (!s.read) return TelemetryState::torn;
  // A worker without work sleeps and writes nothing: its last values are still true.
  const auto level = [&](std::size_t place) {
    return place == 0 ? 0 : s.history->values()[place - 1];
  };
  const bool busy = level(inflight_) > 0 || level(backlog_) > 0;
  return busy && s.unchanged >= settings_.stalled_after ? TelemetryState::stalled
                                                        : TelemetryState::fresh;
}

bool Sampler::fresh() const {
  for (std::size_t nic = 0; nic < states_.size(); ++nic) {
    if (!fresh(nic)) return false;
  }
  return !states_.empty();
}

std::optional<std::size_t> Sampler::find_nic(std::string_view name) const {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i].name == name) return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> Sampler::find_series(std::string_view name) const {
  for (std::size_t i = 0; i < series_.size(); ++i) {
    if (series_[i].name == name) return i;
  }
  return std::nullopt;
}

std::size_t Sampler::history_bytes() const {
  std::size_t out = 0;
  for (const auto& state : states_) out += state->history->bytes();
  return out;
}

}  // namespace paceline::daemon
