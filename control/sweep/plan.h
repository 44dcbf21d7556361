// The plan of a sweep. Its file is a scenario with a table [sweep], which says which keys take
// which values.
//
//   [sweep]
//   repetitions = 3        of every point; repetition i has the same seed at all points
//   [sweep.grid]           KEY = [VALUE, ...]: every combination
//   [sweep.latin]          points = N, KEY = "LOW:HIGH" or "LOW:HIGH log": a Latin hypercube
//   [[sweep.list]]         KEY = VALUE, ...: one row
//
// Keys are those of `--set`. If several of grid, latin and list are given, every combination of
// their rows is a point. Points are made on request, so that a million of them take no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/config/toml/toml_tree.h"

namespace paceline::sweep {

inline constexpr std::size_t kMostPoints = 10'000'000;
inline constexpr std::uint32_t kMostRepetitions = 10'000;

// A value as `--set` takes it, "200kB", and the same with its place in the file.
struct Value {
  std::string word;
  config::TomlNode node;
};
struct GridAxis {
  std::string key;  // "fabric.ecn.kmin"
  std::vector<Value> values;
};
struct LatinAxis {
  std::string key;
  config::Where where;
  std::vector<std::string> words;  // one per point
};
struct ListValue {
  std::string key;
  Value value;
};

// One key of a point; part of the plan.
struct Setting {
  std::string_view key;
  std::string_view word;
  const config::TomlNode* node;  // null: parse `word`
  const config::Where* where;
};

struct Plan {
  std::uint32_t schema = 1;
  std::string name = "sweep";
  std::uint64_t seed = 1;
  std::uint32_t repetitions = 1;
  std::string file;
  std::string text;                    // of the file
  std::vector<std::string> overrides;  // of the command line
  config::TomlNode scenario;           // the file without [sweep]
  std::vector<GridAxis> grid;
  std::vector<LatinAxis> latin;
  std::size_t latin_points = 1;
  std::vector<std::vector<ListValue>> list;  // rows
  std::vector<std::string> keys;             // swept ones: columns of the results

  std::size_t points() const;
  // The settings of a point, in the order of `keys`; a key that a row of the list does not have is
  // left out.
  std::vector<Setting> point(std::size_t index) const;
  // "fabric.rate=100Gb/s workload.load=0.5"
  std::string point_text(std::size_t index) const;
};

// Errors name the place in the file, the value and what is allowed.
config::Read<Plan> read_plan_file(const std::string& path, const config::ReaderOptions& options);

// The scenario of a point. Errors begin with the place of the setting that causes them.
config::Read<config::Scenario> scenario_of(const Plan& plan, std::size_t index,
                                           const config::ReaderOptions& options);

}  // namespace paceline::sweep
