// Plug-ins of this folder, loaded, and small worlds that run them.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "cc/registry.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "dataplane/driver/virtual/virtual_world.h"
#include "tools/workload/generators.h"

namespace paceline::plugintest {

inline std::string module_path(const std::string& name) {
  return std::string(PACELINE_PLUGINS) + name + ".so";
}

inline const cc::AlgorithmInfo& loaded(const std::string& name) {
  const cc::Registered registered = load_plugin(module_path(name));
  INFO(registered.error);
  REQUIRE(registered.info != nullptr);
  return *registered.info;
}

inline config::Scenario scenario_of(const std::string& toml) {
  auto read = config::read_scenario_text(toml, "test", ".", reader_options());
  REQUIRE(read.errors == std::vector<std::string>{});
  return std::move(read.value);
}

// Eight to one, with the algorithm (a name, or "plugin:PATH").
inline std::string incast_toml(const std::string& algorithm, const std::string& bytes = "1MB") {
  return "seed = 5\n[fabric]\nhosts = 9\n[cc]\nalgorithm = \"" + algorithm +
         "\"\nfallback = \"dcqcn\"\n[workload]\nkind = \"incast\"\nfan_in = 8\nmessage_bytes = \"" +
         bytes + "\"\nstart_jitter = \"1us\"\n";
}

inline std::string plugin_toml(const std::string& name, const std::string& bytes = "1MB") {
  return incast_toml("plugin:" + module_path(name), bytes);
}

// The world of an incast.
inline VirtualWorld world_of(const std::string& toml, WorldOptions options = {}) {
  const config::Scenario scenario = scenario_of(toml);
  options.check_invariants = true;
  return {scenario, workload::incast(scenario.workload, scenario.fabric.hosts, scenario.seed),
          std::move(options)};
}

inline telemetry::EngineCounters counted(const VirtualWorld& world) {
  telemetry::EngineCounters sum{};
  for (std::uint32_t h = 0; h < world.hosts(); ++h) sum += world.engine(h).counters();
  return sum;
}

// Incasts of the plug-in with data lost, control packets lost, and a link that is down for a while.
inline void check_survives(const std::string& plugin) {
  for (const char* fabric :
       {"loss = 1e-3\n", "drop_control_ppm = 50000\n",
        "[[event]]\nat = \"30us\"\nlink = \"host8\"\naction = \"down\"\n[[event]]\nat = "
        "\"500us\"\nlink = \"host8\"\naction = \"up\"\n"}) {
    INFO(fabric);
    std::string toml = plugin_toml(plugin, "200kB");
    toml.insert(toml.find("[cc]"), fabric);
    VirtualWorld world = world_of(toml);
    REQUIRE(world.run() == RunEnd::completed);
    CHECK(world.messages_failed() == 0);
    CHECK(counted(world).plugin_quarantines == 0);
  }
}

// An incast whose algorithm changes again and again, between the plug-in, a built-in and swift.
inline void check_changes_under_way(const std::string& plugin, const std::string& built_in) {
  const cc::AlgorithmInfo& info = loaded(plugin);
  WorldOptions options;
  options.control_interval = picos_from_micros(50);
  unsigned changes = 0;
  std::set<cc::AlgorithmId> seen;
  options.control = [&](VirtualWorld& world, Picos) {
    config::CcConfig cc;
    const std::string turns[] = {plugin, built_in, plugin, "swift"};
    cc.algorithm = turns[changes % 4];
    cc.fallback = "dcqcn";
    const transport::CcSetup setup = world.cc_setup(cc);
    seen.insert(setup.primary.algorithm);
    world.reconfigure(setup, static_cast<std::uint8_t>(changes % 2), 0);
    ++changes;
  };
  VirtualWorld world = world_of(incast_toml("dcqcn"), std::move(options));
  REQUIRE(world.run() == RunEnd::completed);
  CHECK(world.messages_failed() == 0);
  CHECK(changes >= 8);
  CHECK(seen.count(info.id) == 1);
  CHECK(seen.size() == 3);
  CHECK(world.problem().empty());
  CHECK(counted(world).plugin_quarantines == 0);
}

}  // namespace paceline::plugintest
