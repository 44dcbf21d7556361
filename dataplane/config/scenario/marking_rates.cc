// [[fabric.ecn.at_rate]]: thresholds of marking for ports of one link rate.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "dataplane/config/keys/scenario_key_parts.h"
#include "dataplane/config/scenario/table_reader.h"
#include "dataplane/config/toml/quantity.h"

namespace paceline::config {

namespace {

constexpr std::size_t kMostRates = 64;

constexpr auto kMarkingRateKeys = std::to_array<KeySpec>({
    {.path = "fabric.ecn.at_rate.rate",
     .min = kLeastRate,
     .max = kMostRate,
     .meaning = "Exact rate of the links with these thresholds; other ports have those of "
                "`[fabric.ecn]`. Events change none. Required."},
    {.path = "fabric.ecn.at_rate.kmin",
     .form = Form::bytes,
     .min = 0,
     .max = 64 * key_unit::kGiB,
     .meaning = "As `fabric.ecn.kmin`. Required."},
    {.path = "fabric.ecn.at_rate.kmax",
     .form = Form::bytes,
     .min = 0,
     .max = 64 * key_unit::kGiB,
     .meaning = "As `fabric.ecn.kmax`. Required."},
    {.path = "fabric.ecn.at_rate.pmax",
     .min = 0,
     .max = 1,
     .meaning = "As `fabric.ecn.pmax`. Required."},
});

bool read_keys(const TomlNode& node, EcnAtRate& out, ReadContext& context) {
  const std::span<const KeySpec> keys = marking_rate_keys();
  std::vector<std::string_view> names;
  for (const KeySpec& key : keys) names.push_back(key.name());
  bool good = true;
  for (const TomlMember& m : node.members) {
    const auto key =
        std::find_if(keys.begin(), keys.end(), [&](const KeySpec& k) { return k.name() == m.key; });
    if (key == keys.end()) {
      report_unknown_key(m, "fabric.ecn.at_rate", names, context);
      good = false;
    } else {
      good = read_value(*key, marking_rate_field(out, m.key), m.value, context) && good;
    }
  }
  for (const std::string_view name : names) {
    if (node.find(name) != nullptr) continue;
    context.errors->add(node.where, fmt::format("a [[fabric.ecn.at_rate]] needs \"{}\"", name));
    good = false;
  }
  return good;
}

void read_marking_rate(const TomlNode& node, std::vector<EcnAtRate>& out, ReadContext& context) {
  EcnAtRate one;
  if (!read_keys(node, one, context)) return;
  if (one.kmin_bytes > one.kmax_bytes) {
    context.errors->add(
        node.find("kmin")->value.where,
        fmt::format("fabric.ecn.at_rate.kmin = {} is above its kmax = {}; allowed is kmin <= kmax",
                    format_bytes(one.kmin_bytes), format_bytes(one.kmax_bytes)));
    return;
  }
  const auto same = [&](const EcnAtRate& other) { return other.rate == one.rate; };
  if (std::any_of(out.begin(), out.end(), same)) {
    context.errors->add(node.find("rate")->value.where,
                        fmt::format("fabric.ecn.at_rate.rate = \"{}\" was given before; allowed "
                                    "is one table for each rate",
                                    format_rate(one.rate)));
    return;
  }
  out.push_back(one);
}

}  // namespace

std::span<const KeySpec> marking_rate_keys() { return kMarkingRateKeys; }

Field marking_rate_field(EcnAtRate& one, std::string_view name) {
  if (name == "rate") return &one.rate;
  if (name == "kmin") return &one.kmin_bytes;
  if (name == "kmax") return &one.kmax_bytes;
  return &one.pmax;
}

void read_marking_rates(const TomlNode& list, std::vector<EcnAtRate>& out, ReadContext& context) {
  out.clear();
  if (list.items.size() > kMostRates) {
    context.errors->add(list.where,
                        fmt::format("fabric.ecn.at_rate: {} tables; allowed are {} at most",
                                    list.items.size(), kMostRates));
    return;
  }
  each_table(list, "fabric.ecn.at_rate", context,
             [&](const TomlNode& table) { read_marking_rate(table, out, context); });
}

}  // namespace paceline::config
