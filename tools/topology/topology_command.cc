// `paceline topology`: what a fabric is made of, without running it.

#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "control/experiment/results/results_file.h"
#include "dataplane/config/scenario/document.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "dataplane/driver/scenario/scenario_setup.h"
#include "tools/cli/cli.h"
#include "tools/topology/topology_export.h"
#include "tools/topology/topology_figures.h"
#include "tools/topology/topology_picture.h"
#include "tools/workload/files/foreign_format.h"
#include "tools/workload/files/htsim_topology.h"
#include "tools/workload/files/topology_file.h"
#include "tools/workload/workload.h"

namespace paceline::tools {

namespace {

struct TopologyOptions {
  std::string file;
  std::vector<std::string> sets;
  std::string picture;
  std::string format;  // to be written in place of the figures
  bool json = false;
};

struct LoadedTopology {
  config::Scenario scenario;
  workload::NodeNumbers numbers;
  workload::TopologyFile file;  // where the scenario names one
};

// A workload that suits every number of hosts, for texts without one.
constexpr const char* kAnyWorkload = "[workload]\nkind = \"permutation\"\n";

config::Read<config::Scenario> read_any(const TopologyOptions& options) {
  config::Read<std::string> text = config::read_text_file(options.file, std::size_t{1} << 30);
  if (!text.ok()) return {{}, text.errors};
  config::ReaderOptions reader = reader_options();
  const std::string_view known = workload::known_format(text.value);
  std::string folder = config::folder_of(options.file);
  if (known.ends_with("of htsim (.topo)")) {
    const auto parsed = workload::parse_htsim_topology(text.value, options.file);
    if (!parsed.ok()) return {{}, parsed.errors};
    const workload::FabricFromHtsim made = workload::fabric_from_htsim(parsed.value);
    if (!made.error.empty()) return {{}, {options.file + ": " + made.error}};
    text.value = fabric_keys_text(made.fabric) + kAnyWorkload;
  } else if (known.starts_with("a topology of ")) {
    text.value = kAnyWorkload;
    reader.overrides.emplace_back("fabric.topology=file");
    reader.overrides.push_back("fabric.topology_file=" +
                               std::filesystem::absolute(options.file).string());
  }
  reader.overrides.insert(reader.overrides.end(), options.sets.begin(), options.sets.end());
  return config::read_scenario_text(text.value, options.file, folder, reader);
}

config::Read<LoadedTopology> load_topology_file(const TopologyOptions& options) {
  config::Read<LoadedTopology> out;
  auto read = read_any(options);
  out.errors = std::move(read.errors);
  if (!out.ok()) return out;
  out.value.scenario = std::move(read.value);
  if (out.value.scenario.fabric.topology == "file") {
    auto file = workload::read_topology_file(out.value.scenario.fabric.topology_file);
    if (!file.ok()) return {{}, std::move(file.errors)};
    out.value.file = std::move(file.value);
  }
  auto inputs = workload::load_inputs(out.value.scenario);
  out.errors = std::move(inputs.errors);
  out.value.numbers = std::move(inputs.value.numbers);
  return out;
}

config::Read<std::string> exported(const std::string& format, const LoadedTopology& loaded,
                                   const fabric::FabricSpec& spec) {
  const config::FabricConfig& fabric = loaded.scenario.fabric;
  if (format == "hpcc") return export_hpcc(spec);
  if (format == "simai") return export_simai(fabric, spec);
  if (format == "htsim") return workload::write_htsim_topology(fabric);
  if (fabric.topology == "file") {
    return {{}, {"a topology file is not made of keys; name it as fabric.topology_file"}};
  }
  return {fabric_keys_text(fabric), {}};
}

std::string nvlink_text(const workload::TopologyFile& file) {
  if (file.nvlinks == 0) return {};
  return fmt::format("  NVLink, no part of the fabric: {} links of {:g} Gb/s to {} switches\n",
                     file.nvlinks, static_cast<double>(file.nvlink_rate.bps) / 1e9,
                     file.nvswitches);
}

int run(const TopologyOptions& options) {
  if (const auto errors = check_output(options.picture); !errors.empty()) {
    return report_errors(errors);
  }
  const config::Read<LoadedTopology> loaded = load_topology_file(options);
  if (!loaded.ok()) return report_errors(loaded.errors);
  const config::Scenario& scenario = loaded.value.scenario;
  const fabric::FabricSpec spec = fabric_of(scenario);
  std::vector<std::string> problems = fabric::check_buildable(spec);
  for (std::string& problem : problems) problem.insert(0, options.file + ": ");
  if (!problems.empty()) return report_errors(problems);
  if (!options.format.empty()) {
    const config::Read<std::string> text = exported(options.format, loaded.value, spec);
    if (!text.ok()) return report_errors(text.errors);
    fmt::print("{}", text.value);
  } else {
    const TopologyFigures figures = topology_figures(scenario, spec, loaded.value.numbers);
    if (options.json) {
      nlohmann::json json = topology_json(scenario.name, figures);
      if (loaded.value.file.nvlinks != 0) {
        json["nvlink"] = {{"links", loaded.value.file.nvlinks},
                          {"switches", loaded.value.file.nvswitches},
                          {"rate_bps", loaded.value.file.nvlink_rate.bps}};
      }
      fmt::print("{}\n", json.dump(2));
    } else {
      fmt::print("{}{}", topology_text(scenario.name, figures), nvlink_text(loaded.value.file));
    }
  }
  if (options.picture.empty()) return kExitGood;
  try {
    experiment::write_results_file(options.picture, topology_svg(scenario.name, spec));
  } catch (const experiment::ResultsFileError& error) {
    return report_errors(error.errors());
  }
  return kExitGood;
}

}  // namespace

void add_topology_command(const config::Command& app, int& exit_code) {
  auto options = std::make_shared<TopologyOptions>();
  const config::Command command =
      app.subcommand("topology", "count, draw or convert a fabric: nodes, links, capacity, paths");
  take_shipped_files(command
                         .option("FILE", options->file,
                                 "scenario (TOML), or a topology of SimAI, HPCC or htsim (.topo)")
                         .required());
  command.option("--set", options->sets, "override a key: --set fabric.k=8 (repeatable)")
      .type("KEY=VALUE")
      .one_by_one();
  command.option("-o,--out", options->picture, "draw it").type("FILE.svg");
  const config::Option json = command.flag("--json", options->json, "print the figures as JSON");
  command
      .option("--export", options->format,
              "print the fabric in this format instead of the figures: hpcc, htsim, simai, or "
              "scenario, the keys of [fabric]")
      .type("FORMAT")
      .one_of({"hpcc", "htsim", "simai", "scenario"})
      .excludes(json);
  command.footer(
      "Figures:\n"
      "  tier               hosts are NICs; a switch's tier is its distance from the nearest host\n"
      "  oversubscription   capacity of the worst switch of a tier, down over up\n"
      "  bisection          what one half of the NICs can send to the other, by the tiers' "
      "capacities\n"
      "  paths              equally short paths between two NICs, for each port\n"
      "  base round trip    of a full packet and its ACK between the NICs farthest apart\n"
      "Rails without cores do not reach each other: the pairs are counted, and two are named.\n"
      "In the picture a box may stand for several nodes, and says for how many.\n"
      "Examples:\n"
      "  paceline topology configs/scenarios/permutation-1024.toml -o tree.svg\n"
      "  paceline topology configs/scenarios/permutation-1024.toml --export htsim\n"
      "  paceline topology configs/scenarios/incast-16.toml --json\n"
      "  paceline topology fabric.topo --export simai\n"
      "Exit status: 0 good, 2 bad input.");
  command.callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace paceline::tools
