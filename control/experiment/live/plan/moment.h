// A moment as people write it: "2026-12-01T08:00:00Z", UTC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace paceline::experiment::live {

// Nanoseconds since 1970; nothing for a text of another form, a day that no calendar has, or a year
// before 1970 or after 2199. Leap seconds are not known.
std::optional<std::int64_t> unix_ns_of(std::string_view text);

// The same form; fractions of a second are cut off. unix_ns is of the years above.
std::string moment_text(std::int64_t unix_ns);

}  // namespace paceline::experiment::live
