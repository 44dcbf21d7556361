#include "cc/sird/sender.h"

#include "cc/param_block.h"

namespace paceline::cc {

void SirdSender::tell(std::uint32_t context) {
  Entry& e = entries_[context];
  if (e.due) return;
  e.due = true;
  due_.push_back(context);
}

void SirdSender::put(std::uint32_t context, const UplinkWant& want) {
  if (context >= entries_.size()) {
    entries_.resize(context + 1);
    due_.reserve(entries_.size());
  }
  Entry& e = entries_[context];
  if (e.credit != want.credit_bytes) {
    sum_ += want.credit_bytes;
    sum_ -= e.credit;
    holders_ += want.credit_bytes > 0 ? 1U : 0U;
    holders_ -= e.credit > 0 ? 1U : 0U;
    e.credit = want.credit_bytes;
    changed_ = true;
  }
  // A context that still runs another algorithm, during a migration, waits for this answer.
  if (want.asks_start) e.asks = true;
  if (e.asks || (e.credit > 0 && e.told != congested_)) tell(context);
}

void SirdSender::update(Nanos, std::uint32_t context, const UplinkWant& want) {
  put(context, want);
  entries_[context].known = true;
}

void SirdSender::forget(Nanos, std::uint32_t context) {
  if (context >= entries_.size()) return;
  put(context, UplinkWant{});
  Entry& e = entries_[context];
  e.known = false;
  e.told = false;
  e.asks = false;
}

void SirdSender::set_params(const ParamBlock& params) {
  params_ = params.as<SirdParams>();
  changed_ = true;
}

std::size_t SirdSender::poll(Nanos now, std::span<ShareOutput> out) {
  if (changed_ && now.count >= look_at_) {
    changed_ = false;
    look_at_ = now.count + params_.port.rtt_ns / 4 + 1;
    const bool congested = holders_ > 1 && sum_ > params_.threshold_bytes;
    if (congested != congested_) {
      congested_ = congested;
      for (std::uint32_t i = 0; i < entries_.size(); ++i) {
        if (entries_[i].told != congested && (entries_[i].credit > 0 || entries_[i].told)) tell(i);
      }
    }
  }
  std::size_t n = 0;
  while (n < out.size() && due_head_ < due_.size()) {
    const std::uint32_t context = due_[due_head_++];
    Entry& e = entries_[context];
    e.due = false;
    if (!e.known || (!e.asks && e.told == congested_)) continue;
    ShareOutput& o = out[n++];
    o = ShareOutput{};
    o.context = context;
    o.share.rate_mbps = o.share.cap_mbps = params_.port.link_mbps;
    o.share.answers_start = e.asks;
    o.share.congested = congested_;
    e.told = congested_;
    e.asks = false;
  }
  if (due_head_ == due_.size()) {
    due_.clear();
    due_head_ = 0;
  }
  return n;
}

Nanos SirdSender::next_wake() const {
  if (due_head_ < due_.size()) return Nanos{0};
  return changed_ ? Nanos{look_at_} : kNeverNanos;
}

std::string SirdSender::check_invariants(Nanos) const {
  std::uint64_t sum = 0;
  std::uint32_t holders = 0;
  for (const Entry& e : entries_) {
    sum += e.credit;
    holders += e.credit > 0 ? 1U : 0U;
  }
  if (sum == sum_ && holders == holders_) return {};
  return "credit piled up: " + std::to_string(sum) + " bytes, counted " + std::to_string(sum_);
}

}  // namespace paceline::cc
