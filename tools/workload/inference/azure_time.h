// Times in the Azure LLM traces.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace paceline::workload {

// "2023-11-16 18:15:46.6805900" as ticks of 100 ns since 1970; the fraction has up to 7 digits, or
// is not there.
std::optional<std::int64_t> parse_azure_time(std::string_view text);

}  // namespace paceline::workload
