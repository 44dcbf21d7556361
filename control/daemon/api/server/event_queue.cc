#include "control/daemon/api/server/event_queue.h"

#include <utility>

namespace paceline::daemon {

namespace {

std::string event_text(std::uint64_t number, std::string_view topic, const Json& data) {
  // dump() writes no line ends, so data is one line.
  std::string text = "id: " + std::to_string(number) + "\nevent: ";
  text += topic;
  text += "\ndata: ";
  text += data.dump(-1, ' ', true, Json::error_handler_t::replace);
  text += "\n\n";
  return text;
}

}  // namespace

void EventQueue::push(std::string_view topic, const Json& data) {
  if (overflowed_) return;
  std::string text = event_text(++number_, topic, data);
  if (waiting_.size() < most_events_ && bytes_ + text.size() <= most_bytes_) {
    bytes_ += text.size();
    waiting_.push_back(std::move(text));
    return;
  }
  overflowed_ = true;
  const std::size_t lost = waiting_.size() + 1;
  waiting_.clear();
  waiting_.push_back(event_text(
      number_, "dropped",
      Json{{"reason", "this listener did not keep up; connect again"}, {"events_lost", lost}}));
  bytes_ = waiting_.back().size();
}

std::string EventQueue::take() {
  std::string text;
  text.reserve(bytes_);
  for (const std::string& event : waiting_) text += event;
  waiting_.clear();
  bytes_ = 0;
  return text;
}

}  // namespace paceline::daemon
