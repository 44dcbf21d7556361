#include "control/daemon/api/target.h"

#include <algorithm>
#include <cstddef>

#include "dataplane/base/text/printable.h"

namespace paceline::daemon {

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

enum class Part { path, query };

// Decodes %XX. Returns an error, or an empty text.
std::string decode(std::string_view text, Part part, std::string& out) {
  out.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return "target: " + in_quotes(text) + ": '%' is followed by two hexadecimal digits";
      }
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && part == Part::query) {
      c = ' ';
    }
    if (is_control(c)) return "target: " + in_quotes(text) + ": control characters are not allowed";
    out += c;
  }
  if (!is_utf8(out)) return "target: " + in_quotes(text) + " is not UTF-8";
  return {};
}

std::string read_query(std::string_view text, Target& out) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    std::pair<std::string, std::string> decoded;
    std::string wrong = decode(pair.substr(0, equals), Part::query, decoded.first);
    if (wrong.empty() && equals < pair.size()) {
      wrong = decode(pair.substr(equals + 1), Part::query, decoded.second);
    }
    if (!wrong.empty()) return wrong;
    out.query.push_back(std::move(decoded));
  }
  return {};
}

}  // namespace

std::string read_target(std::string_view target, Target& out) {
  out = {};
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    target.remove_prefix(std::min(target.find_first_of("/?", scheme.size()), target.size()));
    if (target.empty()) target = "/";
    break;
  }
  if (!target.starts_with('/')) {
    return "target: " + in_quotes(target) + " does not begin with '/'";
  }
  const std::size_t question = std::min(target.find('?'), target.size());
  std::string_view path = target.substr(1, question - 1);
  for (;;) {
    const std::size_t end = std::min(path.find('/'), path.size());
    std::string segment;
    std::string wrong = decode(path.substr(0, end), Part::path, segment);
    if (!wrong.empty()) return wrong;
    out.segments.push_back(std::move(segment));
    if (end == path.size()) break;
    path.remove_prefix(end + 1);
  }
  return question == target.size() ? std::string{} : read_query(target.substr(question + 1), out);
}

std::string percent_encoded(std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool unreserved = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                            (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_' || c == '~';
    if (unreserved) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', kDigits[byte / 16], kDigits[byte % 16]};
    }
  }
  return out;
}

}  // namespace paceline::daemon
