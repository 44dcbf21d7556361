// Writes JSON as text in the order of the calls. nlohmann-json, which reads these files, formats
// doubles its own way; here they are rounded first (number_text.h), and a record can stay on one
// line, so that files can be compared with diff.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::experiment {

class JsonWriter {
 public:
  enum class Layout : std::uint8_t { lines, compact };  // compact includes everything inside

  void begin_object(Layout layout = Layout::lines) { begin('{', layout); }
  void end_object() { end('}'); }
  void begin_array(Layout layout = Layout::lines) { begin('[', layout); }
  void end_array() { end(']'); }

  void key(std::string_view name);  // inside an object, before each value
  void value(std::string_view text);
  void value(double number);  // NaN gives null
  void value(std::uint64_t number);
  void value(bool truth);

  template <class T>
  void member(std::string_view name, const T& item) {
    key(name);
    value(item);
  }
  template <class List>
  void list(std::string_view name, const List& items, Layout layout = Layout::compact) {
    key(name);
    begin_array(layout);
    for (const auto& item : items) value(item);
    end_array();
  }

  // The finished text, ending in a newline; every begin must have had its end.
  std::string finish() &&;

 private:
  struct Level {
    bool compact;
    bool empty;
  };
  void separate();
  void begin(char bracket, Layout layout);
  void end(char bracket);

  std::string out_;
  std::vector<Level> levels_;
  bool after_key_ = false;
};

}  // namespace paceline::experiment
