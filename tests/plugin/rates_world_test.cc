// Plug-ins with rates in a fabric in virtual time: those that are right share a port without a
// loss, those that are wrong are found, and nobody's message waits for them.

#include <array>
#include <string>

#include "tests/plugin/plugin_support.h"

namespace paceline::plugintest {
namespace {

// As in bad/bad_rates.c.
enum RatesFault : unsigned {
  kGood,
  kSilentPort,
  kPortState,
  kSenderState,
  kSenderInRound,
  kInGrant,
  kGrantRate,
  kNoLease,
  kLongLease,
  kNoNumber,
  kNoLimit,
  kHoldWithRate,
  kRoundAtOnce,
  kContextState,
  kFlags,
  kStuck,
  kUplinkState,
  kUplinkContext,
  kShareRate,
  kStartTotal
};

VirtualWorld faulty_world(unsigned fault, const std::string& bytes = "1MB") {
  std::string toml = plugin_toml("rates_faulty", bytes);
  toml.insert(toml.find("[workload]"), "params = { fault = " + std::to_string(fault) + " }\n");
  return world_of(toml);
}

Picos completion_of(const VirtualWorld& world) {
  Picos last{0};
  for (const MessageRecord& record : world.records()) last = std::max(last, record.completed);
  return last;
}

// Eight times a megabyte through one link of 100 Gb/s: no less than 640 us.
constexpr std::int64_t kSoonestPicos = 640'000'000;

TEST_CASE("a table of rates that is wrong is refused") {
  const std::array<std::pair<const char*, const char*>, 10> cases{{
      {"table", "the table of its rates has 16 bytes: there are at least"},
      {"uplink_bytes", "uplink_bytes = 4097: with rates allowed is 0 to 4096"},
      {"context_bytes", "uplink_context_bytes = 257: with rates allowed is 0 to 256"},
      {"port_bytes", "port_bytes = 4097: with rates allowed is 0 to 4096"},
      {"sender_bytes", "sender_bytes = 257: with rates allowed is 0 to 256"},
      {"uplink", "fill_want and on_uplink: either both are NULL, or neither"},
      {"grant", "rates: fill_grant is NULL"},
      {"both", "it has a receiving half and rates: allowed is one of them"},
      {"per_qp", "context = 0: with rates it is PACELINE_CC_PER_PEER_CLASS"},
      {"state", "state_bytes = 209: with rates allowed is 0 to 208"},
  }};
  for (const auto& [name, why] : cases) {
    const cc::Registered registered = load_plugin(module_path(std::string("rates_") + name));
    INFO(name << ": " << registered.error);
    CHECK(registered.info == nullptr);
    CHECK(registered.error.find(why) != std::string::npos);
  }
}

TEST_CASE("equal rates share a port without a loss, and repeat") {
  const cc::AlgorithmInfo& info = loaded("equal");
  CHECK(info.proactive);
  CHECK(info.key == cc::ContextKey::per_peer_class);
  VirtualWorld world = world_of(plugin_toml("equal"));
  REQUIRE(world.run() == RunEnd::completed);
  CHECK(world.messages_failed() == 0);
  CHECK(world.network().stats().total_drops() == 0);
  const telemetry::EngineCounters total = counted(world);
  CHECK(total.requests_received >= 8);
  CHECK(total.grants_received >= 8);
  CHECK(total.plugin_clamped == 0);
  CHECK(total.plugin_nonsense == 0);
  CHECK(total.plugin_quarantines == 0);
  CHECK(total.fallbacks == 0);
  CHECK(completion_of(world).count > kSoonestPicos);
  CHECK(completion_of(world).count < kSoonestPicos * 6 / 5);

  VirtualWorld again = world_of(plugin_toml("equal"));
  REQUIRE(again.run() == RunEnd::completed);
  CHECK(again.trace_hash() == world.trace_hash());
}

TEST_CASE("rates survive loss of data and of control packets, and a link that is down") {
  check_survives("equal");
}

TEST_CASE("what a port with rates does wrong is found, and all messages complete") {
  for (const RatesFault fault :
       {kSilentPort, kPortState, kSenderState, kSenderInRound, kInGrant, kGrantRate, kNoLease,
        kLongLease, kNoNumber, kNoLimit, kHoldWithRate}) {
    INFO("fault " << fault);
    VirtualWorld world = faulty_world(fault);
    REQUIRE(world.run() == RunEnd::completed);
    CHECK(world.messages_failed() == 0);
    const telemetry::EngineCounters total = counted(world);
    CHECK(total.plugin_receiver_quarantines == 1);
    CHECK(total.plugin_quarantines == 1);
    CHECK(total.plugin_nonsense <= 2 * 16);
    // The host's own rule fills most of the link.
    CHECK(completion_of(world).count < kSoonestPicos * 2);
  }
}

TEST_CASE("a round at once is put off, and nothing worse") {
  for (const RatesFault fault : {kGood, kRoundAtOnce}) {
    VirtualWorld world = faulty_world(fault);
    REQUIRE(world.run() == RunEnd::completed);
    CHECK(world.messages_failed() == 0);
    const telemetry::EngineCounters total = counted(world);
    CHECK(total.plugin_quarantines == 0);
    CHECK(total.plugin_nonsense == 0);
    CHECK((total.plugin_clamped != 0) == (fault == kRoundAtOnce));
  }
}

TEST_CASE("a sending half with rates in quarantine gives its contexts to the fallback") {
  for (const RatesFault fault :
       {kContextState, kFlags, kStuck, kUplinkState, kUplinkContext, kShareRate, kStartTotal}) {
    INFO("fault " << fault);
    // Requests and shares are few: 16 that are wrong take a while.
    VirtualWorld world = faulty_world(fault, "4MB");
    REQUIRE(world.run() == RunEnd::completed);
    CHECK(world.messages_failed() == 0);
    const telemetry::EngineCounters total = counted(world);
    CHECK(total.plugin_quarantines >= 8);
    CHECK(total.fallbacks >= 8);
    CHECK(total.plugin_receiver_quarantines == 0);
  }
}

TEST_CASE("a plug-in with rates takes over under way, and is left again") {
  check_changes_under_way("equal", "cadence");
}

}  // namespace
}  // namespace paceline::plugintest
