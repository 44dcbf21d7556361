#include "control/league/plan/plan.h"

#include <fmt/format.h>

#include "control/experiment/results/reproduce.h"

namespace paceline::league {

std::string_view to_text(Size size) { return size == Size::quick ? "quick" : "full"; }

std::string_view to_text(Needs needs) { return needs == Needs::edge ? "edge" : "switch"; }

std::string reproduce_command(const Plan& plan, std::size_t scenario, std::size_t entry,
                              std::uint64_t seed) {
  using experiment::shell_word;
  const PlanScenario& s = plan.scenarios[scenario];
  const Entry& e = plan.entries[entry];
  std::string out = "paceline emulate " + shell_word(s.file);
  for (const auto* settings : {&s.settings, &e.settings}) {
    for (const std::string& set : *settings) out += " --set " + shell_word(set);
  }
  return out + fmt::format(" --seed {} --series-out {}", seed,
                           shell_word(fmt::format("{}.{}.csv", s.name, e.name)));
}

}  // namespace paceline::league
