#include "tools/workload/jobs/chakra/chakra_groups.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "dataplane/base/text/json_limits.h"

namespace paceline::workload {

namespace {

using Json = nlohmann::json;

// The ranks of a group, in its order; empty, with the error, where it is none.
std::vector<std::uint32_t> group_ranks(const Json& list, std::uint32_t ranks, std::string& error) {
  std::vector<std::uint32_t> out;
  std::set<std::uint64_t> given;
  if (!list.is_array() || list.empty()) error = "expected a list of ranks";
  for (const Json& rank : list) {
    if (!error.empty()) break;
    if (!rank.is_number_unsigned() || rank.get<std::uint64_t>() >= ranks) {
      error = fmt::format("entry {}: expected a rank in [0 .. {}]", out.size() + 1, ranks - 1);
    } else if (!given.insert(rank.get<std::uint64_t>()).second) {
      error = fmt::format("rank {} is given twice", rank.get<std::uint64_t>());
    } else {
      out.push_back(rank.get<std::uint32_t>());
    }
  }
  return out;
}

}  // namespace

config::Read<ChakraGroups> parse_chakra_groups(std::string_view text, const std::string& source,
                                               std::uint32_t ranks) {
  config::Read<ChakraGroups> out;
  if (const JsonExcess excess = json_excess(text)) {
    out.errors.push_back(fmt::format("{}: byte {}: {}", source, excess.at, excess.what));
    return out;
  }
  Json document;
  std::set<std::string> names;
  std::string twice;  // a name that is given twice; the parser would take the last
  const auto see_name = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth == 1 && event == Json::parse_event_t::key &&
        !names.insert(value.get<std::string>()).second) {
      twice = value.get<std::string>();
    }
    return true;
  };
  try {
    document = Json::parse(text, see_name);
  } catch (const Json::parse_error& error) {
    out.errors.push_back(fmt::format("{}: byte {}: this is not JSON", source, error.byte));
    return out;
  } catch (const Json::out_of_range&) {
    out.errors.push_back(fmt::format("{}: a number is out of range", source));
    return out;
  }
  if (!document.is_object()) {
    out.errors.push_back(fmt::format("{}: expected an object {{\"group\": [ranks]}}", source));
    return out;
  }
  if (!twice.empty()) {
    out.errors.push_back(fmt::format("{}: \"{}\" is given twice", source, twice));
  }
  for (const auto& [name, list] : document.items()) {
    std::string error;
    out.value[name] = group_ranks(list, ranks, error);
    if (!error.empty()) out.errors.push_back(fmt::format("{}: \"{}\": {}", source, name, error));
  }
  return out;
}

}  // namespace paceline::workload
