#include "tests/diagnose/confusion.h"

#include <fmt/format.h>

#include <algorithm>

namespace paceline::tools {

using diagnosis::Cause;
using diagnosis::Verdict;

void Confusion::add(std::optional<Cause> truth, const std::string& culprit,
                    const std::vector<Verdict>& said) {
  const std::size_t row = truth ? static_cast<std::size_t>(*truth) : kNone;
  const bool faulty = truth && is_fault(*truth);
  bool any_fault = false, found = false, named = false, told = false;
  for (const Verdict& verdict : said) {
    told = told || verdict.cause == truth;
    if (!is_fault(verdict.cause)) continue;
    any_fault = true;
    ++verdicts_;
    ++counts_[row][static_cast<std::size_t>(verdict.cause)];
    if (truth == Cause::slow_rank && verdict.cause != Cause::slow_rank) ++network_for_rank_;
    if (verdict.cause != truth) continue;
    ++true_verdicts_;
    found = true;
    named = named || verdict.culprit == culprit;
  }
  if (!any_fault) ++counts_[row][kNone];
  faults_ += faulty ? 1U : 0U;
  found_ += found ? 1U : 0U;
  named_ += named ? 1U : 0U;
  if (truth && !faulty) {
    ++designs_;
    designs_told_ += told ? 1U : 0U;
  }
}

namespace {
double share(std::uint32_t part, std::uint32_t whole) {
  return whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
}
}  // namespace

double Confusion::precision() const { return share(true_verdicts_, verdicts_); }
double Confusion::recall() const { return share(found_, faults_); }
double Confusion::named() const { return share(named_, found_); }
double Confusion::designs_told() const { return share(designs_told_, designs_); }

std::string Confusion::text() const {
  const auto name = [](std::size_t c) {
    return c == kNone ? std::string("none") : std::string(name_of(static_cast<Cause>(c)));
  };
  std::string text = fmt::format("{:16}", "true \\ said");
  std::vector<std::size_t> columns;
  for (std::size_t c = 0; c <= kNone; ++c) {
    if (c == kNone || is_fault(static_cast<Cause>(c))) columns.push_back(c);
  }
  for (const std::size_t c : columns) text += fmt::format("{:>14}", name(c));
  text += "\n";
  for (std::size_t row = 0; row <= kNone; ++row) {
    text += fmt::format("{:16}", name(row));
    for (const std::size_t c : columns) text += fmt::format("{:14}", counts_[row][c]);
    text += "\n";
  }
  return text + fmt::format(
                    "precision {:.3f} of {} verdicts, recall {:.3f} of {} faults, culprit "
                    "named {:.3f} of {} found, designs told {:.3f} of {}, network verdicts "
                    "for a slow rank {}\n",
                    precision(), verdicts_, recall(), faults_, named(), found_, designs_told(),
                    designs_, network_for_rank_);
}

}  // namespace paceline::tools
