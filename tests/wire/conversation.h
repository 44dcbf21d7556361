// A golden capture taken apart: who asked whom for what, and what was answered.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/wire/packet/parse.h"
#include "tests/wire/pcap.h"

namespace paceline::test {

struct CapturedPacket {
  std::size_t number = 0;  // within the file, from 1
  wire::ParsedPacket parsed{};
  Frame frame;

  std::span<const std::byte> payload() const {
    return std::span(frame).subspan(parsed.header_bytes, parsed.payload_bytes);
  }
};

// The table's word for a packet (tests/wire/golden/README.md): the opcode, or for a negative
// acknowledgement what it says.
std::string label_of(const wire::ParsedPacket& packet);

// The requests of one queue pair and their answers. A queue pair that both ends send requests on is
// two conversations.
struct Conversation {
  std::uint32_t qpn = 0;      // of both ends: in these captures they are equal
  wire::IpAddress requester;  // and
  wire::IpAddress responder;
  std::vector<CapturedPacket> packets;  // in the order of the file

  static bool is_request(const CapturedPacket& p) { return p.parsed.properties.is_request(); }
  Psn first_psn() const;  // of the requests, the lost ones included that a NAK tells of
};
std::vector<Conversation> conversations_of(const std::string& capture);

// A message as the requester meant it, put together from its packets, whichever way they came.
struct Message {
  wire::Operation operation{};
  Psn first_psn;
  std::uint32_t packets = 1;  // sequence numbers that it takes
  std::uint64_t address = 0;  // remote
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;     // of a READ
  std::vector<std::byte> data;  // SEND, WRITE: its bytes; READ: what rxe answered
  wire::AtomicEth atomic{};
  std::uint64_t original = 0;  // what rxe answered to an atomic
  bool answered = false;       // an atomic, by rxe
  bool has_immediate = false;
  std::uint32_t immediate = 0;
  bool solicited = false;
  bool complete = false;  // its last packet was captured

  // Where the receive request is taken that it needs, if it needs one.
  bool takes_receive() const { return operation == wire::Operation::send || has_immediate; }
  Psn receive_psn() const {
    return operation == wire::Operation::send ? first_psn : first_psn + (packets - 1);
  }
};
std::vector<Message> messages_of(const Conversation& conversation);

// All golden captures have it.
inline constexpr std::uint32_t kGoldenMtu = 1024;

}  // namespace paceline::test
