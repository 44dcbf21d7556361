// Messages without payload are not backlog. Where they had to wait, the algorithm has been told
// meanwhile that nothing waits, and must be told of them again.
#include <catch2/catch.hpp>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

LabOptions granted_by(cc::AlgorithmId algorithm) {
  LabOptions options = small_packets();
  options.engine.peers = PeerPolicy::paceline;
  options.engine.primary = choose_cc(algorithm, options);
  options.engine.fallback = choose_cc(cc::AlgorithmId::dcqcn, options);
  return options;
}

constexpr cc::AlgorithmId kGranting[] = {cc::AlgorithmId::cadence, cc::AlgorithmId::eqds,
                                         cc::AlgorithmId::homa, cc::AlgorithmId::sird};

TEST_CASE("an empty message that waits for its fence is sent", "[transport]") {
  for (const cc::AlgorithmId algorithm : kGranting) {
    CAPTURE(static_cast<int>(algorithm));
    Lab lab(granted_by(algorithm));
    const Lab::Pair pair = lab.connect();
    for (std::uint64_t id = 0; id < 40; id += 2) {
      // The answer takes long enough for the channel to be given up.
      REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::read, id, 0, 0, 400'000)) ==
              PostResult::ok);
      WorkRequest empty = lab.request(WorkOpcode::write, id + 1, 0, 0, 0);
      empty.fence = true;
      REQUIRE(lab.post(0, pair.a, empty) == PostResult::ok);
    }
    CHECK(lab.run(picos_from_micros(1'000'000)));
    CHECK(lab.a().sent().size() == 40);
    CHECK(lab.leftovers() == "");
  }
}

TEST_CASE("what waits in SQD is sent after RTS", "[transport][state]") {
  for (const cc::AlgorithmId algorithm : kGranting) {
    for (const WorkOpcode opcode : {WorkOpcode::write, WorkOpcode::read}) {
      CAPTURE(static_cast<int>(algorithm), static_cast<int>(opcode));
      Lab lab(granted_by(algorithm));
      const Lab::Pair pair = lab.connect();
      const auto change = [&](QpState to) {
        QpAttributes a;
        a.state = to;
        CHECK(lab.a().engine.modify_qp(lab.now(), pair.a, a, qp_attribute::state).ok());
        lab.touch(0);
      };
      lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 400'000));
      lab.post(0, pair.a, lab.request(opcode, 2, 0, 0, 0));
      lab.run(picos_from_micros(10));
      change(QpState::sqd);
      lab.run(picos_from_micros(5'000));
      CHECK(lab.a().sent().size() == 1);
      change(QpState::rts);
      CHECK(lab.run(picos_from_micros(10'000)));
      CHECK(lab.a().sent().size() == 1);
      CHECK(lab.leftovers() == "");
    }
  }
}

}  // namespace
}  // namespace paceline::transport::test
