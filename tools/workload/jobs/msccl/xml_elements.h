// Elements and attributes of an XML text, one after the other, each with its line and column. A
// strict reader of what files of numbers need: no text between elements, no document type, no
// CDATA, of entities the five that XML defines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::workload {

struct XmlPlace {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
};

struct XmlAttribute {
  std::string_view name;
  std::string value;
  XmlPlace place;
};

struct XmlElement {
  bool closes = false;  // an end tag, or the end of <name/>, which has no attributes
  std::string_view name;
  std::vector<XmlAttribute> attributes;
  XmlPlace place;
};

// Walks a text; it must outlive the reader.
class XmlReader {
 public:
  explicit XmlReader(std::string_view text) : text_(text) {}

  // The next start or end of an element; false at the end of the text or at an error. There is one
  // outermost element, and every start has its end.
  bool next(XmlElement& element);

  const std::string& error() const { return error_; }  // "": none
  const XmlPlace& error_place() const { return error_place_; }
  XmlPlace place() const { return {line_, static_cast<std::uint32_t>(at_ - line_begin_ + 1)}; }

 private:
  bool fail(std::string what);
  bool fail(const XmlPlace& place, std::string what);
  bool skip_until(std::string_view end, std::string_view what);
  void advance(std::size_t count);
  void skip_space();
  bool skip_between();
  bool name(std::string_view& out);
  bool start(XmlElement& element);
  bool end(XmlElement& element);
  bool attribute(XmlElement& element);
  bool value(std::string& out);
  bool entity(std::string& out);
  char now() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool here(std::string_view what) const { return text_.substr(at_, what.size()) == what; }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_begin_ = 0;
  std::uint32_t line_ = 1;
  std::string error_;
  XmlPlace error_place_;
  std::vector<std::string_view> open_;
  bool closes_next_ = false;  // <name/>: its end comes next
  bool done_ = false;         // behind the outermost element
};

}  // namespace paceline::workload
