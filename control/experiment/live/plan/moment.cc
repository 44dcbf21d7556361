#include "control/experiment/live/plan/moment.h"

#include <fmt/format.h>

#include <array>
#include <chrono>

namespace paceline::experiment::live {

namespace {

constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:ddZ";

}  // namespace

std::optional<std::int64_t> unix_ns_of(std::string_view text) {
  if (text.size() != kForm.size()) return std::nullopt;
  std::array<int, 6> parts{};  // year, month, day, hour, minute, second
  std::size_t part = 0;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] != 'd') {
      if (text[i] != kForm[i]) return std::nullopt;
      ++part;
      continue;
    }
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    parts[part] = parts[part] * 10 + (text[i] - '0');
  }
  const auto [year, month, day, hour, minute, second] = parts;
  const std::chrono::year_month_day date{std::chrono::year{year},
                                         std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok() || year < 1970 || year > 2199 || hour > 23 || minute > 59 || second > 59) {
    return std::nullopt;
  }
  const std::chrono::sys_time<std::chrono::nanoseconds> at =
      std::chrono::sys_days{date} + std::chrono::hours{hour} + std::chrono::minutes{minute} +
      std::chrono::seconds{second};
  return at.time_since_epoch().count();
}

std::string moment_text(std::int64_t unix_ns) {
  const std::chrono::sys_time<std::chrono::nanoseconds> at{std::chrono::nanoseconds{unix_ns}};
  const auto midnight = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date{midnight};
  const std::chrono::hh_mm_ss time{std::chrono::floor<std::chrono::seconds>(at - midnight)};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", int{date.year()},
                     unsigned{date.month()}, unsigned{date.day()}, time.hours().count(),
                     time.minutes().count(), time.seconds().count());
}

}  // namespace paceline::experiment::live
