#include "tools/collective/rank/part_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace paceline::rank {

namespace {

using workload::Transfer;

// A word: the slot of a part and a transfer, or that the next part of that slot may be sent.
constexpr std::uint32_t kClearToSend = 1U << 31;
constexpr std::uint32_t kSlotShift = 24;

std::uint32_t word_of(std::uint32_t slot, std::uint32_t transfer) {
  return slot << kSlotShift | transfer;
}

}  // namespace

PartRunner::PartRunner(const workload::Schedule& schedule, const PartCut& cut,
                       const SlotLayout& layout, const InPlace& in_place, std::uint32_t rank,
                       std::uint32_t window)
    : schedule_(schedule),
      cut_(cut),
      layout_(layout),
      in_place_(in_place),
      rank_(rank),
      window_(window),
      begun_(std::min<std::uint64_t>(window, cut.parts())),
      not_cleared_(schedule.ranks),
      cleared_(schedule.ranks) {
  list_transfers();
  list_waiters();
}

void PartRunner::list_transfers() {
  std::set<std::uint32_t> senders;
  for (std::uint32_t t = 0; t < schedule_.transfers.size(); ++t) {
    const Transfer& transfer = schedule_.transfers[t];
    if (transfer.from == rank_) own_.push_back(t);
    if (transfer.from == rank_ || transfer.to == rank_) ++finishes_;
    if (transfer.to != rank_ || transfer.from == rank_) continue;
    ++arrivals_;
    senders.insert(transfer.from);
  }
  senders_.assign(senders.begin(), senders.end());
}

void PartRunner::list_waiters() {
  first_waiter_.assign(schedule_.transfers.size() + 1, 0);
  for (const std::uint32_t t : own_) {
    for (const std::uint32_t w : schedule_.waits_of(schedule_.transfers[t])) ++first_waiter_[w + 1];
  }
  std::partial_sum(first_waiter_.begin(), first_waiter_.end(), first_waiter_.begin());
  waiters_.resize(first_waiter_.back());
  for (const std::uint32_t t : own_) {
    const bool to_other = schedule_.transfers[t].to != rank_;
    if (to_other && first_waiter_[t] < first_waiter_[t + 1]) sends_wait_for_sends_ = true;
  }
  std::vector<std::uint32_t> next(first_waiter_.begin(), first_waiter_.end() - 1);
  for (const std::uint32_t t : own_) {
    for (const std::uint32_t w : schedule_.waits_of(schedule_.transfers[t]))
      waiters_[next[w]++] = t;
  }
}

void PartRunner::run(CollectiveData& data, RankLink& link) {
  begin(data, link);
  std::vector<LinkEvent> events;
  while (!done()) {
    link.wait(events, wakes_by(), LinkTime::max());
    for (const LinkEvent& event : events) take(event);
  }
}

void PartRunner::begin(CollectiveData& data, RankLink& link) {
  data_ = &data;
  link_ = &link;
  // A rank that neither sends nor receives has nothing to do.
  ended_ = finishes_ == 0 ? cut_.parts() : 0;
  due_ = 0;
  if (done()) return;
  for (auto& slots : cleared_) slots.assign(window_, 1);
  for (std::uint64_t part = 0; part < begun_.size(); ++part) begin_part(part);
  begin_ready();
}

LinkWake PartRunner::wakes_by() const {
  return due_ > 0 && !sends_wait_for_sends_ ? LinkWake::arrival : LinkWake::any;
}

void PartRunner::begin_part(std::uint64_t part) {
  const auto slot = static_cast<std::uint32_t>(part % window_);
  Begun& begun = begun_[slot];
  begun.part = part;
  begun.unfinished = finishes_;
  due_ += arrivals_;
  begun.waits.resize(schedule_.transfers.size());
  begun.finished.assign(schedule_.transfers.size(), false);
  for (const std::uint32_t t : own_) {
    begun.waits[t] = schedule_.transfers[t].waits;
    if (begun.waits[t] == 0) ready_.push_back({slot, t});
  }
}

void PartRunner::end_part(std::uint32_t slot) {
  ++ended_;
  const std::uint64_t next = begun_[slot].part + window_;
  if (next >= cut_.parts()) return;
  begin_part(next);
  begun_[slot].unfinished += static_cast<std::uint32_t>(senders_.size());
  for (const std::uint32_t peer : senders_) {
    link_->tell({.peer = peer}, kClearToSend | slot << kSlotShift);
  }
}

