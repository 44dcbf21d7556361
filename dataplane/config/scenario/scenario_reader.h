// TOML files to typed scenarios and experiments. All errors of a file are reported, each as
// "file:line:column: what, value, what is allowed"; with any error there is no value to use.
//
// A scenario file has the tables [fabric], [transport], [cc] and [workload]. An experiment file has
// [common] (the tables fabric, transport and workload, laid under every scenario), [[scenario]] and
// [[arm]] (name and the keys of [cc]). docs/scenarios.md lists every key.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cc/interface/algorithm.h"
#include "cc/registry.h"
#include "dataplane/config/scenario.h"
#include "dataplane/config/toml/diagnostics.h"

namespace paceline::config {

struct ReaderOptions {
  std::span<const cc::AlgorithmInfo> algorithms;  // what [cc] and [[arm]] may name

  // "key=value", applied in order on the parsed tree, before anything is typed. In a scenario file
  // the key is a path such as fabric.ecn.kmin. In an experiment file
  //   seed, repetitions, confidence, name   the experiment's own
  //   scenario.NAME.PATH                    one scenario
  //   arm.NAME.PATH                         one arm (PATH as in [[arm]]; a leading "cc." is
  //   allowed) PATH                                  every scenario
  // Errors about them begin with "--set key=value".
  std::vector<std::string> overrides;

  // Called for `algorithm = "plugin:PATH"`, with a path that begins with '/' or './'. Without it
  // there are no plug-ins. (dataplane/driver/scenario/plugin_load.h: this room opens no shared
  // objects.)
  std::function<cc::Registered(const std::string& path)> load_plugin{};
};

Read<Scenario> read_scenario_file(const std::string& path, const ReaderOptions& options);
Read<Experiment> read_experiment_file(const std::string& path, const ReaderOptions& options);

// From a text. `source` names it in errors; relative file names start at `folder`.
Read<Scenario> read_scenario_text(std::string_view text, const std::string& source,
                                  const std::string& folder, const ReaderOptions& options);
Read<Experiment> read_experiment_text(std::string_view text, const std::string& source,
                                      const std::string& folder, const ReaderOptions& options);

// The reference of all keys: the part of docs/scenarios.md between its "keys" markers.
std::string scenario_reference_markdown();

}  // namespace paceline::config
