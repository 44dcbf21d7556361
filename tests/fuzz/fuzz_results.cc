// Whatever a results file holds, `paceline report` has it read: the reader gives results that can
// be written and read back to the same bytes, or errors.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "control/experiment/results/results_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline::experiment;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto require = [](bool holds) {
    if (!holds) std::abort();
  };
  const auto has = [](const auto& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  try {
    const Results results = parse_results(text, "fuzz");
    for (const RunResult& run : results.runs) {
      require(has(results.plan.scenarios, run.scenario) && has(results.plan.arms, run.arm));
      require(run.repetition < results.plan.repetitions);
    }
  } catch (const ResultsFileError& error) {
    require(!error.errors().empty());
    for (const std::string& line : error.errors()) require(line.starts_with("fuzz:"));
  }
  return 0;
}
