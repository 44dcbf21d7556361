// Every packet that arrives is delivered, held, or counted by the reason why not: random worlds
// with every transport and every mistake. Engine::check_conservation has the sum.
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <string>

#include "dataplane/base/numbers/random.h"
#include "tests/soak/host.h"
#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

constexpr std::uint32_t kWorldKey = 7;
constexpr QpType kTypes[] = {QpType::rc, QpType::uc, QpType::ud};

struct RandomWorld {
  RandomWorld(std::uint64_t seed, Reliability reliability)
      : random(seed, 1),
        lab(options_of(seed, reliability)),
        slow(lab.b().memory, Random(seed, 2)),
        slow_key(lab.b().engine.regions().add_provided(Lab::kBase, Lab::kMemoryBytes, slow,
                                                       soak::Host::kAccess)) {
    QpPath path;
    path.ip = wire::IpAddress::v4(0x0A00'0002);
    path.mac = wire::MacAddress::local(2);
    handle = lab.a().engine.create_address_handle(lab.now(), 0, path);
    for (unsigned i = 0; i < std::size(kTypes); ++i) make(i);
  }
  static LabOptions options_of(std::uint64_t seed, Reliability reliability) {
    Random random(seed, 3);
    LabOptions options = small_packets();
    options.seed = seed;
    options.engine.reliability = reliability;
    options.engine.cnp_in_ack = random.below(4) == 0;
    options.qp.min_rnr_timer = 1;
    options.qp.retransmit_timeout = picos_from_micros(100);
    if (random.below(4) != 0) {
      options.impairments = {.drop = 0.02, .corrupt = 0.01, .duplicate = 0.02, .reorder = 0.05};
    }
    return options;
  }

  void make(unsigned i) {
    QpConfig a = lab.qp_config(0);
    QpConfig b = lab.qp_config(1);
    a.type = b.type = kTypes[i];
    if (a.type != QpType::ud) {
      pair[i] = lab.connect(a, b, static_cast<std::uint32_t>(random.below(1U << 24)), 0);
      return;
    }
    pair[i] = {make_datagram(0, a), make_datagram(1, b)};
  }
  std::uint32_t make_datagram(unsigned side, const QpConfig& config) {
    Engine& engine = lab.side(side).engine;
    const std::uint32_t number = engine.create_qp(config);
    QpAttributes attributes;
    attributes.qkey = kWorldKey;
    for (const QpState to : {QpState::init, QpState::rtr, QpState::rts}) {
      attributes.state = to;
      const std::uint32_t mask =
          transition_rule(QpType::ud, engine.view().state_of(number), to).required;
      REQUIRE(engine.modify_qp(lab.now(), number, attributes, mask | qp_attribute::state).ok());
    }
    return number;
  }

  // Mostly right; one in `in` is not.
  bool wrongly(std::uint32_t in = 40) { return random.below(in) == 0; }
  std::uint64_t length(unsigned i) {
    return random.below(kTypes[i] == QpType::ud ? kMtu + 1 : 6 * kMtu);
  }

  void post(unsigned i) {
    constexpr WorkOpcode kOpcodes[] = {WorkOpcode::send, WorkOpcode::write, WorkOpcode::write_imm,
                                       WorkOpcode::read, WorkOpcode::fetch_add};
    const std::size_t offered = kTypes[i] == QpType::ud ? 1 : kTypes[i] == QpType::uc ? 3 : 5;
    const WorkOpcode opcode = kOpcodes[random.below(offered)];
    WorkRequest request = lab.request(opcode, 0, 0, 8 * random.below(1000), length(i));
    if (is_atomic(opcode)) request.length = kAtomicBytes;
    if (random.below(3) == 0) request.remote_key = slow_key;
    if (wrongly()) request.remote_key ^= 0x5500;
    request.address_handle = handle;
    request.target_qp_number = wrongly() ? pair[0].b : pair[i].b;
    request.target_qkey = wrongly() ? kWorldKey + 1 : kWorldKey;
    lab.post(0, pair[i].a, request);
  }
  // One receive queue serves all three.
  void receive() {
    ReceiveRequest request;
    request.address = Lab::kBase;
    request.length = wrongly(10) ? random.below(kMtu) : 8 * kMtu;
    request.local_key = wrongly(60) ? 0 : random.below(3) == 0 ? slow_key : lab.b().key;
    lab.b().receives.post(request);
  }
  void disturb(unsigned i) {
    const auto side = static_cast<unsigned>(random.below(2));
    Engine& engine = lab.side(side).engine;
    const std::uint32_t number = side == 0 ? pair[i].a : pair[i].b;
    if (random.below(2) == 0) {
      engine.destroy_qp(lab.now(), number);
    } else {
      QpAttributes error;
      error.state = QpState::error;
      engine.modify_qp(lab.now(), number, error, qp_attribute::state);
    }
    lab.touch(side);
  }
  // Both anew; the one at b only sometimes, so that packets come for what is gone.
  void renew(unsigned i) {
    lab.a().engine.destroy_qp(lab.now(), pair[i].a);
    lab.b().engine.destroy_qp(lab.now(), pair[i].b);
    make(i);
  }
  void run(std::int64_t nanos) {
    const Picos until = lab.now() + picos_from_nanos(nanos);
    for (bool more = true; more && lab.now() < until;) {
      const bool quiet = lab.run(earlier(until, later(slow.next(), lab.now() + Picos{1})));
      due.clear();
      // Where nothing else happens, time does not advance by itself.
      slow.take_due(quiet && slow.next() != kNever ? later(lab.now(), slow.next()) : lab.now(),
                    due);
      for (const std::uint32_t number : due) {
        lab.b().engine.memory_ready(lab.now(), number);
        lab.touch(1);
      }
      more = !quiet || !due.empty();
      for (unsigned side = 0; side < 2; ++side) {
        lab.side(side).sent();
        lab.side(side).received();
      }
    }
  }
  std::string broken() {
    for (unsigned side = 0; side < 2; ++side) {
      const std::string text = lab.side(side).engine.view().check_conservation();
      if (!text.empty()) return (side == 0 ? "a: " : "b: ") + text;
    }
    return {};
  }

  Random random;
  Lab lab;
  soak::SlowMemory slow;
  std::uint32_t slow_key;
  std::uint32_t handle = 0;
  Lab::Pair pair[std::size(kTypes)];
  std::vector<std::uint32_t> due;
};

TEST_CASE("each packet that arrives is delivered, held or counted by a reason, in random worlds",
          "[transport]") {
  std::map<std::string, std::uint64_t> seen;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Reliability reliability = seed % 2 == 0 ? Reliability::selective : Reliability::go_back_n;
    INFO("seed " << seed << (seed % 2 == 0 ? ", selective" : ", go-back-N"));
    RandomWorld world(seed, reliability);
    for (int step = 0; step < 150; ++step) {
      const auto i = static_cast<unsigned>(world.random.below(std::size(kTypes)));
      for (std::uint64_t n = world.random.below(4); n != 0; --n) world.receive();
      for (std::uint64_t n = world.random.below(4); n != 0; --n) world.post(i);
      world.run(static_cast<std::int64_t>(world.random.below(20'000)));
      if (world.wrongly(30)) world.disturb(i);
      if (world.wrongly(10)) world.renew(i);
      INFO("step " << step);
      REQUIRE(world.broken() == "");
    }
    world.run(1'000'000);
    REQUIRE(world.broken() == "");
    for (unsigned i = 0; i < std::size(kTypes); ++i) {
      world.lab.a().engine.destroy_qp(world.lab.now(), world.pair[i].a);
      world.lab.b().engine.destroy_qp(world.lab.now(), world.pair[i].b);
    }
    world.run(1'000'000);
    REQUIRE(world.broken() == "");
    for (unsigned side = 0; side < 2; ++side) {
      telemetry::for_each_undelivered(
          world.lab.side(side).counters(),
          [&](std::string_view name, std::uint64_t count) { seen[std::string(name)] += count; });
    }
  }
  // The worlds come to every reason but four: no switch trims here, no engine sends what it does
  // not have, and an honest peer keeps to the lengths that requests and responses must have.
  for (const auto& [name, count] : seen) {
    if (name == "rx_trimmed" || name == "unsupported_operations" || name == "dropped_bad_request" ||
        name == "dropped_bad_response") {
      continue;
    }
    INFO(name);
    CHECK(count != 0);
  }
}

}  // namespace
}  // namespace paceline::transport::test
