// Two ends that find out by HELLO that both speak XACK turn to selective repeat one after the
// other: each understands the other meanwhile.
#include <catch2/catch.hpp>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

TEST_CASE("a WRITE without immediate is not solicited", "[transport]") {
  for (const QpType type : {QpType::rc, QpType::uc}) {
    LabOptions options = small_packets();
    options.qp.type = type;
    Lab lab(options);
    const Lab::Pair pair = lab.connect();
    unsigned solicited = 0;
    lab.b().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict&) {
      if (p.properties.operation == wire::Operation::write) solicited += p.solicited ? 1 : 0;
      return false;
    });
    REQUIRE(lab.b().post_receive(7, 0, 0));
    for (const WorkOpcode opcode : {WorkOpcode::write, WorkOpcode::write_imm}) {
      WorkRequest request = lab.request(opcode, 1, 0, 0, 2 * kMtu);
      request.solicited = true;
      REQUIRE(lab.post(0, pair.a, request) == PostResult::ok);
    }
    CHECK(lab.run(picos_from_micros(1'000)));
    CHECK(solicited == 1);
    const auto received = lab.b().received();
    REQUIRE(received.size() == 1);
    CHECK(received[0].solicited);
  }
}

}  // namespace
}  // namespace paceline::transport::test
