#include "tools/workload/files/foreign_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>

namespace paceline::workload {

namespace {

template <class Number>
bool is(const Word& word) {
  Number value{};
  const char* const end = word.text.data() + word.text.size();
  const auto [stop, code] = std::from_chars(word.text.data(), end, value);
  return code == std::errc{} && stop == end;
}

bool whole_numbers(const TextLine& line) {
  return std::all_of(line.words.begin(), line.words.end(), is<std::uint64_t>);
}

std::string_view word_at(const TextLine& line, std::size_t place) {
  return line.words.size() > place ? line.words[place].text : std::string_view{};
}

// The header of both comes in any order, with the number of nodes in either.
std::string_view htsim_format(const TextLine& first, const TextLine& second) {
  for (const TextLine* line : {&first, &second}) {
    const std::string_view key = word_at(*line, 0);
    if (key == "Connections" || key == "Triggers" || key == "Failures") {
      return "a connection matrix of htsim (.cm)";
    }
    if (key == "Tiers" || key == "Podsize") return "a topology of htsim (.topo)";
  }
  return {};
}

std::string_view table_format(const TextLine& first, const TextLine& second) {
  const std::size_t columns = first.words.size();
  if (columns == 6 && is<std::uint64_t>(first.words[4]) && !is<std::uint64_t>(first.words[5]) &&
      whole_numbers(second)) {
    return "a topology of SimAI";
  }
  if (columns == 2 && second.words.size() == 2 && all_numbers(first) && all_numbers(second)) {
    return "a distribution of sizes (`size share`)";
  }
  if (!whole_numbers(first)) return {};
  if (columns == 1 && second.words.size() == 6) return "a flow list of the HPCC simulator";
  const bool lists_switches =
      columns == 3 && first.words[1].text == std::to_string(second.words.size());
  if (lists_switches && whole_numbers(second)) return "a topology of the HPCC simulator";
  return {};
}

}  // namespace

bool all_numbers(const TextLine& line) {
  return std::all_of(line.words.begin(), line.words.end(), is<double>);
}

std::string_view known_format(std::string_view text) {
  constexpr std::size_t kHead = 4096;
  if (text.substr(0, kHead).find('\0') != std::string_view::npos) return "a binary file";
  TextTable table(text, "");
  TextLine first, second;
  if (!table.next(first)) return {};
  table.next(second);
  const std::string_view head = word_at(first, 0);
  if (head.front() == '{') return "JSON";
  if (head.front() == '<') return "XML";
  if (head.front() == '[' || word_at(first, 1) == "=") return "TOML";
  if (head == "num_ranks") return "a GOAL schedule";
  if (std::find(kSimaiPolicies.begin(), kSimaiPolicies.end(), head) != kSimaiPolicies.end()) {
    return "a workload of SimAI or ASTRA-sim";
  }
  const std::string_view htsim = htsim_format(first, second);
  return htsim.empty() ? table_format(first, second) : htsim;
}

bool report_known_format(std::string_view text, const config::Where& place,
                         std::string_view expected, TableErrors& errors) {
  const std::string_view known = known_format(text);
  if (known.empty()) return false;
  errors.add(place, fmt::format("this seems to be {}: expected {}", known, expected));
  return true;
}

}  // namespace paceline::workload
