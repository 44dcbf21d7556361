#include "tools/diagnose/diagnosis_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/cli/text_table.h"

namespace paceline::tools {

namespace {

using diagnosis::Evidence;
using diagnosis::Verdict;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostShown = 16;  // rows and columns of the matrix

std::string verdict_text(const Verdict& verdict) {
  std::string text =
      fmt::format("{}  {} {}, confidence {:.2f} ({})\n",
                  is_fault(verdict.cause) ? "verdict" : "design ", name_of(verdict.cause),
                  verdict.culprit, verdict.confidence, name_of(place_of(verdict.cause)));
  if (!verdict.or_else.empty()) {
    text += fmt::format("         or {}\n", fmt::join(verdict.or_else, ", "));
  }
  for (const std::string& line : verdict.evidence) text += fmt::format("  {}\n", line);
  return text + fmt::format("  Next: {}\n", advice_of(verdict.cause));
}

std::string matrix_text(const Evidence& evidence) {
  const std::vector<std::size_t> shown = slowest_nics(evidence, kMostShown);
  if (shown.empty()) return {};
  std::vector<Column> columns{{.head = "from \\ to", .left = true}};
  for (const std::size_t to : shown) columns.push_back({.head = evidence.nics[to].name});
  TextTable table(std::move(columns));
  for (const std::size_t from : shown) {
    std::vector<Cell> row{{evidence.nics[from].name}};
    for (const std::size_t to : shown) {
      const double slow = evidence.slowness[from * evidence.nics.size() + to];
      row.push_back({slow == 0 ? "" : fmt::format("{:.1f}", slow)});
    }
    table.add(std::move(row));
  }
  std::string text = "messages, time over ideal, median";
  if (shown.size() == kMostShown) text += fmt::format("; the {} slowest NICs", kMostShown);
  text += "\n";
  for (const std::string& line : table.lines(0, false)) text += line + "\n";
  return text;
}

}  // namespace

std::vector<std::size_t> slowest_nics(const Evidence& evidence, std::size_t most) {
  const std::size_t nics = evidence.nics.size();
  std::vector<double> sums(nics);
  for (std::size_t i = 0; i < evidence.slowness.size(); ++i) {
    sums[i / nics] += evidence.slowness[i];
    sums[i % nics] += evidence.slowness[i];
  }
  std::vector<std::size_t> order;
  for (std::size_t n = 0; n < nics; ++n) {
    if (sums[n] > 0) order.push_back(n);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sums[a] > sums[b]; });
  order.resize(std::min(order.size(), most));
  std::sort(order.begin(), order.end());
  return order;
}

std::string diagnosis_text(const Evidence& evidence, const std::vector<Verdict>& verdicts) {
  const bool fault = std::any_of(verdicts.begin(), verdicts.end(),
                                 [](const Verdict& v) { return is_fault(v.cause); });
  std::string text;
  if (!fault) text += "verdict  none: nothing stands out for long enough\n";
  for (const Verdict& verdict : verdicts) text += verdict_text(verdict);
  return text + matrix_text(evidence);
}

Json verdicts_json(const std::vector<Verdict>& verdicts) {
  Json out = Json::array();
  for (const Verdict& verdict : verdicts) {
    Json& one = out.emplace_back();
    one["cause"] = name_of(verdict.cause);
    one["fault"] = is_fault(verdict.cause);
    one["place"] = name_of(place_of(verdict.cause));
    one["culprit"] = verdict.culprit;
    one["or_else"] = verdict.or_else;
    one["confidence"] = verdict.confidence;
    one["evidence"] = verdict.evidence;
    one["next"] = advice_of(verdict.cause);
  }
  return out;
}

std::string diagnosis_json(const std::string& scenario, std::uint64_t seed,
                           const Evidence& evidence, const std::vector<Verdict>& verdicts) {
  Json out;
  out["schema"] = 1;
  out["scenario"] = scenario;
  out["seed"] = seed;
  out["until_ns"] = to_nanos(evidence.until).count;
  out["windows"] = evidence.window_ends.size();
  out["verdicts"] = verdicts_json(verdicts);
  Json& matrix = out["slowness"] = Json::array();
  const std::size_t nics = evidence.nics.size();
  for (std::size_t from = 0; from < nics; ++from) {
    const auto row = evidence.slowness.begin() + static_cast<std::ptrdiff_t>(from * nics);
    matrix.push_back(std::vector<double>(row, row + static_cast<std::ptrdiff_t>(nics)));
  }
  out["nics"] = Json::array();
  for (const auto& nic : evidence.nics) out["nics"].push_back(nic.name);
  return out.dump(2) + "\n";
}

}  // namespace paceline::tools
