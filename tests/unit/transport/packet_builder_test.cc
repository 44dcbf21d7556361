// Headers of requests, without an engine: what is built parses to what was asked for.
#include "dataplane/transport/message/packet_builder.h"

#include <catch2/catch.hpp>
#include <cstdint>

#include "tests/unit/transport/qp_bench.h"

namespace paceline::transport::test {
namespace {

using wire::Opcode;

TEST_CASE("packet builder: the opcode says the verb, and the place in the message", "[transport]") {
  using P = PacketBuilder;
  CHECK(P::opcode_of(WorkOpcode::send, true, true) == Opcode::rc_send_only);
  CHECK(P::opcode_of(WorkOpcode::send, true, false) == Opcode::rc_send_first);
  CHECK(P::opcode_of(WorkOpcode::send_imm, false, true) == Opcode::rc_send_last_imm);
  CHECK(P::opcode_of(WorkOpcode::send_imm, false, false) == Opcode::rc_send_middle);
  CHECK(P::opcode_of(WorkOpcode::send_invalidate, true, true) == Opcode::rc_send_only_invalidate);
  CHECK(P::opcode_of(WorkOpcode::write, false, false) == Opcode::rc_write_middle);
  CHECK(P::opcode_of(WorkOpcode::write_imm, true, true) == Opcode::rc_write_only_imm);
}

TEST_CASE(
    "packet builder: a WRITE announces address, key and length once, its packets are numbered",
    "[transport]") {
  Bench b;
  b.qp.remote_number = 0x123456;
  WorkRequest request;
  request.opcode = WorkOpcode::write_imm;
  request.length = 2 * Bench::kMtu + 3;
  request.local_key = request.remote_key = b.region;
  request.remote_address = 0x1'0000;
  request.immediate = 0xCAFE'F00D;
  request.solicited = true;
  REQUIRE(b.requester.post(b.qp, request) == PostResult::ok);
  b.context().backlog_bytes = b.qp.requester.backlog_bytes;
  for (std::uint32_t i = 0; i < 3; ++i) {
    Packet* const packet = b.core.pool.alloc();
    REQUIRE(b.requester.build_next(b.qp, *packet));
    wire::ParsedPacket parsed;
    REQUIRE(wire::parse_brief(packet->header_view(), packet->payload_bytes, {}, parsed) ==
            wire::ParseError::ok);
    CHECK(parsed.dest_qpn == 0x123456);
    CHECK(parsed.psn == Psn(Bench::kFirst + i));
    CHECK(parsed.properties.begins_message() == (i == 0));
    CHECK(parsed.properties.ends_message() == (i == 2));
    CHECK(parsed.payload_bytes == (i == 2 ? 3 : Bench::kMtu));
    CHECK(parsed.pad == (i == 2 ? 1 : 0));
    CHECK(parsed.solicited == (i == 2));
    CHECK(parsed.properties.has_immediate() == (i == 2));
    if (i == 0) {
      CHECK(parsed.ext.reth.address == 0x1'0000);
      CHECK(parsed.ext.reth.rkey == b.region);
      CHECK(parsed.ext.reth.length == 2 * Bench::kMtu + 3);
    }
    if (i == 2) CHECK(parsed.ext.immediate == 0xCAFE'F00D);
    CHECK(packet->wire_bytes ==
          b.core.info.wire.wire_bytes(packet->frame_bytes(), packet->payload_bytes));
    b.core.pool.free(packet);
  }
}

TEST_CASE("packet builder: a READ that goes on asks for the rest alone", "[transport]") {
  Bench b;
  WorkRequest request;
  request.opcode = WorkOpcode::read;
  request.length = 5 * Bench::kMtu;
  request.local_key = request.remote_key = b.region;
  request.remote_address = 4096;
  REQUIRE(b.requester.post(b.qp, request) == PostResult::ok);
  Packet* const packet = b.core.pool.alloc();
  PacketBuilder::build_read(b.core, b.qp, *packet, b.qp.requester.queue.front(), 2, 3);
  wire::ParsedPacket parsed;
  REQUIRE(wire::parse_brief(packet->header_view(), packet->payload_bytes, {}, parsed) ==
          wire::ParseError::ok);
  CHECK(parsed.opcode == Opcode::rc_read_request);
  CHECK(parsed.psn == Psn(Bench::kFirst + 2));
  CHECK(parsed.payload_bytes == 0);
  CHECK(parsed.ext.reth.address == 4096 + 2 * Bench::kMtu);
  CHECK(parsed.ext.reth.length == 3 * Bench::kMtu);
  b.core.pool.free(packet);
}

}  // namespace
}  // namespace paceline::transport::test
