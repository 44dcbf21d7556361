// Events on their way to one listener, as the text of server-sent events (WHATWG HTML, section
// 9.2). Bounded: a listener that reads too slowly gets a last event, "dropped".
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "control/daemon/api/endpoint.h"

namespace paceline::daemon {

class EventQueue {
 public:
  EventQueue(std::size_t most_events, std::size_t most_bytes)
      : most_events_(most_events), most_bytes_(most_bytes) {}

  // Ignored once it overflowed: what had not been sent is then replaced by the last event.
  void push(std::string_view topic, const Json& data);

  bool empty() const { return waiting_.empty(); }
  // No event is added after those that wait.
  bool overflowed() const { return overflowed_; }
  std::size_t size() const { return waiting_.size(); }
  // Takes all waiting events, as one text.
  std::string take();

 private:
  std::size_t most_events_;
  std::size_t most_bytes_;
  std::deque<std::string> waiting_;
  std::size_t bytes_ = 0;
  std::uint64_t number_ = 0;
  bool overflowed_ = false;
};

}  // namespace paceline::daemon
