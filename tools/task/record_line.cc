#include "tools/task/record_line.h"

#include <fmt/format.h>

#include <charconv>

#include "dataplane/base/hash.h"

namespace paceline::tools {

namespace {

constexpr std::string_view kCheck = R"(,"check":")";
constexpr std::string_view kEnd = R"("})";
constexpr std::size_t kHexDigits = 16;

// Takes `word` from the front of `text`.
bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

bool take_hex(std::string_view& text, std::uint64_t& out) {
  if (text.size() < kHexDigits) return false;
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (text.substr(0, kHexDigits).find_first_not_of(kDigits) != std::string_view::npos) return false;
  const char* const end = text.data() + kHexDigits;
  if (std::from_chars(text.data(), end, out, 16).ptr != end) return false;
  text.remove_prefix(kHexDigits);
  return true;
}

bool take_number(std::string_view& text, std::size_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

std::string record_line(const RecordLine& line) {
  std::string text =
      fmt::format(R"({{"program":"{:016x}","plan":"{:016x}","task":{},"key":"{:016x}","record":{})",
                  line.program, line.plan, line.task, line.key, line.record);
  const std::uint64_t check = ContentHash().text(text).value();
  text += fmt::format("{}{:016x}{}\n", kCheck, check, kEnd);
  return text;
}

std::string parse_record_line(std::string_view text, RecordLine& out) {
  constexpr std::size_t kTail = kCheck.size() + kHexDigits + kEnd.size();
  constexpr std::string_view kStart = R"({"program":")";
  if (!text.starts_with(kStart)) return "is not a record of a task";
  if (text.size() < kStart.size() + kTail) return "is cut off";
  std::string_view tail = text.substr(text.size() - kTail);
  std::uint64_t check = 0;
  if (!take_word(tail, kCheck) || !take_hex(tail, check) || tail != kEnd) return "is cut off";
  const std::string_view checked = text.substr(0, text.size() - kTail);
  if (ContentHash().text(checked).value() != check) {
    return "was changed after it was written: its checksum is of another text";
  }
  std::string_view rest = checked.substr(kStart.size());
  if (!take_hex(rest, out.program) || !take_word(rest, R"(","plan":")") ||
      !take_hex(rest, out.plan) || !take_word(rest, R"(","task":)") ||
      !take_number(rest, out.task) || !take_word(rest, R"(,"key":")") || !take_hex(rest, out.key) ||
      !take_word(rest, R"(","record":)") || rest.empty()) {
    return "is not a record of a task";
  }
  out.record = rest;
  return {};
}

}  // namespace paceline::tools
