#include "tools/workload/schedules/symbol_run.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

namespace paceline::workload {

SymbolRun::SymbolRun(const Schedule& schedule, std::uint64_t seed)
    : schedule_(schedule),
      store_(schedule),
      random_(seed),
      put_off_(2 + random_.below(15)),
      waits_left_(schedule.transfers.size()),
      first_waiter_(schedule.transfers.size() + 1),
      states_(schedule.transfers.size(), State::waits),
      messages_(schedule.transfers.size()) {
  list_waiters();
}

std::string SymbolRun::run() {
  for (std::uint32_t t = 0; t < schedule_.transfers.size(); ++t) {
    if (waits_left_[t] == 0) schedule_event(t);
  }
  while (!events_.empty() || !late_events_.empty()) {
    const std::uint32_t number = draw_event();
    const std::string error = next_event_of(number);
    if (!error.empty()) {
      const Transfer& t = schedule_.transfers[number];
      return fmt::format("transfer {} (rank {} to rank {}): {}", number, t.from, t.to, error);
    }
  }
  return store_.result_error();
}

void SymbolRun::list_waiters() {
  const auto& transfers = schedule_.transfers;
  for (const Transfer& t : transfers) {
    for (const std::uint32_t wait : schedule_.waits_of(t)) ++first_waiter_[wait + 1];
  }
  std::partial_sum(first_waiter_.begin(), first_waiter_.end(), first_waiter_.begin());
  waiters_.resize(first_waiter_.back());
  std::vector<std::uint32_t> next(first_waiter_.begin(), first_waiter_.end() - 1);
  for (std::uint32_t t = 0; t < transfers.size(); ++t) {
    waits_left_[t] = transfers[t].waits;
    for (const std::uint32_t wait : schedule_.waits_of(transfers[t])) waiters_[next[wait]++] = t;
  }
}

void SymbolRun::schedule_event(std::uint32_t transfer) {
  (random_.below(put_off_) == 0 ? late_events_ : events_).push_back(transfer);
}

std::uint32_t SymbolRun::draw_event() {
  std::vector<std::uint32_t>& from = events_.empty() ? late_events_ : events_;
  std::swap(from[random_.below(from.size())], from.back());
  const std::uint32_t transfer = from.back();
  from.pop_back();
  return transfer;
}

std::string SymbolRun::next_event_of(std::uint32_t number) {
  const Transfer& transfer = schedule_.transfers[number];
  std::string error;
  switch (states_[number]) {
    case State::waits:
      error = store_.read(transfer, messages_[number]);
      states_[number] = State::under_way;
      schedule_event(number);
      break;
    case State::under_way:
      error = store_.write(transfer, messages_[number]);
      messages_[number] = {};
      states_[number] = State::arrived;
      schedule_event(number);
      release_waiters(number, State::arrived);
      break;
    case State::arrived:
      states_[number] = State::complete;
      release_waiters(number, State::complete);
      break;
    case State::complete:
      break;
  }
  return error;
}

// The receiver's transfers wait for the arrival, the sender's for the completion.
void SymbolRun::release_waiters(std::uint32_t transfer, State reached) {
  for (std::uint32_t i = first_waiter_[transfer]; i < first_waiter_[transfer + 1]; ++i) {
    const std::uint32_t waiter = waiters_[i];
    const bool receives = schedule_.transfers[waiter].from == schedule_.transfers[transfer].to;
    if (receives != (reached == State::arrived)) continue;
    if (--waits_left_[waiter] == 0) schedule_event(waiter);
  }
}

}  // namespace paceline::workload