void PartRunner::begin_ready() {
  while (!ready_.empty()) {
    const Step step = ready_.front();
    ready_.pop_front();
    begin_transfer(step);
  }
}

void PartRunner::begin_transfer(const Step& step) {
  const Transfer& transfer = schedule_.transfers[step.transfer];
  const std::uint64_t part = begun_[step.slot].part;
  if (transfer.to != rank_) {
    if (part / window_ < cleared_[transfer.to][step.slot]) return send_transfer(step);
    not_cleared_[transfer.to].push_back(step);
    return;
  }
  auto* const copy =
      reinterpret_cast<float*>(link_->staging() + layout_.send_slot(step.transfer, part));
  data_->read(transfer, part, copy);
  data_->write(transfer, part, copy);
  finish(step);
}

void PartRunner::send_transfer(const Step& step) {
  const Transfer& transfer = schedule_.transfers[step.transfer];
  const std::uint64_t part = begun_[step.slot].part;
  std::optional<std::uint64_t> from;
  if (in_place_.is_sent(step.transfer)) from = layout_.buffers().source_of(transfer, part);
  if (!from) {
    from = layout_.send_slot(step.transfer, part);
    data_->read(transfer, part, reinterpret_cast<float*>(link_->staging() + *from));
  }
  const std::uint64_t to =
      landing(step.transfer, part).value_or(layout_.receive_slot(step.transfer, part));
  link_->write({.peer = transfer.to}, *from, to, data_->elements_of(transfer, part) * sizeof(float),
               word_of(step.slot, step.transfer));
}

std::optional<std::uint64_t> PartRunner::landing(std::uint32_t transfer, std::uint64_t part) const {
  if (!in_place_.lands(transfer)) return std::nullopt;
  return layout_.buffers().target_of(schedule_.transfers[transfer], part);
}

void PartRunner::take(const LinkEvent& event) {
  if ((event.word & kClearToSend) != 0) {
    handle_word(event, (event.word & ~kClearToSend) >> kSlotShift);
  } else {
    handle_transfer(event, {event.word >> kSlotShift, event.word & (kMostTransfers - 1)});
  }
  begin_ready();
}

void PartRunner::handle_transfer(const LinkEvent& event, const Step& step) {
  if (event.arrived) {
    --due_;
    const std::uint64_t part = begun_[step.slot].part;
    if (!landing(step.transfer, part)) {
      const auto* const slot = reinterpret_cast<const float*>(
          link_->staging() + layout_.receive_slot(step.transfer, part));
      data_->write(schedule_.transfers[step.transfer], part, slot);
    }
  }
  finish(step);
}

void PartRunner::handle_word(const LinkEvent& event, std::uint32_t slot) {
  if (!event.arrived) {
    count_finished(slot);
    return;
  }
  ++cleared_[event.peer][slot];
  // Steps that are still not cleared come back to the list.
  std::vector<Step> steps;
  steps.swap(not_cleared_[event.peer]);
  ready_.insert(ready_.end(), steps.begin(), steps.end());
}

// A transfer has arrived here, or what this rank sent is acknowledged.
void PartRunner::finish(const Step& step) {
  Begun& begun = begun_[step.slot];
  begun.finished[step.transfer] = true;
  for (std::uint32_t i = first_waiter_[step.transfer]; i < first_waiter_[step.transfer + 1]; ++i) {
    if (--begun.waits[waiters_[i]] == 0) ready_.push_back({step.slot, waiters_[i]});
  }
  count_finished(step.slot);
}

void PartRunner::count_finished(std::uint32_t slot) {
  if (--begun_[slot].unfinished == 0) end_part(slot);
}

std::string PartRunner::waits_for() const {
  for (const Begun& begun : begun_) {
    if (begun.unfinished == 0) continue;
    for (std::uint32_t t = 0; t < schedule_.transfers.size(); ++t) {
      const Transfer& transfer = schedule_.transfers[t];
      if (begun.finished[t] || (transfer.from != rank_ && transfer.to != rank_)) continue;
      return fmt::format("part {} of {}: transfer {}, rank {} to rank {}, has not {}", begun.part,
                         cut_.parts(), t, transfer.from, transfer.to,
                         transfer.to == rank_ ? "arrived" : "been sent or acknowledged");
    }
  }
  return "words that parts may be sent are not acknowledged";
}

}  // namespace paceline::rank
