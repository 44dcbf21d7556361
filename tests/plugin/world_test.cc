// Plug-ins in a fabric in virtual time.

#include <string>
#include <vector>

#include "tests/plugin/plugin_support.h"

namespace paceline::plugintest {
namespace {

Picos end_of(const VirtualWorld& world) {
  Picos last{0};
  for (const MessageRecord& record : world.records()) last = std::max(last, record.completed);
  return last;
}

TEST_CASE("AIMD in a page of C shares a port, heeds marks, and repeats to the last bit") {
  VirtualWorld world = world_of(plugin_toml("aimd"));
  REQUIRE(world.run() == RunEnd::completed);
  const telemetry::EngineCounters total = counted(world);
  CHECK(total.cnps_received > 0);
  CHECK(total.plugin_clamped == 0);
  CHECK(total.plugin_nonsense == 0);
  CHECK(total.plugin_quarantines == 0);
  CHECK(total.fallbacks == 0);

  VirtualWorld again = world_of(plugin_toml("aimd"));
  REQUIRE(again.run() == RunEnd::completed);
  CHECK(again.trace_hash() == world.trace_hash());

  // Eight times a megabyte through one link of 100 Gb/s; no less than 640 us, and no idler than a
  // third of the time.
  CHECK(end_of(world).count > 640'000'000);
  CHECK(end_of(world).count < 960'000'000);

  VirtualWorld heeding = world_of(plugin_toml("aimd", "16MB"));
  REQUIRE(heeding.run() == RunEnd::completed);
  VirtualWorld deaf = world_of(plugin_toml("blaster", "16MB"));
  REQUIRE(deaf.run() == RunEnd::completed);
  CHECK(counted(deaf).plugin_quarantines == 0);  // its decisions are all legal
  VirtualWorld fixed = world_of(incast_toml("fixed", "16MB"));
  REQUIRE(fixed.run() == RunEnd::completed);
  CHECK(deaf.trace_hash() == fixed.trace_hash());
  CHECK(2 * heeding.network().stats().marked_packets < deaf.network().stats().marked_packets);
}

TEST_CASE("a law behind the interface makes the very decisions of the built-in") {
  VirtualWorld built_in = world_of(incast_toml("dcqcn"));
  VirtualWorld plugin = world_of(plugin_toml("dcqcn"));
  REQUIRE(built_in.run() == RunEnd::completed);
  REQUIRE(plugin.run() == RunEnd::completed);
  REQUIRE(counted(built_in).cnps_received > 0);
  CHECK(counted(plugin).plugin_clamped == 0);
  CHECK(plugin.trace_hash() == built_in.trace_hash());
}

TEST_CASE("what was built against version 1.0 runs") {
  VirtualWorld world = world_of(plugin_toml("halver"));
  REQUIRE(world.run() == RunEnd::completed);
  CHECK(counted(world).cnps_received > 0);
  CHECK(counted(world).plugin_quarantines == 0);
}

TEST_CASE("the flows of a plug-in in quarantine go on under the fallback") {
  for (const char* name : {"wrong_nan", "wrong_window", "wrong_overrun", "wrong_stop"}) {
    INFO(name);
    VirtualWorld world = world_of(plugin_toml(name));
    REQUIRE(world.run() == RunEnd::completed);
    CHECK(world.messages_failed() == 0);
    const telemetry::EngineCounters total = counted(world);
    CHECK(total.plugin_quarantines == 8);  // one plug-in, by each host that sends
    CHECK(total.fallbacks >= 8);
    // Not called again; the receiver has eight contexts that were begun and send nothing.
    CHECK(total.plugin_nonsense <= 8 * 16 + 8);
  }
}

TEST_CASE("a plug-in takes over under way, and is left again") {
  check_changes_under_way("aimd", "cadence");
}

TEST_CASE("a plug-in in quarantine stays there when it is chosen again") {
  loaded("wrong_nan");
  WorldOptions options;
  options.control_interval = picos_from_micros(100);
  unsigned changes = 0;
  options.control = [&](VirtualWorld& world, Picos) {
    config::CcConfig cc;
    cc.algorithm = changes++ % 2 == 0 ? "swift" : "wrong_nan";
    cc.fallback = "dcqcn";
    world.reconfigure(world.cc_setup(cc), 0, 0);
  };
  VirtualWorld world = world_of(plugin_toml("wrong_nan"), std::move(options));
  REQUIRE(world.run() == RunEnd::completed);
  CHECK(changes >= 4);
  const telemetry::EngineCounters total = counted(world);
  // The ninth host sends no data, but has contexts, which every change asks.
  CHECK(total.plugin_quarantines >= 8);
  CHECK(total.plugin_quarantines <= 9);
  CHECK(total.plugin_nonsense <= 9 * 16);  // it was not called again
}

}  // namespace
}  // namespace paceline::plugintest
