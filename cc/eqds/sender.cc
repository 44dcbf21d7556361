#include "cc/eqds/sender.h"

#include <algorithm>

#include "cc/grants/channel_units.h"
#include "cc/param_block.h"

namespace paceline::cc {

void EqdsSender::set_params(const ParamBlock& params) {
  params_ = params.as<EqdsParams>();
  room_bytes_ = std::min(room_bytes_, most());
}

void EqdsSender::update(Nanos, std::uint32_t context, const UplinkWant& want) {
  if (context >= entries_.size()) {
    entries_.resize(context + 1);
    ready_.reserve(entries_.size());
  }
  Entry& entry = entries_[context];
  if (want.active != entry.active) {
    entry.active = want.active;
    active_ += want.active ? 1 : ~std::uint32_t{0};
  }
  entry.asks = want.asks_start;
  entry.start_bytes = want.start_bytes;
  // Worth telling when it has changed by a quarter.
  const std::uint32_t apart = active_ > entry.told ? active_ - entry.told : entry.told - active_;
  const bool news = entry.active && 4 * apart > entry.told;
  if ((entry.asks || news) && !entry.due) {
    entry.due = true;
    ready_.push_back(context);
  }
}

void EqdsSender::forget(Nanos now, std::uint32_t context) {
  if (context >= entries_.size()) return;
  update(now, context, UplinkWant{});
  std::erase(ready_, context);
  entries_[context] = Entry{};
}

std::size_t EqdsSender::poll(Nanos now, std::span<ShareOutput> out) {
  if (ready_.empty()) return 0;
  const std::int64_t span = std::clamp<std::int64_t>(now.count - room_at_, 0, 8 * params_.rtt_ns);
  room_bytes_ = std::min<std::int64_t>(
      most(), room_bytes_ + static_cast<std::int64_t>(bytes_at(params_.link_mbps, span)));
  room_at_ = now.count;
  const std::size_t n = std::min(out.size(), ready_.size());
  for (std::size_t i = 0; i < n; ++i) {
    Entry& entry = entries_[ready_[i]];
    UplinkShare share;
    const std::uint32_t mbps = std::max(1U, params_.link_mbps / std::max(active_, 1U));
    share.rate_mbps = share.cap_mbps = mbps;
    share.announce = !entry.asks && entry.active;
    if (entry.asks) {
      // An equal part of the room for each that asks at this time.
      const auto sharers = static_cast<std::int64_t>(ready_.size() - i);
      const std::int64_t part = std::max<std::int64_t>(
          room_bytes_ / sharers, std::min<std::int64_t>(room_bytes_, params_.packet_bytes));
      share.answers_start = true;
      share.start_bytes = static_cast<std::uint32_t>(
          std::clamp<std::int64_t>(part, 0, static_cast<std::int64_t>(entry.start_bytes)));
      room_bytes_ -= share.start_bytes;
    }
    entry.told = active_;
    entry.asks = entry.due = false;
    out[i] = {ready_[i], share};
  }
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(n));
  return n;
}

std::string EqdsSender::check_invariants(Nanos) const {
  const auto fault = [](const char* what, std::uint64_t a, std::uint64_t b) {
    return "eqds arbiter: " + std::string(what) + ": " + std::to_string(a) + " against " +
           std::to_string(b);
  };
  if (room_bytes_ < 0 || room_bytes_ > most()) {
    return fault("speculative room", static_cast<std::uint64_t>(room_bytes_),
                 params_.first_window_bytes);
  }
  std::uint64_t active = 0;
  std::uint64_t due = 0;
  for (const Entry& entry : entries_) {
    active += entry.active ? 1 : 0;
    due += entry.due ? 1 : 0;
  }
  if (active != active_) return fault("active contexts", active, active_);
  if (due != ready_.size()) return fault("contexts to be told", due, ready_.size());
  return {};
}

}  // namespace paceline::cc
