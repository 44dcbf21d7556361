#include "cc/plugin/rates/uplink.h"

#include <algorithm>
#include <bit>

#include "cc/param_block.h"
#include "cc/plugin/plugin.h"
#include "cc/plugin/timed.h"
#include "cc/registry.h"

namespace paceline::cc::plugin {
namespace {

std::uint32_t link_mbps_of(const PluginParams& p) {
  return static_cast<std::uint32_t>(p.link_bps / 1'000'000);
}

// Worth a round: all but a backlog that has become a little less.
bool tells_more(const UplinkWant& now, const UplinkWant& before) {
  if (now.active != before.active) return true;
  UplinkWant other = before;
  other.left_bytes = now.left_bytes;
  return now.active &&
         (now != other || std::bit_width(now.left_bytes) != std::bit_width(before.left_bytes));
}

}  // namespace

PluginUplink::PluginUplink(const paceline_cc_rates& rates, const PluginParams& params)
    : rates_(rates),
      params_(params),
      guard_(params.guard != nullptr ? params.guard : &own_guard_),
      port_(rates.uplink_bytes),
      states_(rates.uplink_context_bytes) {
  port_.begin(0);
}

void PluginUplink::set_params(const ParamBlock& params) {
  params_ = params.as<PluginParams>();
  dirty_ = true;
}

void PluginUplink::reset_share(Entry& entry) const {
  entry.share = {};
  entry.share.rate_mbps = entry.share.cap_mbps = link_mbps_of(params_);
}

void PluginUplink::grow(std::uint32_t context) {
  listed_.grow(context);
  while (entries_.size() <= context) {
    const auto number = static_cast<std::uint32_t>(entries_.size());
    states_.begin(number);
    reset_share(entries_.emplace_back());
  }
}

void PluginUplink::update(Nanos, std::uint32_t context, const UplinkWant& want) {
  if (context >= entries_.size()) grow(context);
  Entry& entry = entries_[context];
  if (want.asks_start && !entry.asking) {
    entry.asking = true;
    ++asking_;
  }
  dirty_ = dirty_ || tells_more(want, entry.want);
  if (!want.active && entry.want.active) reset_share(entry);
  entry.want = want;
  listed_.put(context, want.active || entry.asking);
}

void PluginUplink::forget(Nanos now, std::uint32_t context) {
  if (context >= entries_.size()) return;
  Entry& entry = entries_[context];
  update(now, context, UplinkWant{});
  asking_ -= entry.asking ? 1 : 0;
  entry.asking = false;
  listed_.put(context, false);
  reset_share(entry);
  states_.begin(context);
  // Pending notices must not reach the next owner of the number.
  const auto first = ready_.begin() + static_cast<std::ptrdiff_t>(ready_head_);
  ready_.erase(std::remove(first, ready_.end(), context), ready_.end());
}

void PluginUplink::show(std::uint32_t context) {
  Entry& entry = entries_[context];
  entry.view.number = context;
  entry.view.want = &entry.shown;
  entry.view.share = &entry.share;
  entry.view.state = states_.at(context);
  const UplinkWant& w = entry.want;
  entry.shown = {};
  entry.shown.left_bytes = w.left_bytes;
  entry.shown.limit_mbps = w.limit_mbps;
  entry.shown.start_bytes = w.start_bytes;
  entry.shown.active = w.active ? 1 : 0;
  entry.shown.asks_start = entry.asking ? 1 : 0;
  entry.shown.awaits_grant = w.awaits_grant ? 1 : 0;
  entry.shown.weight = w.weight;
  entry.share.start_bytes = 0;
  entry.share.answers_start = 0;
  entry.share.announce = 0;
  entry.view.tell = 0;
}

// Takes what the round says about a context.
void PluginUplink::take(std::uint32_t context) {
  Entry& entry = entries_[context];
  paceline_cc_share& share = entry.share;
  const std::uint32_t link = link_mbps_of(params_);
  bool clamped = share.start_bytes > entry.want.start_bytes;
  share.start_bytes = std::min(share.start_bytes, entry.want.start_bytes);
  bool nonsense = share.announce > 1 || entry.view.tell > 1;
  for (std::uint32_t* const rate : {&share.rate_mbps, &share.cap_mbps}) {
    if (*rate <= link) continue;
    // A context without a bound of its own may be told so.
    const bool free = *rate == PACELINE_CC_NO_CAP;
    nonsense = nonsense || (!free && *rate / kSenseFactor > link);
    clamped = clamped || !free;
    *rate = link;
  }
  if (nonsense) {
    guard_->count_nonsense();
  } else if (clamped) {
    guard_->count_clamped();
  }
  if (entry.view.tell == 0 && !entry.asking) return;
  share.answers_start = entry.asking ? 1 : 0;
  ready_.push_back(context);
  asking_ -= entry.asking ? 1 : 0;
  entry.asking = false;
  listed_.put(context, entry.want.active);
}

void PluginUplink::run_round(std::int64_t now) {
  shown_.clear();
  listed_.each([this](std::uint32_t context) {
    show(context);
    shown_.push_back(&entries_[context].view);
  });
  dirty_ = false;
  paceline_cc_uplink uplink{};
  uplink.now_ns = now;
  uplink.state = port_.at(0);
  uplink.derived = params_.derived;
  uplink.contexts = shown_.data();
  uplink.context_count = static_cast<std::uint32_t>(shown_.size());
  uplink.rest_ns = now;
  uplink.next_ns = PACELINE_CC_NEVER;
  timed_by(*guard_, [&] { rates_.on_uplink(&uplink); });
  bool kept = port_.intact(0);
  listed_.each([&](std::uint32_t context) { kept = kept && states_.intact(context); });
  if (!kept) guard_->quarantine(Offence::overrun);
  listed_.each([this](std::uint32_t context) { take(context); });
  rest_at_ = std::clamp(uplink.rest_ns, now, now + kLongestRestNs);
  next_at_ = uplink.next_ns;
  if (next_at_ < now + kLeastAheadNs) {
    guard_->count_clamped();
    next_at_ = now + kLeastAheadNs;
  }
}

std::size_t PluginUplink::poll(Nanos now, std::span<ShareOutput> out) {
  const bool due = asking_ != 0 || (dirty_ && now.count >= rest_at_) || now.count >= next_at_;
  if (due && ready_head_ == ready_.size() && !left()) run_round(now.count);
  if (left()) {  // its contexts are told otherwise
    ready_.clear();
    ready_head_ = 0;
  }
  std::size_t n = 0;
  while (n < out.size() && ready_head_ < ready_.size()) {
    const std::uint32_t context = ready_[ready_head_++];
    const paceline_cc_share& share = entries_[context].share;
    UplinkShare said;
    said.rate_mbps = share.rate_mbps;
    said.cap_mbps = share.cap_mbps;
    said.start_bytes = share.start_bytes;
    said.answers_start = share.answers_start != 0;
    said.announce = share.announce != 0;
    out[n++] = {context, said};
  }
  if (ready_head_ == ready_.size()) {
    ready_.clear();
    ready_head_ = 0;
  }
  return n;
}

Nanos PluginUplink::next_wake() const {
  if (left()) return kNeverNanos;
  if (ready_head_ < ready_.size() || asking_ != 0) return Nanos{0};
  return Nanos{dirty_ ? std::min(rest_at_, next_at_) : next_at_};
}

std::string PluginUplink::check_invariants(Nanos) const {
  std::uint32_t asking = 0;
  std::uint32_t listed = 0;
  for (std::uint32_t c = 0; c < entries_.size(); ++c) {
    const Entry& entry = entries_[c];
    asking += entry.asking ? 1 : 0;
    listed += entry.want.active || entry.asking ? 1 : 0;
    if (listed_.has(c) != (entry.want.active || entry.asking)) {
      return "plug-in uplink: context " + std::to_string(c) + " is listed wrongly";
    }
    if (entry.share.rate_mbps > link_mbps_of(params_)) {
      return "plug-in uplink: a share of " + std::to_string(entry.share.rate_mbps) + " Mb/s";
    }
  }
  if (asking != asking_ || listed != listed_.size()) return "plug-in uplink: counts differ";
  return {};
}

std::unique_ptr<UplinkArbiter> make_uplink(const ParamBlock& block) {
  const Plugin* const plugin = plugin_of(block.id);
  if (plugin == nullptr || plugin->rates.on_uplink == nullptr) return nullptr;
  return std::make_unique<PluginUplink>(plugin->rates, block.as<PluginParams>());
}

}  // namespace paceline::cc::plugin
