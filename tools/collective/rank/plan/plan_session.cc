#include "tools/collective/rank/plan/plan_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "tools/collective/rank/rank_error.h"

namespace paceline::rank {

namespace {

using Json = nlohmann::json;

// By then all ranks have been told of the beginning.
constexpr std::chrono::milliseconds kBeginAfter{5};
constexpr std::chrono::milliseconds kTellEvery{250};
constexpr std::size_t kRecordsOfLine = 2048;

}  // namespace

PlanPart receive_part(Meeting& meeting) {
  PlanPart part;
  try {
    while (!add_part_line(meeting.next(), part)) {
    }
  } catch (const Json::exception& error) {
    throw RankError(fmt::format("the plan: {}", error.what()));
  }
  return part;
}

Picos PlanSession::since_begin() const {
  const std::chrono::nanoseconds since = std::chrono::steady_clock::now() - begin_;
  return picos_from_nanos(since.count());
}

LinkTime PlanSession::next_wake() const {
  const Picos deadline = runner_.next_deadline();
  if (deadline == kNever) return next_tell_;
  return std::min(next_tell_, begin_ + std::chrono::nanoseconds(deadline.count / 1000 + 1));
}

void PlanSession::run() {
  begin_ = meeting_.wait_for_all() + kBeginAfter;
  next_tell_ = begin_;
  try {
    run_to_end();
  } catch (const RankError& error) {
    const auto wait = runner_.waits_for();
    if (!wait) throw;
    throw RankError(fmt::format("{}; {} of message {} is due", error.what(),
                                wait->arrival ? "the arrival" : "the acknowledgement",
                                wait->message));
  }
}

void PlanSession::run_to_end() {
  std::vector<LinkEvent> events;
  while (!runner_.done()) {
    runner_.begin_due(since_begin());
    tell_progress();
    link_.wait(events, LinkWake::any, next_wake());
    const Picos now = since_begin();
    for (const LinkEvent& event : events) runner_.take(now, event);
  }
}

void PlanSession::tell_progress() {
  const LinkTime now = std::chrono::steady_clock::now();
  if (now < next_tell_) return;
  next_tell_ = now + kTellEvery;
  Json message{{"finished", runner_.finished()}, {"later", runner_.next_deadline() != kNever}};
  const auto wait = runner_.finished() == told_ ? runner_.waits_for() : std::nullopt;
  if (wait) {
    message["waits_for"] = wait->message;
    message["arrival"] = wait->arrival;
  }
  told_ = runner_.finished();
  meeting_.send(message);
}

void PlanSession::report(const PlanPart& part) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < part.sends.size(); ++i) {
    const PlanRecord& r = runner_.records()[i];
    rows.push_back({part.sends[i].id, r.ready.count, r.completed.count, r.cause});
    if (rows.size() < kRecordsOfLine && i + 1 < part.sends.size()) continue;
    meeting_.send({{"records", rows}});
    rows.clear();
  }
  const PlanTotals& t = runner_.totals();
  meeting_.send({{"totals",
                  {{"sent", t.sent},
                   {"received", t.received},
                   {"sent_bytes", t.sent_bytes},
                   {"received_bytes", t.received_bytes},
                   {"wrong_messages", t.wrong_messages},
                   {"wrong_bytes", t.wrong_bytes},
                   {"wrong_message", t.wrong_message},
                   {"first_byte", t.first_wrong.first},
                   {"expected", t.first_wrong.expected},
                   {"got", t.first_wrong.got}}}});
}

}  // namespace paceline::rank
