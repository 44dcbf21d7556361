#include "tools/workload/inference/azure_time.h"

#include <algorithm>
#include <chrono>

#include "tools/workload/inference/request_trace.h"

namespace paceline::workload {

namespace {

bool is_time_digit(char c) { return c >= '0' && c <= '9'; }

// A pattern's 'd' is a digit, other characters are themselves.
bool fits_time(std::string_view text, std::string_view pattern) {
  return std::equal(text.begin(), text.end(), pattern.begin(), pattern.end(),
                    [](char c, char p) { return p == 'd' ? is_time_digit(c) : c == p; });
}

// `digits` has digits only.
int digits_value(std::string_view digits) {
  int value = 0;
  for (const char c : digits) value = value * 10 + (c - '0');
  return value;
}

}  // namespace

std::optional<std::int64_t> parse_azure_time(std::string_view text) {
  constexpr std::string_view kWhole = "dddd-dd-dd dd:dd:dd";
  constexpr std::size_t kDigits = 7;
  if (!fits_time(text.substr(0, kWhole.size()), kWhole)) return std::nullopt;
  const std::chrono::year_month_day day{
      std::chrono::year(digits_value(text.substr(0, 4))),
      std::chrono::month(static_cast<unsigned>(digits_value(text.substr(5, 2)))),
      std::chrono::day(static_cast<unsigned>(digits_value(text.substr(8, 2))))};
  const int hour = digits_value(text.substr(11, 2));
  const int minute = digits_value(text.substr(14, 2));
  const int second = digits_value(text.substr(17, 2));
  if (!day.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  std::string_view fraction = text.substr(kWhole.size());
  std::int64_t ticks = 0;
  if (!fraction.empty()) {
    if (fraction.front() != '.') return std::nullopt;
    fraction.remove_prefix(1);
    if (fraction.empty() || fraction.size() > kDigits ||
        !std::all_of(fraction.begin(), fraction.end(), is_time_digit)) {
      return std::nullopt;
    }
    ticks = digits_value(fraction);
    for (std::size_t i = fraction.size(); i < kDigits; ++i) ticks *= 10;
  }
  const std::int64_t days = std::chrono::sys_days(day).time_since_epoch().count();
  return (((days * 24 + hour) * 60 + minute) * 60 + second) * kTicksPerSecond + ticks;
}

}  // namespace paceline::workload
