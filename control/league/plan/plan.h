// A league as a file describes it: every algorithm (entries) over every reference scenario, in one
// of two sizes. A scenario is a file of its own, which `paceline emulate` runs too; the league lays
// its size over it, and each entry what it needs of transport and fabric. What is laid over is kept
// as
// `--set` words, so that any run can be repeated by hand.
//
//   schema = 1                      name, seed, confidence, margin, queue_floor: see Plan
//   quick = { repetitions = 3 }     full = { repetitions = 12 }
//   omit = { NAME = "why" }         an algorithm of this build that has no [[entry]]
//   [common]                        tables laid over every scenario
//   [[scenario]]                    name, file; quick and full: tables laid over the file
//   [[entry]]                       name, algorithm, profile, params, fallback, fallback_profile:
//                                   as in an [[arm]]; needs = "edge" | "switch"; effort: how it was
//                                   tuned; fabric and transport: tables laid over every scenario
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cc/interface/algorithm.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/config/toml/toml_tree.h"

namespace paceline::league {

enum class Size : std::uint8_t { quick, full };
std::string_view to_text(Size size);  // "quick", "full"

// edge: hosts alone, and what any Ethernet switch does (ECN, PFC). switches: features that not
// every switch has (telemetry in packets, trimming, credits). They are ranked apart.
enum class Needs : std::uint8_t { edge, switches };
std::string_view to_text(Needs needs);  // "edge", "switch"

struct Param {
  std::string name;
  double value = 0;
  std::string unit;
  bool changed = false;  // differs from the algorithm's default
};

struct Entry {
  std::string name;
  std::string algorithm;  // as written: a name or "plugin:FILE"
  std::string profile;
  Needs needs = Needs::edge;
  std::string effort;
  config::CcConfig cc;
  std::vector<Param> params;          // as resolved on a 100 Gb/s link
  std::vector<std::string> settings;  // "key=value" for --set: its [cc], transport and fabric
  config::TomlNode laid;              // transport and fabric: laid over every scenario
};

struct PlanScenario {
  std::string name;
  std::string file;                   // as a command of this folder names it
  std::string text;                   // of the file
  std::string about;                  // the file's first comment
  std::vector<std::string> settings;  // "key=value" for --set: [common] and the size
  config::TomlNode laid;              // the same: laid over the file
};

struct Omitted {
  std::string algorithm;
  std::string why;
};

struct Plan {
  std::uint32_t schema = 1;
  std::string name = "league";
  Size size = Size::full;
  std::uint64_t seed = 1;
  std::uint32_t repetitions = 12;
  double confidence = 0.95;  // of intervals
  double margin = 0.02;      // values whose ratio is within 1 +- this count as equal in ranks
  std::uint64_t queue_floor_bytes = 50'000;  // and peak queues below this for this
  std::vector<Entry> entries;
  std::vector<PlanScenario> scenarios;
  std::vector<Omitted> omitted;
  std::vector<config::Scenario> cells;  // scenario by scenario, entry by entry; ready to run

  std::size_t cell(std::size_t scenario, std::size_t entry) const {
    return scenario * entries.size() + entry;
  }
};

// The commands that repeat a cell: its run with one seed, with its course over time.
std::string reproduce_command(const Plan& plan, std::size_t scenario, std::size_t entry,
                              std::uint64_t seed);

struct PlanOptions {
  config::ReaderOptions reader;  // algorithms: the shelf that entries must cover
  Size size = Size::full;
  std::vector<std::string> only;     // scenarios; empty: all
  std::vector<std::string> entries;  // likewise
  std::uint32_t repetitions = 0;     // 0: the file's
};

// All errors of the league file, and of the scenarios as they come out of it, with their places.
config::Read<Plan> read_plan_file(const std::string& path, const PlanOptions& options);

}  // namespace paceline::league
