// A worker's turns under a made-up clock: order, idleness, and what it makes of time that is
// missing.

#include <catch2/catch.hpp>
#include <vector>

#include "dataplane/driver/scenario/real_time_defaults.h"
#include "tests/support/ring_port.h"
#include "tests/support/roce_engine.h"
#include "tests/support/worker.h"

namespace paceline {
namespace {

using Action = IdlePolicy::Action;

constexpr Picos us(std::int64_t n) { return picos_from_micros(n); }

struct WorkerLab final : WorkerApp {
  WorkerLab()
      : cable(RingCableConfig{}),
        engine(test::roce_engine_config(wire::IpAddress::v4(0x0A000001), wire::MacAddress::local(1),
                                        cable.end(0).info(), cc::AlgorithmId::fixed),
               cable.end(0)) {}
  bool step(Picos now) override {
    steps.push_back(now);
    return posts;
  }
  Picos next_step() const override { return wanted; }
  WorkerTask task() { return {&engine, &cable.end(0), this}; }

  RingCable cable;
  transport::Engine engine;
  bool posts = false;
  Picos wanted = kNever;
  std::vector<Picos> steps;
};

TEST_CASE("worker: an engine is polled when there is a reason to") {
  WorkerLab lab;
  Worker worker;
  worker.add(lab.task());
  CHECK(!worker.turn(us(1)));  // nothing arrived, nothing is due
  CHECK(worker.counters().polls == 0);
  lab.posts = true;
  CHECK(worker.turn(us(2)));
  CHECK(worker.counters().polls == 1);
  lab.posts = false;
  // A packet for nobody: it is taken and counted.
  Packet* packet = lab.cable.end(1).packets().alloc();
  REQUIRE(packet != nullptr);
  packet->header_bytes = 60;
  packet->payload_bytes = 0;
  packet->payload_kind = PayloadKind::none;
  REQUIRE(lab.cable.end(1).tx(us(2), 0, {&packet, 1}) == 1);
  CHECK(worker.turn(us(3)));
  CHECK(worker.counters().polls == 2);
  CHECK(lab.engine.counters().rx_packets == 1);
  CHECK(telemetry::malformed_total(lab.engine.counters()) == 1);
  CHECK(!worker.turn(us(4)));
  CHECK(lab.steps == std::vector<Picos>{us(1), us(2), us(3), us(4)});
  CHECK(worker.counters().turns == 4);
  CHECK(worker.counters().busy_turns == 2);
  CHECK(worker.counters().stopped_at == us(4));
  lab.wanted = us(9);
  CHECK(worker.next_deadline() == us(9));
}

// One end of a cable whose application has a SEND for whatever it is told to answer.
struct TalkingEnd final : WorkerApp {
  static constexpr std::uint64_t kBase = 0x1000;
  static constexpr std::uint32_t kBytes = 64;

  TalkingEnd(RingCable& cable, unsigned index, bool last)
      : port(cable.end(index)), self(index), engine(config_of(index, last), port), receives(8) {
    key = engine.regions().add_plain(kBase, memory, transport::access::local_write);
    transport::QpConfig config;
    config.send_cq = config.receive_cq = &done;
    config.receive_queue = &receives;
    qp = engine.create_qp(config);
    receives.post({1, kBase, kBytes, key});
  }
  transport::EngineConfig config_of(unsigned index, bool last) const {
    transport::EngineConfig config = test::roce_engine_config(
        wire::IpAddress::v4(0x0A000001 + index), wire::MacAddress::local(index + 1), port.info(),
        cc::AlgorithmId::fixed);
    apply_real_time_defaults(config);
    config.answers_last = last;
    return config;
  }
  bool connect(std::uint32_t remote) {
    return engine.connect(
        {0}, qp,
        {wire::IpAddress::v4(0x0A000002 - self), wire::MacAddress::local(2 - self), remote, Psn(7)},
        Psn(7), 0xC000);
  }
  bool post(Picos now, std::uint64_t bytes) {
    transport::WorkRequest request;
    request.opcode = transport::WorkOpcode::send;
    request.local_address = kBase;
    request.local_key = key;
    request.length = bytes;
    return engine.post_send(now, qp, request) == transport::PostResult::ok;
  }
  // Answers what has come.
  bool step(Picos now) override {
    transport::Completion completion;
    bool posted = false;
    while (done.poll({&completion, 1}) != 0) {
      if (completion.opcode != transport::CompletionOpcode::receive) continue;
      posted = post(now, answer_bytes);
    }
    return posted;
  }
  WorkerTask task() { return {&engine, &port, this}; }

