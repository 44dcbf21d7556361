#include "dataplane/service/adapters/worker_session.h"

#include <infiniband/verbs.h>

#include <algorithm>
#include <bit>

#include "dataplane/service/adapters/notifier.h"

namespace paceline::service {

WorkerSession::WorkerSession(const WorkerSessionSetup& setup)
    : s_(setup), bells_(attach::kDoorbells) {}

void WorkerSession::notify(std::uint32_t event, std::uint32_t port) const {
  write_notice(s_.notices, {event, port});
}

void WorkerSession::add(PairAdapter& pair, std::uint32_t bell) {
  pairs_.push_back(&pair);
  bells_[bell] = {&pair, nullptr};
}

void WorkerSession::remove(PairAdapter& pair, std::uint32_t bell) {
  bells_[bell] = {};
  std::erase(pairs_, &pair);
}

void WorkerSession::add(SharedReceives& receives, std::uint32_t bell) {
  shared_.push_back(&receives);
  bells_[bell] = {nullptr, &receives};
}

void WorkerSession::remove(SharedReceives& receives, std::uint32_t bell) {
  bells_[bell] = {};
  std::erase(shared_, &receives);
}

void WorkerSession::add(CompletionAdapter& queue) { queues_.push_back(&queue); }

void WorkerSession::remove(CompletionAdapter& queue) { std::erase(queues_, &queue); }

bool WorkerSession::pump(Picos now) {
  bool progress = false;
  std::array<std::uint32_t, 64> ready;
  for (std::size_t n = 0; (n = s_.memory->take_ready(ready)) != 0;) {
    for (std::size_t i = 0; i < n; ++i) {
      // Only its own queue pairs have waited for its memory.
      if (s_.pairs->find(ready[i]) != nullptr) s_.engine->memory_ready(now, ready[i]);
    }
    progress = true;
    if (n < ready.size()) break;
  }
  attach::take_rung(*s_.bells, [this](std::uint32_t bell) { mark(bell); });
  starved_ = false;
  if (pending_words_ == 0) return progress;

  const std::uint32_t granted = std::min(kMessagesPerTurn, s_.budget->available(now));
  std::uint32_t budget = granted;
  // Continues where the turn before ended, so that all get their turn even if each takes long.
  for (std::uint32_t i = 0; i < attach::kDoorbellWords; ++i) {
    const std::uint32_t word = (first_word_ + i) % attach::kDoorbellWords;
    if ((pending_words_ >> word & 1U) == 0) continue;
    progress |= pump_word(now, word, budget);
    if (budget == 0) {
      first_word_ = (word + 1) % attach::kDoorbellWords;
      break;
    }
  }
  const std::uint32_t used = granted - budget;
  starved_ = granted != kMessagesPerTurn && budget == 0;
  if (used != 0) s_.budget->spend(now, used);
  messages_.store(messages() + used, std::memory_order_relaxed);
  return progress;
}

bool WorkerSession::pump_word(Picos now, std::uint32_t word, std::uint32_t& budget) {
  bool progress = false;
  for (std::uint64_t bits = pending_[word]; bits != 0; bits &= bits - 1) {
    const std::uint32_t bell = word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
    budget -= pump_bell(now, bell, budget, progress);
  }
  if (pending_[word] == 0) pending_words_ &= ~(std::uint64_t{1} << word);
  return progress;
}

std::uint32_t WorkerSession::pump_bell(Picos now, std::uint32_t bell, std::uint32_t budget,
                                       bool& progress) {
  const Bell target = bells_[bell];
  Pumped pumped;
  if (target.pair != nullptr) {
    pumped = target.pair->pump(now, std::min(budget, kMessagesPerQueue));
    progress |= pumped.any;
    if (target.pair->report_failed()) {
      write_notice(s_.notices, {IBV_EVENT_QP_FATAL, target.pair->handle()});
      progress = true;
    }
  } else if (target.receives != nullptr) {
    progress |= target.receives->pump();
    if (target.receives->report_broken()) {
      write_notice(s_.notices, {IBV_EVENT_SRQ_ERR, target.receives->handle()});
    }
  }
  if (!pumped.more) pending_[bell / 64] &= ~(std::uint64_t{1} << bell % 64);
  return pumped.messages;
}

bool WorkerSession::settle() {
  bool any = false;
  for (CompletionAdapter* queue : queues_) {
    if (!queue->idle()) any |= queue->drain(*s_.pairs);
    if (queue->overrun() && queue->report_overrun()) [[unlikely]] {
      write_notice(s_.notices, {IBV_EVENT_CQ_ERR, queue->handle()});
      s_.engine->overrun(queue->queue());  // which fails its queue pairs
      disturbed_ = true;
    }
  }
  for (SharedReceives* receives : shared_) {
    if (receives->settle()) {
      write_notice(s_.notices, {IBV_EVENT_SRQ_LIMIT_REACHED, receives->handle()});
    }
  }
  return any;
}

Picos WorkerSession::next_deadline(Picos now) const {
  Picos next = starved_ ? s_.budget->next(now) : kNever;
  for (const CompletionAdapter* queue : queues_) {
    if (!queue->idle()) next = earlier(next, now + picos_from_micros(1000));
  }
  return next;
}

}  // namespace paceline::service
