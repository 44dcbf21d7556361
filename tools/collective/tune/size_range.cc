#include "tools/collective/tune/size_range.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "dataplane/config/toml/quantity.h"

namespace paceline::tools {

namespace {

constexpr std::uint64_t kLargestSize = 1'000'000'000'000'000;  // of workload.job.bytes

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool read_size(std::string_view text, std::uint64_t& bytes) {
  const auto parsed = config::parse_bytes(trimmed(text));
  bytes = parsed.value;
  return parsed.ok() && bytes > 0 && bytes <= kLargestSize;
}

// "x4"
bool read_factor(std::string_view text, std::uint64_t& factor) {
  text = trimmed(text);
  if (text.empty() || text.front() != 'x') return false;
  text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), factor);
  return error == std::errc{} && end == text.data() + text.size() && factor >= 2 &&
         factor <= 1U << 30;
}

}  // namespace

config::Read<std::vector<std::uint64_t>> parse_size_range(const std::string& option,
                                                          const std::string& text) {
  std::string_view range = text;
  std::uint64_t factor = 4;
  bool good = true;
  if (const std::size_t step = range.find(" step "); step != std::string_view::npos) {
    good = read_factor(range.substr(step + 6), factor);
    range = range.substr(0, step);
  }
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  const std::size_t dots = range.find("..");
  good = read_size(range.substr(0, dots), first) && good;
  last = first;
  if (dots != std::string_view::npos) good = read_size(range.substr(dots + 2), last) && good;
  if (!good || first > last) {
    return {{},
            {fmt::format("{} \"{}\": expected sizes of 1 B to 1000 TB, the smaller first, such as "
                         "\"1MiB\", \"4KiB..64MiB\" or \"4KiB..64MiB step x2\"",
                         option, text)}};
  }
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = first; size <= last; size *= factor) {
    sizes.push_back(size);
    if (size > last / factor) break;
  }
  return {std::move(sizes), {}};
}

}  // namespace paceline::tools