  Port& port;
  unsigned self;
  transport::CompletionQueue done{16};
  transport::Engine engine;
  transport::ReceiveQueue receives;
  std::vector<std::byte> memory = std::vector<std::byte>(16384);
  std::uint32_t key = 0;
  std::uint32_t qp = 0;
  std::uint64_t answer_bytes = kBytes;
};

// The opcodes that a SEND is answered with, in one turn of its receiver.
std::vector<wire::Opcode> answered_with(bool last, std::uint64_t answer_bytes) {
  RingCable cable;
  TalkingEnd asking(cable, 0, last);
  TalkingEnd answering(cable, 1, last);
  answering.answer_bytes = answer_bytes;
  REQUIRE(asking.connect(answering.qp));
  REQUIRE(answering.connect(asking.qp));
  REQUIRE(asking.post(us(1), TalkingEnd::kBytes));
  asking.engine.poll(us(1));
  Worker worker;
  worker.add(answering.task());
  CHECK(worker.turn(us(2)));
  std::vector<wire::Opcode> opcodes;
  Packet* packet = nullptr;
  while (asking.port.rx({&packet, 1}) != 0) {
    opcodes.push_back(static_cast<wire::Opcode>(packet->header[packet->bth_offset]));
    asking.port.packets().free(packet);
  }
  return opcodes;
}

TEST_CASE("worker: what comes is answered in the same turn, and acknowledged behind the answer") {
  using enum wire::Opcode;
  CHECK(answered_with(true, 64) == std::vector{rc_send_only, rc_acknowledge});
  CHECK(answered_with(false, 64) == std::vector{rc_acknowledge, rc_send_only});
  // A message of more than one packet would go ahead as a whole: it waits for the acknowledgement.
  CHECK(answered_with(true, 4097) == std::vector{rc_acknowledge, rc_send_first, rc_send_last});
}

TEST_CASE("worker: time that is missing is counted and told to the engines") {
  WorkerLab one;
  WorkerLab two;
  Worker worker({.name = "w", .watch = {.hiccup = us(100), .stall_limit = us(10'000)}});
  worker.add(one.task());
  worker.add(two.task());
  const auto stops = [&] {
    return one.engine.view().host_stops().count + two.engine.view().host_stops().count;
  };
  worker.turn(us(500));  // the first has none before it
  worker.turn(us(600));  // as long as allowed
  CHECK(worker.watch().counters().hiccups == 0);
  CHECK(stops() == 0);
  worker.turn(us(701));
  CHECK(worker.watch().counters().hiccups == 1);
  CHECK(worker.watch().counters().stalls == 0);
  CHECK(stops() == 2);
  worker.turn(us(701 + 10'000));
  CHECK(worker.watch().counters().stalls == 0);
  worker.turn(us(30'702));
  const WatchCounters c = worker.watch().counters();
  CHECK(c.hiccups == 3);
  CHECK(c.hiccup_time == us(101 + 10'000 + 20'001));
  CHECK(c.stalls == 1);
  CHECK(c.longest == us(20'001));
  CHECK(c.last_stall_at == us(30'702));
  CHECK(c.last_turn_at == us(30'702));
  CHECK(one.engine.view().host_stops().count == 3);
  CHECK(one.engine.view().host_stops().total == us(101 + 10'000 + 20'001));
  CHECK(one.engine.view().host_stops().until == us(30'702));
}

// On a machine where others always have the processors every turn comes late. Due work continues.
TEST_CASE("worker: deadlines are kept where every turn is a hiccup") {
  constexpr std::uint64_t kPackets = 20;
  constexpr std::uint64_t kBase = 0x1000;
  WorkerLab lab;
  std::vector<std::byte> memory(kPackets * 4096);
  transport::CompletionQueue done(16);
  transport::ReceiveQueue receives(1);
  const std::uint32_t key =
      lab.engine.regions().add_plain(kBase, memory, transport::access::local_write);
  transport::QpConfig config;
  config.send_cq = config.receive_cq = &done;
  config.receive_queue = &receives;
  const std::uint32_t qp = lab.engine.create_qp(config);
  const transport::QpAddress nobody{wire::IpAddress::v4(0x0A000002), wire::MacAddress::local(2), 77,
                                    Psn(0)};
  REQUIRE(lab.engine.connect({0}, qp, nobody, Psn(0), 0xC000));
  transport::WorkRequest request;
  request.opcode = transport::WorkOpcode::write;
  request.local_address = kBase;
  request.local_key = key;
  request.length = memory.size();
  Worker worker({.watch = {.hiccup = us(20), .stall_limit = us(10'000)}});
  worker.add(lab.task());
  worker.turn(us(0));
  REQUIRE(lab.engine.post_send(us(100), qp, request) == transport::PostResult::ok);
  lab.posts = true;
  worker.turn(us(100));
  lab.posts = false;
  // At 10 Gb/s a packet is due every 3.4 us: many turns' worth of them, were they sent one by one.
  const std::uint64_t first = lab.engine.counters().tx_data_bytes;
  for (std::int64_t turn = 1; turn <= 30; ++turn) worker.turn(us(100 + 100 * turn));
  CHECK(worker.watch().counters().hiccups >= 30);
  CHECK(first < memory.size());
  CHECK(lab.engine.counters().tx_data_bytes == memory.size());
  CHECK(lab.engine.counters().retransmitted_packets == 0);
}

TEST_CASE("worker: a sleep is no hiccup, to wake up late from it is") {
  WorkerLab lab;
  Worker worker({.watch = {.hiccup = us(100), .stall_limit = us(10'000)}});
  worker.add(lab.task());
  worker.turn(us(0));
  worker.turn(us(1050), us(1000));
  CHECK(worker.watch().counters().hiccups == 0);
  CHECK(lab.engine.view().host_stops().count == 1);  // nobody looked, all the same
  worker.turn(us(2200), us(1000));
  CHECK(worker.watch().counters().hiccups == 1);
  CHECK(worker.watch().counters().hiccup_time == us(150));
}

const auto kMay = [] { return true; };

TEST_CASE("idle: spin never, yield every so many turns") {
  IdlePolicy spin({.how = Idle::spin});
  IdlePolicy yield({.how = Idle::yield, .turns_before_yield = 3});
  std::vector<Action> actions;
  for (int i = 0; i < 7; ++i) {
    CHECK(spin.idle(us(i * 1000), kNever, kMay).action == Action::again);
    actions.push_back(yield.idle(us(i), kNever, kMay).action);
  }
  const auto a = Action::again;
  const auto y = Action::yield;
  CHECK(actions == std::vector<Action>{a, a, y, a, a, y, a});
  yield.worked();
  CHECK(yield.idle(us(9), kNever, kMay).action == a);
}

TEST_CASE("idle: sleeps grow, end at the deadline, and begin anew after work") {
  const IdleSettings settings{
      .how = Idle::sleep, .spin_for = us(20), .shortest_sleep = us(50), .longest_sleep = us(150)};
  IdlePolicy policy(settings);
  const auto at = [&](std::int64_t now, Picos deadline = kNever) {
    return policy.idle(us(now), deadline, kMay);
  };
  CHECK(at(0).action == Action::again);
  CHECK(at(19).action == Action::again);
  CHECK(at(20).action == Action::yield);
  CHECK(at(199).action == Action::yield);
  for (const std::int64_t expected : {50, 100, 150, 150}) {
    const auto advice = at(200);
    CHECK(advice.action == Action::sleep);
    CHECK(advice.time == us(expected));
  }
  CHECK(at(200, us(260)).time == us(60));
  CHECK(at(200, us(249)).action == Action::yield);  // too near
  CHECK(at(200, us(100)).action == Action::yield);  // passed
  policy.worked();
  CHECK(at(300).action == Action::again);
  CHECK(at(500).time == us(50));
}

TEST_CASE("idle: where processors are few, it spins a sixteenth as long and sleeps no sooner") {
  IdlePolicy policy({.how = Idle::sleep, .spin_for = us(16), .few_processors = true});
  const auto at = [&](std::int64_t now) { return policy.idle(us(now), kNever, kMay).action; };
  CHECK(at(0) == Action::again);
  CHECK(at(1) == Action::yield);
  CHECK(at(159) == Action::yield);
  CHECK(at(160) == Action::sleep);
}

TEST_CASE("idle: no sleep while an answer is awaited; that is asked once per pause") {
  IdlePolicy policy({.how = Idle::sleep});
  int asked = 0;
  bool may = false;
  const auto ask = [&] {
    ++asked;
    return may;
  };
  for (int i = 0; i < 100; ++i) {
    CHECK(policy.idle(us(i * 10), kNever, ask).action != Action::sleep);
  }
  CHECK(asked == 1);
  policy.worked();
  may = true;
  CHECK(policy.idle(us(2000), kNever, ask).action == Action::again);
  CHECK(policy.idle(us(2300), kNever, ask).action == Action::sleep);
  CHECK(asked == 2);
}

}  // namespace
}  // namespace paceline
