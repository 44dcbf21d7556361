#include "control/daemon/api/client/event_parser.h"

namespace paceline::daemon {

bool EventParser::take(std::string_view bytes, const OnEvent& on_event) {
  for (const char c : bytes) {
    // Lines end with CR LF, LF or CR.
    const bool second_half = after_return_ && c == '\n';
    after_return_ = c == '\r';
    if (second_half) continue;
    if (c != '\n' && c != '\r') {
      line_ += c;
      if (line_.size() + data_.size() > kMostEvent) return false;
      continue;
    }
    if (!end_line(on_event)) return false;
  }
  return true;
}

bool EventParser::end_line(const OnEvent& on_event) {
  const std::string line = std::move(line_);
  line_.clear();
  if (line.empty()) {
    const std::string topic = std::move(topic_);
    const std::string data = std::move(data_);
    topic_.clear();
    data_.clear();
    return data.empty() || on_event(topic.empty() ? "message" : topic, data);
  }
  const std::size_t colon = line.find(':');
  if (colon == 0) return true;  // a comment
  const std::string_view name = std::string_view(line).substr(0, colon);
  std::string_view value;
  if (colon != std::string::npos) value = std::string_view(line).substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "event") {
    topic_ = value;
  } else if (name == "data") {
    if (!data_.empty()) data_ += '\n';
    data_ += value;
  }
  return true;
}

}  // namespace paceline::daemon
