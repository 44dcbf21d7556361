// Plug-ins with a receiving half in a fabric in virtual time: those that are right share a port,
// those that are wrong are found, and nobody's message waits for them.

#include <array>
#include <string>

#include "cc/params.h"
#include "tests/plugin/plugin_support.h"

namespace paceline::plugintest {
namespace {

// As in bad/bad_receiver.c.
enum Fault : unsigned {
  kNone,
  kSilent,
  kNobody,
  kBeyond,
  kBackwards,
  kMany,
  kPort,
  kSender,
  kGrants,
  kOnRequest,
  kBusy,
  kAsleep,
  kTiny,
  kAll,
  kContext,
  kRate
};

std::string faulty_toml(unsigned fault) {
  std::string toml = plugin_toml("faulty");
  toml.insert(toml.find("[workload]"), "params = { fault = " + std::to_string(fault) + " }\n");
  return toml;
}

Picos last_of(const VirtualWorld& world) {
  Picos last{0};
  for (const MessageRecord& record : world.records()) last = std::max(last, record.completed);
  return last;
}

// Eight times a megabyte through one link of 100 Gb/s: no less than 640 us.
constexpr std::int64_t kLeastPicos = 640'000'000;

TEST_CASE("a plug-in with a receiving half is a proactive algorithm") {
  const cc::AlgorithmInfo& info = loaded("creditor");
  CHECK(info.proactive);
  CHECK(info.key == cc::ContextKey::per_peer_class);
  CHECK(info.params.size() == 4);
}

TEST_CASE("a table of a receiving half that is wrong is refused") {
  const std::array<std::pair<const char*, const char*>, 7> cases{{
      {"rules", "rules: outstanding_bytes = 1: allowed is 4178 to"},
      {"table", "the table of its receiving half has 16 bytes: there are at least"},
      {"port_bytes", "port_bytes = 4097: with a receiving half allowed is 0 to 4096"},
      {"sender_bytes", "sender_bytes = 257: with a receiving half allowed is 0 to 256"},
      {"round", "on_round is NULL"},
      {"per_qp", "context = 0: with a receiving half it is PACELINE_CC_PER_PEER_CLASS"},
      {"channel", "state_bytes = 81: with a receiving half allowed is 0 to 80"},
  }};
  for (const auto& [name, why] : cases) {
    const cc::Registered registered = load_plugin(module_path(std::string("receiver_") + name));
    INFO(name << ": " << registered.error);
    CHECK(registered.info == nullptr);
    CHECK(registered.error.find(why) != std::string::npos);
  }
}

TEST_CASE("credit in a hundred lines of C fills a port, keeps its queue short, and repeats") {
  VirtualWorld world = world_of(plugin_toml("creditor"));
  REQUIRE(world.run() == RunEnd::completed);
  CHECK(world.messages_failed() == 0);
  const telemetry::EngineCounters total = counted(world);
  CHECK(total.requests_received > 0);
  CHECK(total.grants_received > 8 * 200);  // a packet each, of 245 of a message
  CHECK(total.plugin_clamped == 0);
  CHECK(total.plugin_nonsense == 0);
  CHECK(total.plugin_quarantines == 0);
  CHECK(total.fallbacks == 0);
  CHECK(last_of(world).count > kLeastPicos);
  CHECK(last_of(world).count < kLeastPicos * 5 / 4);  // as good as all of the link

  VirtualWorld again = world_of(plugin_toml("creditor"));
  REQUIRE(again.run() == RunEnd::completed);
  CHECK(again.trace_hash() == world.trace_hash());

  // What is on its way to the port stays within one and a half round trips' worth, so hardly
  // anything is marked, where senders that react have the marks to react to.
  VirtualWorld reactive = world_of(incast_toml("dcqcn"));
  REQUIRE(reactive.run() == RunEnd::completed);
  CHECK(4 * world.network().stats().marked_packets < reactive.network().stats().marked_packets);
}

TEST_CASE("credit survives loss of data and of control packets, and a link that is down") {
  check_survives("creditor");
}

TEST_CASE("what a receiving half does wrong is found, and all messages complete") {
  for (const Fault fault :
       {kSilent, kNobody, kBeyond, kBackwards, kMany, kPort, kSender, kGrants, kOnRequest}) {
    INFO("fault " << fault);
    VirtualWorld world = world_of(faulty_toml(fault));
    REQUIRE(world.run() == RunEnd::completed);
    CHECK(world.messages_failed() == 0);
    const telemetry::EngineCounters total = counted(world);
    // The port that receives; its eight channels back go to their fallback.
    CHECK(total.plugin_receiver_quarantines == 1);
    CHECK(total.plugin_quarantines == 1);
    CHECK(total.plugin_nonsense <= 2 * 16);
    // The host's own rule fills the link: nobody waited for a time-out to find out.
    CHECK(last_of(world).count < kLeastPicos * 3 / 2);
  }
}

TEST_CASE("what is only immoderate in a receiving half is clamped") {
  for (const Fault fault : {kNone, kBusy, kAsleep, kTiny, kAll}) {
    INFO("fault " << fault);
    VirtualWorld world = world_of(faulty_toml(fault));
    REQUIRE(world.run() == RunEnd::completed);
    CHECK(world.messages_failed() == 0);
    const telemetry::EngineCounters total = counted(world);
    CHECK(total.plugin_quarantines == 0);
    CHECK(total.plugin_nonsense == 0);
    CHECK((total.plugin_clamped != 0) == (fault != kNone && fault != kAsleep));
    CHECK(last_of(world).count < 4 * kLeastPicos);
  }
}

TEST_CASE("a sending half in quarantine gives its channels to the fallback") {
  for (const Fault fault : {kContext, kRate}) {
    INFO("fault " << fault);
    VirtualWorld world = world_of(faulty_toml(fault));
    REQUIRE(world.run() == RunEnd::completed);
    CHECK(world.messages_failed() == 0);
    const telemetry::EngineCounters total = counted(world);
    CHECK(total.plugin_quarantines >= 8);
    CHECK(total.fallbacks >= 8);
  }
}

TEST_CASE("a plug-in with a receiving half takes over under way, and is left again") {
  check_changes_under_way("creditor", "homa");
}

}  // namespace
}  // namespace paceline::plugintest
