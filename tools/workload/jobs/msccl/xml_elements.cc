#include "tools/workload/jobs/msccl/xml_elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace paceline::workload {

namespace {

constexpr std::size_t kDeepestXml = 64;
constexpr std::size_t kMostAttributes = 64;

bool begins_xml_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
}
bool in_xml_name(char c) {
  return begins_xml_name(c) || (c >= '0' && c <= '9') || c == '-' || c == '.';
}
bool is_xml_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

}  // namespace

bool XmlReader::fail(std::string what) { return fail(place(), std::move(what)); }

bool XmlReader::fail(const XmlPlace& place, std::string what) {
  error_place_ = place;
  error_ = std::move(what);
  return false;
}

void XmlReader::advance(std::size_t count) {
  for (; count != 0; --count, ++at_) {
    if (text_[at_] != '\n') continue;
    ++line_;
    line_begin_ = at_ + 1;
  }
}

bool XmlReader::skip_until(std::string_view end, std::string_view what) {
  const std::size_t found = text_.find(end, at_);
  if (found == std::string_view::npos) {
    return fail(fmt::format("{} has no end: expected {}", what, end));
  }
  advance(found + end.size() - at_);
  return true;
}

void XmlReader::skip_space() {
  while (at_ < text_.size() && is_xml_space(text_[at_])) advance(1);
}

// Space, comments and processing instructions.
bool XmlReader::skip_between() {
  for (;;) {
    skip_space();
    if (here("<!--")) {
      if (!skip_until("-->", "this comment")) return false;
    } else if (here("<?")) {
      if (!skip_until("?>", "this instruction")) return false;
    } else {
      return true;
    }
  }
}

bool XmlReader::next(XmlElement& element) {
  if (!error_.empty()) return false;
  if (std::exchange(closes_next_, false)) {
    element = {true, open_.back(), {}, place()};
    open_.pop_back();
    done_ = open_.empty();
    return true;
  }
  if (!skip_between()) return false;
  if (at_ == text_.size()) {
    if (done_) return false;
    return fail(open_.empty()
                    ? "expected an element"
                    : fmt::format("<{}> has no end: expected </{}>", open_.back(), open_.back()));
  }
  if (now() != '<') return fail("expected <: there is no text between elements");
  if (done_) return fail("expected the end of the file: one element is the outermost");
  element = {false, {}, {}, place()};
  advance(1);
  if (now() != '/') return start(element);
  advance(1);
  return end(element);
}

bool XmlReader::name(std::string_view& out) {
  if (!begins_xml_name(now())) return fail("expected a name");
  const std::size_t begin = at_;
  while (in_xml_name(now())) advance(1);
  out = text_.substr(begin, at_ - begin);
  return true;
}

bool XmlReader::start(XmlElement& element) {
  if (!name(element.name)) return false;
  if (open_.size() == kDeepestXml) {
    return fail(element.place, fmt::format("nested deeper than {} elements", kDeepestXml));
  }
  for (;;) {
    const std::size_t before = at_;
    skip_space();
    if (now() == '>' || here("/>")) break;
    if (at_ == before) return fail("expected a blank, > or />");
    if (!attribute(element)) return false;
  }
  open_.push_back(element.name);
  closes_next_ = now() == '/';
  advance(closes_next_ ? 2 : 1);
  return true;
}

bool XmlReader::end(XmlElement& element) {
  element.closes = true;
  if (!name(element.name)) return false;
  if (open_.empty() || open_.back() != element.name) {
    return fail(element.place,
                fmt::format("</{}>: expected {}", element.name,
                            open_.empty() ? "an element" : fmt::format("</{}>", open_.back())));
  }
  skip_space();
  if (now() != '>') return fail("expected >");
  advance(1);
  open_.pop_back();
  done_ = open_.empty();
  return true;
}

bool XmlReader::attribute(XmlElement& element) {
  if (element.attributes.size() == kMostAttributes) {
    return fail(fmt::format("more than {} attributes", kMostAttributes));
  }
  XmlAttribute out;
  out.place = place();
  if (!name(out.name)) return false;
  const auto same = [&](const XmlAttribute& other) { return other.name == out.name; };
  if (std::any_of(element.attributes.begin(), element.attributes.end(), same)) {
    return fail(out.place, fmt::format("{} is given twice", out.name));
  }
  skip_space();
  if (now() != '=') return fail(fmt::format("expected = behind {}", out.name));
  advance(1);
  skip_space();
  if (!value(out.value)) return false;
  element.attributes.push_back(std::move(out));
  return true;
}

bool XmlReader::value(std::string& out) {
  const char quote = now();
  if (quote != '"' && quote != '\'') return fail("expected a value in quotes");
  const XmlPlace begin = place();
  advance(1);
  while (now() != quote) {
    if (at_ == text_.size()) return fail(begin, "this value has no end");
    if (now() == '<' || now() == '\0') return fail("expected &lt;, text or the closing quote");
    if (now() == '&') {
      if (!entity(out)) return false;
    } else {
      out.push_back(now());
      advance(1);
    }
  }
  advance(1);
  return true;
}

bool XmlReader::entity(std::string& out) {
  constexpr std::pair<std::string_view, char> kEntities[] = {
      {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
  for (const auto& [text, c] : kEntities) {
    if (!here(text)) continue;
    out.push_back(c);
    advance(text.size());
    return true;
  }
  return fail("expected &lt; &gt; &amp; &quot; or &apos;");
}

}  // namespace paceline::workload
