// A host with two peers, one of which dies in the middle of a message: the queue pair to it gives
// up after its tries and says so, request by request; the other one does not notice.
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <vector>

#include "dataplane/neighbour/resolving_port.h"
#include "dataplane/transport/engine.h"
#include "tests/support/roce_engine.h"
#include "tests/unit/neighbour/hub.h"

namespace paceline::neighbour {
namespace {

using namespace transport;

constexpr std::uint64_t kMessage = 256 * 1024;
constexpr std::uint64_t kMessages = 8;
constexpr std::uint64_t kStationBase = 0x2000'0000;

struct Station {
  Station(test::Hub& hub, std::uint32_t n)
      : wire(hub.port(n)),
        port(wire, test::host_config(n + 1), Random(5, n)),
        engine(paceline::test::roce_engine_config(test::v4(n + 1), {}, port.info(),
                                                  cc::AlgorithmId::fixed),
               port),
        memory(2 * kMessages * kMessage),
        key(engine.regions().add_plain(kStationBase, memory,
                                       access::local_write | access::remote)) {}
  std::uint32_t make_qp() {
    QpConfig config;
    config.send_cq = &cq;
    config.receive_cq = &cq;
    config.retry_count = 3;
    config.retransmit_timeout = picos_from_micros(4000);
    return engine.create_qp(config);
  }
  void poll(Picos now) {
    wire.set_now(now);
    port.poll(now);
    engine.poll(now);
  }
  Picos next() const { return earlier(engine.next_deadline(), port.rx_ready_at()); }

  test::HubPort& wire;
  ResolvingPort port;
  Engine engine;
  std::vector<std::byte> memory;
  std::uint32_t key;
  CompletionQueue cq{256};
};

TEST_CASE("a peer that dies in the middle of a message costs its own queue pair only") {
  test::Hub hub(3, 8192);
  {
    std::array<std::unique_ptr<Station>, 3> stations;
    for (std::uint32_t n = 0; n < 3; ++n) stations[n] = std::make_unique<Station>(hub, n);
    Station& a = *stations[0];
    Picos now{0};
    // [0] to the one that lives, [1] to the one that dies.
    std::array<std::uint32_t, 2> qps{a.make_qp(), a.make_qp()};
    for (unsigned i = 0; i < 2; ++i) {
      Station& far = *stations[1 + i];
      const std::uint32_t theirs = far.make_qp();
      const std::uint16_t source_port = static_cast<std::uint16_t>(0xC001 + i);
      REQUIRE(a.engine.connect(now, qps[i], far.engine.address_of(theirs, Psn(7)), Psn(9),
                               source_port));
      REQUIRE(far.engine.connect(now, theirs, a.engine.address_of(qps[i], Psn(9)), Psn(7),
                                 source_port));
    }
    Random random(4, 4);
    for (std::byte& b : a.memory) b = static_cast<std::byte>(random.next());
    const auto post = [&](unsigned i, std::uint64_t id) {
      WorkRequest request;
      request.wr_id = id;
      request.opcode = WorkOpcode::write;
      request.length = kMessage;
      request.local_address = kStationBase + (i * kMessages + id) * kMessage;
      request.remote_address = kStationBase + id * kMessage;
      request.local_key = a.key;
      request.remote_key = stations[1 + i]->key;
      return a.engine.post_send(now, qps[i], request);
    };
    for (std::uint64_t id = 0; id < kMessages; ++id) {
      for (unsigned i = 0; i < 2; ++i) REQUIRE(post(i, id) == PostResult::ok);
    }
    std::array<std::vector<Completion>, 2> done;
    bool dead = false;
    Picos died{0};
    Picos gave_up{0};
    a.poll(now);
    while (now < picos_from_micros(200'000)) {
      Picos next = kNever;
      for (const auto& station : stations) next = earlier(next, station->next());
      if (next == kNever) break;
      now = later(now, next);
      for (const auto& station : stations) {
        if (station->next() <= now) station->poll(now);
      }
      Completion c;
      while (a.cq.poll({&c, 1}) == 1) done[c.qp_number == qps[0] ? 0 : 1].push_back(c);
      // In the middle of the fourth message.
      if (!dead && stations[2]->engine.counters().rx_data_bytes > 3 * kMessage + kMessage / 2) {
        dead = true;
        died = now;
        hub.plug(2, false);
      }
      if (gave_up.count == 0 && a.engine.view().state_of(qps[1]) == QpState::error) gave_up = now;
    }
    REQUIRE(dead);
    // The survivor: everything, and right.
    REQUIRE(done[0].size() == kMessages);
    for (const Completion& c : done[0]) CHECK(c.status == CompletionStatus::success);
    CHECK(std::memcmp(stations[1]->memory.data(), a.memory.data(), kMessages * kMessage) == 0);
    CHECK(a.engine.view().state_of(qps[0]) == QpState::rts);
    // The other: what was through, the one that failed, and the rest.
    REQUIRE(done[1].size() == kMessages);
    for (std::uint64_t id = 0; id < kMessages; ++id) {
      CAPTURE(id);
      CHECK(done[1][id].wr_id == id);
      CHECK(done[1][id].status == (id < 3    ? CompletionStatus::success
                                   : id == 3 ? CompletionStatus::retry_exceeded
                                             : CompletionStatus::flushed));
    }
    CHECK(a.engine.view().state_of(qps[1]) == QpState::error);
    CHECK(a.engine.counters().timeouts == 4);  // retry_count, and the one that was too many
    CHECK(a.engine.counters().completion_errors == kMessages - 3);
    // Four times the timer and what the answers on their way took.
    CHECK(gave_up - died >= picos_from_micros(4 * 4000));
    CHECK(gave_up - died < picos_from_micros(4 * 4000 + 2000));
    CHECK(a.engine.view().inflight_bytes() == 0);
    CHECK(a.engine.view().check_conservation() == "");
    CHECK(a.port.check_conservation() == "");
    // What is posted there later is flushed at once; the survivor still works.
    CHECK(post(1, 0) == PostResult::ok);
    CHECK(post(0, 0) == PostResult::ok);
    a.poll(now);
    Completion c;
    REQUIRE(a.cq.poll({&c, 1}) == 1);
    CHECK(c.qp_number == qps[1]);
    CHECK(c.status == CompletionStatus::flushed);
  }
  for (std::size_t i = 0; i < 3; ++i) CHECK(hub.port(i).packets().in_use() == 0);
}

}  // namespace
}  // namespace paceline::neighbour
