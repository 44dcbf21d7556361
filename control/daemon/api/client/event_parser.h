// Server-sent events out of the bytes that come (WHATWG HTML, section 9.2.6), for clients.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace paceline::daemon {

class EventParser {
 public:
  using OnEvent = std::function<bool(std::string_view topic, std::string_view data)>;

  // False: the callback returned false, or an event is longer than `kMostEvent`.
  bool take(std::string_view bytes, const OnEvent& on_event);

  static constexpr std::size_t kMostEvent = 16 << 20;

 private:
  bool end_line(const OnEvent& on_event);

  std::string line_;
  std::string topic_;
  std::string data_;
  bool after_return_ = false;
};

}  // namespace paceline::daemon
