#include "tools/host/guard_text.h"

#include <ctime>
#include <map>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cc/params.h"
#include "dataplane/base/text/printable.h"

namespace paceline::tools {

namespace {

using GuardJson = nlohmann::json;

std::string guard_word(const GuardJson& in, const char* key) {
  const auto at = in.find(key);
  return at != in.end() && at->is_string() ? printable(at->get<std::string>()) : std::string();
}

double guard_figure(const GuardJson& in, const char* key) {
  const auto at = in.find(key);
  return at != in.end() && at->is_number() ? at->get<double>() : 0;
}

std::string limits_text(const GuardJson& nic) {
  const auto limits = nic.find("limits");
  if (limits == nic.end() || !limits->is_object()) return "none told";
  std::vector<std::string> parts;
  for (const auto& [name, value] : limits->items()) {
    if (!value.is_number()) continue;
    parts.push_back(fmt::format("{} {}", printable(name), cc::number_text(value.get<double>())));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string trip_text(const GuardJson& trip) {
  const auto seconds = static_cast<std::time_t>(guard_figure(trip, "at_unix_ns") * 1e-9);
  const std::string detail = guard_word(trip, "detail");
  const std::string trial = guard_word(trip, "trial");
  return fmt::format("  trip {:.0f}  {:%Y-%m-%d %H:%M:%S}  {} was {}, allowed {}; {}{}{}\n",
                     guard_figure(trip, "number"), fmt::localtime(seconds),
                     guard_word(trip, "rule"), cc::number_text(guard_figure(trip, "figure")),
                     cc::number_text(guard_figure(trip, "limit")), guard_word(trip, "action"),
                     trial.empty() ? "" : " (trial " + trial + ")",
                     detail.empty() ? "" : ": " + detail);
}

}  // namespace

std::string guard_status_text(const GuardJson& answer) {
  std::string text;
  std::vector<std::string> latched;
  std::map<std::string, std::vector<std::string>> limits;  // NICs that have the same share a line
  for (const GuardJson& nic : answer.value("nics", GuardJson::array())) {
    if (!nic.is_object()) continue;
    const std::string name = guard_word(nic, "name");
    limits[limits_text(nic)].push_back(name);
    const bool holds = nic.value("latched", false);
    if (holds) latched.push_back(name);
    const GuardJson trips = nic.value("trips", GuardJson::array());
    if (trips.empty() && !holds) continue;
    text += fmt::format("{}: {}\n", name, holds ? "LATCHED, no trial starts here" : "not latched");
    for (const GuardJson& trip : trips) {
      if (trip.is_object()) text += trip_text(trip);
    }
  }
  if (text.empty()) text = "no trips\n";
  for (const auto& [what, names] : limits) {
    text += fmt::format("limits of {}: {}\n", fmt::join(names, ", "), what);
  }
  if (!latched.empty()) {
    text += "trials may start again after\n  paceline guard clear --why ...\n";
  }
  return text;
}

}  // namespace paceline::tools
