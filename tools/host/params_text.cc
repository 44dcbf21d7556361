#include "tools/host/params_text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <map>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cc/params.h"
#include "cc/registry.h"
#include "dataplane/base/text/printable.h"
#include "tools/service_link/daemon_request.h"

namespace paceline::tools {

namespace {

using Json = nlohmann::json;

std::string text_at(const Json& in, const char* key) {
  const auto at = in.find(key);
  return at != in.end() && at->is_string() ? printable(at->get<std::string>()) : std::string();
}
double number_at(const Json& in, const char* key) {
  const auto at = in.find(key);
  return at != in.end() && at->is_number() ? at->get<double>() : 0;
}
const Json& member(const Json& in, const char* key) {
  static const Json kNull;
  const auto at = in.find(key);
  return at != in.end() ? *at : kNull;
}

std::string when_text(double unix_ns) {
  const auto seconds = static_cast<std::time_t>(unix_ns * 1e-9);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(seconds));
}

const cc::ParamSpec* spec_of(const std::string& algorithm, const std::string& name) {
  for (const cc::AlgorithmInfo& info : cc::algorithms()) {
    if (info.name != algorithm) continue;
    for (const cc::ParamSpec& spec : info.params) {
      if (spec.name == name) return &spec;
    }
  }
  return nullptr;
}

std::string values_text(const std::string& algorithm, const Json& values,
                        std::span<const std::string> names) {
  std::string text;
  if (!values.is_object()) return text;
  for (const auto& [name, value] : values.items()) {
    if (!value.is_number()) continue;
    if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) continue;
    const cc::ParamSpec* const spec = spec_of(algorithm, name);
    const std::string unit = spec == nullptr ? "" : std::string(spec->unit);
    const double number = value.get<double>();
    const bool usual = spec == nullptr || number == spec->default_value;
    text +=
        fmt::format("  {:<24} {:>12} {:<8}{}\n", name, cc::number_text(number), unit,
                    usual ? "" : fmt::format(" default {}", cc::number_text(spec->default_value)));
  }
  return text;
}

std::string changes_of(const Json& nic) {
  const Json& changes = member(nic, "changes");
  if (!changes.is_array() || changes.empty()) return "nothing";
  std::vector<std::string> parts;
  for (const Json& change : changes) {
    parts.push_back(change.is_string() ? printable(change.get<std::string>()) : json_line(change));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string nics_of(const Json& change) {
  const Json& nics = member(change, "nics");
  if (!nics.is_object()) return {};
  // NICs with the same text share a line.
  std::map<std::string, std::vector<std::string>> lines;
  for (const auto& [name, nic] : nics.items()) lines[changes_of(nic)].push_back(name);
  std::string text;
  for (const auto& [what, names] : lines) {
    text += fmt::format("  {}: {}\n", fmt::join(names, ", "), what);
  }
  return text;
}

// For a revert: what it undid, and how to redo that.
std::string restored_text(const Json& change) {
  if (!change.contains("restored")) return {};
  const double restored = number_at(change, "restored");
  std::string as_it_was = restored == 0 ? std::string("before the first change of the journal")
                                        : fmt::format("after change {:.0f}", restored);
  const double undone = number_at(change, "undone");
  if (number_at(change, "number") == 0) {
    return undone == 0
               ? fmt::format("everything would be as it was {}\n", as_it_was)
               : fmt::format("change {:.0f} would be undone: as it was {}\n", undone, as_it_was);
  }
  if (undone == 0) return fmt::format("everything is as it was {}\n", as_it_was);
  return fmt::format(
      "change {:.0f} is undone: as it was {}. Another revert steps back further; forward again:\n"
      "  paceline params revert --to {:.0f} --why ...\n",
      undone, as_it_was, undone);
}

}  // namespace

std::string params_text(const Json& answer, std::span<const std::string> names) {
  struct Group {
    std::vector<std::string> nics;
    std::string head;
    std::string values;
  };
  std::vector<Group> groups;
  for (const Json& nic : member(answer, "nics")) {
    if (!nic.is_object()) continue;
    const std::string algorithm = text_at(nic, "algorithm");
    std::string profile = text_at(nic, "profile");
    if (!profile.empty()) profile.insert(0, ", profile ");
    const double arm = number_at(nic, "arm");
    Group group;
    group.head =
        fmt::format("{}{}{}", algorithm, profile,
                    number_at(nic, "epoch") != 0 ? fmt::format(", arm {} of a trial", arm) : "");
    group.values = values_text(algorithm, member(nic, "values"), names);
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& g) {
      return g.head == group.head && g.values == group.values;
    });
    Group& into = same == groups.end() ? groups.emplace_back(std::move(group)) : *same;
    into.nics.push_back(text_at(nic, "name"));
  }
  std::string text;
  for (const Group& group : groups) {
    text += fmt::format("{}: {}\n{}", fmt::join(group.nics, ", "), group.head, group.values);
  }
  return text;
}

std::string params_history_text(const Json& answer) {
  std::string text;
  for (const Json& change : member(answer, "changes")) {
    if (!change.is_object()) continue;
    const std::string state = text_at(change, "state");
    text += fmt::format("{:.0f}  {}  {}  {}{}\n", number_at(change, "number"),
                        when_text(number_at(change, "at_unix_ns")), text_at(change, "who"),
                        text_at(change, "action"), state == "done" ? "" : " (" + state + ")");
    if (const double undone = number_at(change, "undone"); undone != 0) {
      text += fmt::format("  undoes change {:.0f}\n", undone);
    }
    if (const std::string why = text_at(change, "why"); !why.empty())
      text += "  why: " + why + "\n";
    text += nics_of(change);
  }
  return text.empty() ? "no changes\n" : text;
}

std::string params_change_text(const Json& answer) {
  const Json& change = member(answer, "change");
  if (!change.is_object()) return {};
  std::string text = nics_of(change);
  for (const Json& warning : member(change, "warnings")) {
    if (warning.is_string()) text += "warning: " + printable(warning.get<std::string>()) + "\n";
  }
  const double number = number_at(change, "number");
  text += restored_text(change);
  if (number == 0) return text + "nothing was changed: this was a dry run\n";
  if (change.contains("restored")) {
    return text + fmt::format("change {:.0f} of the journal\n", number);
  }
  return text +
         fmt::format(
             "change {:.0f} of the journal; undo it with\n  paceline params revert --why ...\n",
             number);
}

Json assignments(std::span<const std::string> words, std::vector<std::string>& errors) {
  Json out = Json::object();
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    if (equals == 0 || value.empty() || *end != 0 || !std::isfinite(number)) {
      errors.push_back(fmt::format("\"{}\": expected NAME=NUMBER", word));
      continue;
    }
    out[word.substr(0, equals)] = number;
  }
  return out;
}

}  // namespace paceline::tools
