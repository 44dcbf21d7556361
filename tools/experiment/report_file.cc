#include "tools/experiment/report_file.h"

#include <filesystem>

#include <fmt/format.h>

#include "control/experiment/page/html_text.h"
#include "control/experiment/page/report_page.h"

namespace paceline::tools {

std::string report_name(const std::string& results) {
  std::string name = results;
  for (const std::string_view end : {".results.json", ".json"}) {
    if (name.size() > end.size() && name.ends_with(end)) {
      name.resize(name.size() - end.size());
      break;
    }
  }
  return name + ".report.html";
}

void write_report(const std::string& path, const experiment::Results& results,
                  const experiment::Analysis& analysis, const std::string& results_name) {
  experiment::write_results_file(path, experiment::report_page(results, analysis, results_name));
}

std::string written_text(const std::string& path) {
  std::error_code ignored;
  const auto bytes = std::filesystem::file_size(path, ignored);
  std::string text =
      fmt::format("report: {} ({:.0f} KB)\n", path, static_cast<double>(bytes) / 1e3);
  if (!experiment::report_has_charts()) {
    text += "        without charts: this paceline was built without D3 (Debian: libjs-d3)\n";
  }
  return text;
}

}  // namespace paceline::tools
