#include "dataplane/wire/headers/opcodes.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>

namespace paceline::wire {
namespace {

// Written out from IBTA vol. 1, table 38, apart from the program's table: what follows the BTH.
struct Expected {
  unsigned opcode;
  const char* name;
  const char* extensions;  // r RETH, a AETH, i ImmDt, v IETH, t AtomicETH, k AtomicAckETH, d DETH
  bool payload;
};
constexpr Expected kRc[] = {
    {0x00, "RC SEND First", "", true},
    {0x01, "RC SEND Middle", "", true},
    {0x02, "RC SEND Last", "", true},
    {0x03, "RC SEND Last+Imm", "i", true},
    {0x04, "RC SEND Only", "", true},
    {0x05, "RC SEND Only+Imm", "i", true},
    {0x06, "RC WRITE First", "r", true},
    {0x07, "RC WRITE Middle", "", true},
    {0x08, "RC WRITE Last", "", true},
    {0x09, "RC WRITE Last+Imm", "i", true},
    {0x0A, "RC WRITE Only", "r", true},
    {0x0B, "RC WRITE Only+Imm", "ri", true},
    {0x0C, "RC READ Request", "r", false},
    {0x0D, "RC READ Response First", "a", true},
    {0x0E, "RC READ Response Middle", "", true},
    {0x0F, "RC READ Response Last", "a", true},
    {0x10, "RC READ Response Only", "a", true},
    {0x11, "RC ACK", "a", false},
    {0x12, "RC ATOMIC ACK", "ak", false},
    {0x13, "RC CMP_SWAP", "t", false},
    {0x14, "RC FETCH_ADD", "t", false},
    {0x16, "RC SEND Last+Inv", "v", true},
    {0x17, "RC SEND Only+Inv", "v", true},
    {0x64, "UD SEND Only", "d", true},
    {0x65, "UD SEND Only+Imm", "di", true},
};

void check_row(const OpcodeProperties& row, const Expected& e) {
  const std::string x = e.extensions;
  const auto has = [&x](char c) { return x.find(c) != std::string::npos; };
  CHECK(row.has_reth() == has('r'));
  CHECK(row.has_aeth() == has('a'));
  CHECK(row.has_immediate() == has('i'));
  CHECK(row.has_ieth() == has('v'));
  CHECK(row.has_atomic_eth() == has('t'));
  CHECK(row.has_atomic_ack_eth() == has('k'));
  CHECK(row.has_deth() == has('d'));
  CHECK(row.carries_payload() == e.payload);
  unsigned bytes = 0;
  for (const char c : x) {
    bytes += c == 'r' ? 16U : c == 't' ? 28U : (c == 'k' || c == 'd') ? 8U : 4U;
  }
  CHECK(row.extension_bytes == bytes);
}

// Annex A14: the same operations under 101xxxxx, requests with four bytes more.
void check_xrc(const Expected& e) {
  const auto op = static_cast<Opcode>(0xA0 + e.opcode);
  const OpcodeProperties& row = properties(op);
  const bool responds = e.opcode >= 0x0D && e.opcode <= 0x12;
  CHECK(opcode_name(op) == std::string("X") + e.name);
  CHECK(row.service == Service::xrc);
  CHECK(row.operation == properties(static_cast<Opcode>(e.opcode)).operation);
  CHECK(row.position == properties(static_cast<Opcode>(e.opcode)).position);
  CHECK(row.is_request() == !responds);
  CHECK(row.has_xrc_eth() == !responds);
  OpcodeProperties without = row;
  without.extension_bytes = static_cast<std::uint8_t>(row.extension_bytes - (responds ? 0 : 4));
  check_row(without, e);
}

}  // namespace

TEST_CASE("opcodes: extension headers and payload as in the specification's table") {
  for (const Expected& e : kRc) {
    INFO(e.name);
    const auto op = static_cast<Opcode>(e.opcode);
    CHECK(opcode_name(op) == e.name);
    CHECK(properties(op).service == (e.opcode < 0x20 ? Service::rc : Service::ud));
    check_row(properties(op), e);
    if (e.opcode < 0x20) check_xrc(e);
    if (e.opcode >= 0x0C) continue;
    // UC has the same SENDs and WRITEs, 0x20 further on.
    const auto uc = static_cast<Opcode>(e.opcode + 0x20);
    std::string name = e.name;
    name[0] = 'U';
    CHECK(opcode_name(uc) == name);
    CHECK(properties(uc).service == Service::uc);
    check_row(properties(uc), e);
    CHECK(properties(uc).position == properties(op).position);
  }
}

TEST_CASE("opcodes: exactly these are known") {
  unsigned known = 0;
  std::set<std::string_view> names;
  for (unsigned i = 0; i < 256; ++i) {
    const auto op = static_cast<Opcode>(i);
    const OpcodeProperties& row = properties(op);
    if (!row.known()) {
      CHECK(row == OpcodeProperties{});
      continue;
    }
    ++known;
    CHECK(names.insert(opcode_name(op)).second);
    CHECK(opcode_name(op) != "unknown");
    // Requester to responder, or back, or one of ours.
    CHECK((row.is_request() ? 1 : 0) + (row.is_response() ? 1 : 0) + (row.is_control() ? 1 : 0) ==
          1);
    CHECK(row.extension_bytes <= kMaxExtensionBytes);
  }
  CHECK(known == 2 * 23 + 12 + 2 + 1 + 4 + 1);
  CHECK(opcode_name(Opcode::xack) == "XACK");
  CHECK(opcode_name(static_cast<Opcode>(0x15)) == "unknown");
}

TEST_CASE("opcodes: position says where messages begin and end") {
  CHECK(properties(Opcode::rc_send_first).begins_message());
  CHECK_FALSE(properties(Opcode::rc_send_first).ends_message());
  CHECK_FALSE(properties(Opcode::rc_write_middle).begins_message());
  CHECK_FALSE(properties(Opcode::rc_write_middle).ends_message());
  CHECK_FALSE(properties(Opcode::rc_send_last_invalidate).begins_message());
  CHECK(properties(Opcode::rc_send_last_invalidate).ends_message());
  CHECK(properties(Opcode::rc_read_request).begins_message());
  CHECK(properties(Opcode::rc_read_request).ends_message());
}

TEST_CASE("opcodes: ours lie in the manufacturer-specific range") {
  for (const Opcode op : {Opcode::hello, Opcode::request, Opcode::grant, Opcode::notice}) {
    CHECK(static_cast<unsigned>(op) >= 0xC0);
    CHECK(properties(op).is_control());
    CHECK(properties(op).service == Service::control);
  }
  CHECK(properties(Opcode::cnp).extension_bytes == 16);
  CHECK(service_name(Service::uc) == "UC");
  CHECK(service_name(Service::none) == "none");
}

}  // namespace paceline::wire
