#include "control/league/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "control/experiment/text/json_reader.h"
#include "control/experiment/text/number_text.h"
#include "dataplane/config/scenario/document.h"

namespace paceline::league {

namespace {

using experiment::JsonReader;
using Json = JsonReader::Json;

Bound read_bound(JsonReader& in, const Json& item, const std::string& path) {
  Bound bound;
  bound.scenario = in.string(item, path, "scenario");
  bound.entry = in.string(item, path, "entry");
  std::vector<std::string> names;
  for (const Measure measure : kRanked) names.emplace_back(spec_of(measure).name);
  const std::string name = in.one_of(item, path, "measure", names);
  if (const auto measure = measure_by_name(name)) bound.measure = *measure;
  bound.low = in.number(item, path, "low");
  bound.high = in.number(item, path, "high");
  if (bound.low > bound.high) {
    in.error(path + ".low", fmt::format("{} is above high = {}", bound.low, bound.high));
  }
  return bound;
}

void check_same(JsonReader& in, std::string_view key, std::uint64_t found, std::uint64_t wanted) {
  if (found == wanted) return;
  in.error(std::string(key),
           fmt::format("{}: these bounds are of another league; this one has {}", found, wanted));
}

}  // namespace

double tolerance_of(Measure measure) {
  switch (measure) {
    case Measure::efficiency:
      return 0.03;
    default:
      return 0.15;
  }
}

std::string bounds_text(const Results& results) {
  using experiment::JsonWriter;
  constexpr int kDigits = 4;
  const Plan& plan = results.plan;
  JsonWriter json;
  json.begin_object();
  json.member("schema", std::uint64_t{1});
  json.member("kind", kBoundsKind);
  json.member("size", to_text(plan.size));
  json.member("seed", plan.seed);
  json.member("repetitions", std::uint64_t{plan.repetitions});
  json.key("bounds");
  json.begin_array();
  for (std::size_t c = 0; c < results.cells.size(); ++c) {
    for (const Measure measure : kRanked) {
      const double mean = results.cells[c][measure].mean;
      if (!results.cells[c].finished() || std::isnan(mean)) continue;
      json.begin_object(JsonWriter::Layout::compact);
      json.member("scenario", std::string_view(plan.scenarios[c / plan.entries.size()].name));
      json.member("entry", std::string_view(plan.entries[c % plan.entries.size()].name));
      json.member("measure", spec_of(measure).name);
      json.member("low", experiment::rounded(mean * (1 - tolerance_of(measure)), kDigits));
      json.member("high", experiment::rounded(mean * (1 + tolerance_of(measure)), kDigits));
      json.end_object();
    }
  }
  json.end_array();
  json.end_object();
  return std::move(json).finish();
}

config::Read<Bounds> read_bounds_file(const std::string& path, const Plan& plan) {
  config::Read<Bounds> out;
  const auto text = config::read_text_file(path, config::kLongestDocument);
  if (!text.ok()) {
    out.errors = text.errors;
    return out;
  }
  const config::Read<Json> read =
      JsonReader::document(text.value, path, "what `paceline league --write-bounds` writes");
  if (!read.ok()) {
    out.errors = read.errors;
    return out;
  }
  const Json& root = read.value;
  JsonReader in(path);
  in.one_of(root, "", "kind", {std::string(kBoundsKind)});
  in.whole(root, "", "schema", 1, 1);
  out.value.size =
      in.one_of(root, "", "size", {"quick", "full"}) == "full" ? Size::full : Size::quick;
  out.value.seed = in.whole(root, "", "seed");
  out.value.repetitions = static_cast<std::uint32_t>(in.whole(root, "", "repetitions", 1, 10'000));
  for (const Json& item : in.array(root, "", "bounds")) {
    const std::string where = fmt::format("bounds[{}]", out.value.bounds.size());
    if (!item.is_object()) {
      in.error(where, fmt::format("expected an object, found {}", JsonReader::kind_of(item)));
      break;
    }
    out.value.bounds.push_back(read_bound(in, item, where));
  }
  if (in.errors().empty()) {
    if (out.value.size != plan.size) {
      in.error("size", fmt::format("\"{}\": this league is run as {}", to_text(out.value.size),
                                   to_text(plan.size)));
    }
    check_same(in, "seed", out.value.seed, plan.seed);
    check_same(in, "repetitions", out.value.repetitions, plan.repetitions);
  }
  out.errors = in.errors();
  return out;
}

BoundsCheck check_bounds(const Bounds& bounds, const Results& results) {
  const Plan& plan = results.plan;
  std::map<std::pair<std::string, std::string>, std::size_t> cells;
  for (std::size_t c = 0; c < results.cells.size(); ++c) {
    cells[{plan.scenarios[c / plan.entries.size()].name,
           plan.entries[c % plan.entries.size()].name}] = c;
  }
  BoundsCheck out;
  std::vector<bool> bounded(results.cells.size(), false);
  for (const Bound& bound : bounds.bounds) {
    const auto found = cells.find({bound.scenario, bound.entry});
    if (found == cells.end()) continue;
    bounded[found->second] = true;
    ++out.checked;
    const double mean = results.cells[found->second][bound.measure].mean;
    if (mean >= bound.low && mean <= bound.high) continue;
    const std::string cell =
        fmt::format("{} under {}: {}", bound.scenario, bound.entry, spec_of(bound.measure).name);
    if (std::isnan(mean)) {
      out.left.push_back(cell + " has no value: a run did not finish");
      continue;
    }
    const double edge = mean < bound.low ? bound.low : bound.high;
    out.left.push_back(
        fmt::format("{} = {} is {} [{} .. {}] by {:.1f} %", cell, value_words(bound.measure, mean),
                    mean < bound.low ? "below" : "above", value_words(bound.measure, bound.low),
                    value_words(bound.measure, bound.high), 100 * std::abs(mean / edge - 1)));
  }
  for (const auto& [name, c] : cells) {
    if (!bounded[c]) out.unbounded.push_back(name.first + " under " + name.second);
  }
  return out;
}

}  // namespace paceline::league
