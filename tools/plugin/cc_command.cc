#include "tools/plugin/cc_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <variant>
#include <vector>

#include "cc/params.h"
#include "cc/registry.h"
#include "control/experiment/text/wrapped_text.h"
#include "tools/plugin/cc_plugin_command.h"
#include "tools/plugin/cc_sources.h"

namespace paceline::tools {
namespace {

using experiment::wrapped;
using OrderedJson = nlohmann::ordered_json;

std::string_view key_name(cc::ContextKey key) {
  return key == cc::ContextKey::per_qp ? "queue pair" : "peer and class";
}

std::string_view echo_name(EcnEcho echo) {
  switch (echo) {
    case EcnEcho::none:
      return "none";
    case EcnEcho::cnp:
      return "cnp";
    case EcnEcho::xack:
      return "xack";
  }
  return "none";
}

std::string_view kind_name(const cc::AlgorithmInfo& info) {
  return info.proactive ? "proactive" : "reactive";
}

std::vector<std::string> profile_names(const cc::AlgorithmInfo& info) {
  std::vector<std::string> names{std::string(cc::kDefaultProfile)};
  for (const cc::Profile& profile : info.profiles) names.emplace_back(profile.name);
  return names;
}

std::string range_text(const cc::ParamSpec& spec) {
  return cc::number_text(spec.min) + " .. " + cc::number_text(spec.max);
}

// A table of cells, first row the heading, columns padded to equal width.
std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string text_of(const cc::AlgorithmInfo& info, const std::vector<double>& values,
                    const CcShowOptions& options) {
  const std::string_view profile =
      options.profile.empty() ? cc::kDefaultProfile : std::string_view(options.profile);
  const auto sentence = [&options](const std::string& words) {
    return wrapped(words, 0, 4, options.width);
  };
  std::string text = sentence(fmt::format("{}: {}", info.name, info.summary));
  text += fmt::format("{}, one context per {}, ECN echo {}{}\n", kind_name(info),
                      key_name(info.key), echo_name(info.echo),
                      cc::needs_telemetry(info) ? ", needs telemetry of switches"
                      : cc::needs_notices(info) ? ", needs switches that notify"
                                                : "");
  text += sentence(fmt::format("profiles: {}", fmt::join(profile_names(info), ", ")));
  const cc::Profile* const found = cc::find_profile(info, profile);
  text += sentence(fmt::format("values of profile {}, link {} Mb/s{}", profile,
                               cc::number_text(static_cast<double>(options.link_rate.bps) / 1e6),
                               found == nullptr ? "" : fmt::format(" ({})", found->source))) +
          "\n";
  std::vector<std::vector<std::string>> rows{{"parameter", "value", "unit", "allowed", "live"}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const cc::ParamSpec& spec = info.params[i];
    rows.push_back({std::string(spec.name), cc::number_text(values[i]), std::string(spec.unit),
                    range_text(spec), spec.live ? "yes" : "no"});
  }
  text += aligned(rows) + "\n";
  for (const cc::ParamSpec& spec : info.params) {
    text +=
        fmt::format("{}\n{}{}", spec.name, wrapped(std::string(spec.meaning), 4, 4, options.width),
                    wrapped(fmt::format("[{}]", spec.source), 4, 4, options.width));
  }
  const std::string legend = source_legend(info);
  if (!legend.empty()) text += "\nsources in brackets\n" + legend;
  return text;
}

OrderedJson json_of(const cc::AlgorithmInfo& info) {
  OrderedJson profiles = OrderedJson::array();
  profiles.push_back({{"name", cc::kDefaultProfile}, {"source", "defaults of the table"}});
  for (const cc::Profile& profile : info.profiles) {
    profiles.push_back({{"name", profile.name}, {"source", profile.source}});
  }
  return {{"name", info.name},
          {"summary", info.summary},
          {"kind", kind_name(info)},
          {"context", key_name(info.key)},
          {"echo", echo_name(info.echo)},
          {"profiles", profiles}};
}

OrderedJson json_of(const cc::AlgorithmInfo& info, const std::vector<double>& values,
                    const CcShowOptions& options) {
  OrderedJson params = OrderedJson::array();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const cc::ParamSpec& spec = info.params[i];
    params.push_back({{"name", spec.name},
                      {"value", values[i]},
                      {"default", spec.default_value},
                      {"unit", spec.unit},
                      {"min", spec.min},
                      {"max", spec.max},
                      {"live", spec.live},
                      {"meaning", spec.meaning},
                      {"source", spec.source}});
  }
  return {{"schema", 1},
          {"algorithm", json_of(info)},
          {"profile", options.profile.empty() ? std::string(cc::kDefaultProfile) : options.profile},
          {"link_mbps", static_cast<double>(options.link_rate.bps) / 1e6},
          {"params", params}};
}

}  // namespace

int run_cc_list(std::ostream& out, CcFormat format, std::size_t width) {
  if (format == CcFormat::json) {
    OrderedJson list = OrderedJson::array();
    for (const cc::AlgorithmInfo& info : cc::algorithms()) list.push_back(json_of(info));
    out << OrderedJson{{"schema", 1}, {"algorithms", list}}.dump(2) << "\n";
    return 0;
  }
  std::size_t names = 0;
  for (const cc::AlgorithmInfo& info : cc::algorithms()) names = std::max(names, info.name.size());
  for (const cc::AlgorithmInfo& info : cc::algorithms()) {
    out << wrapped(fmt::format("{:<{}}  {}", info.name, names, info.summary), 0, names + 2, width)
        << wrapped(fmt::format("{}; profiles: {}", kind_name(info),
                               fmt::join(profile_names(info), ", ")),
                   names + 2, names + 4, width);
  }
  return 0;
}

int run_cc_show(std::ostream& out, std::ostream& err, const CcShowOptions& options) {
  const cc::Registered found = algorithm_of(options.name);
  if (found.info == nullptr) {
    err << fmt::format("paceline: error: {}\n", found.error);
    return 2;
  }
  const cc::AlgorithmInfo* const info = found.info;
  cc::PortFacts facts;
  facts.link_rate = options.link_rate;
  const cc::ResolvedParams resolved = cc::resolve_params(*info, options.profile, {}, facts);
  if (const auto* errors = std::get_if<std::vector<cc::ParamError>>(&resolved)) {
    for (const cc::ParamError& error : *errors) {
      err << fmt::format("paceline: error: {}\n", error.message);
    }
    return 2;
  }
  const auto& values = std::get<std::vector<double>>(resolved);
  out << (options.format == CcFormat::json ? json_of(*info, values, options).dump(2) + "\n"
                                           : text_of(*info, values, options));
  return 0;
}

}  // namespace paceline::tools
