#include "tests/wire/conversation.h"

#include <algorithm>
#include <stdexcept>

namespace paceline::test {

using wire::Operation;

std::string label_of(const wire::ParsedPacket& p) {
  std::string name(wire::opcode_name(p.opcode));
  if (const auto at = name.find("Response"); at != std::string::npos) name.replace(at, 8, "Resp");
  if (p.properties.operation != Operation::acknowledge) return name;
  if (p.ext.aeth.kind() == wire::AethKind::rnr_nak) return "RC RNR";
  if (p.ext.aeth.kind() == wire::AethKind::ack) return name;
  switch (p.ext.aeth.nak_code()) {
    case wire::NakCode::psn_sequence_error:
      return "RC NAK PSN_SEQ";
    case wire::NakCode::remote_access_error:
      return "RC NAK REM_ACCESS";
    case wire::NakCode::remote_operational_error:
      return "RC NAK REM_OP";
    default:
      return "RC NAK other";
  }
}

std::vector<Conversation> conversations_of(const std::string& capture) {
  std::vector<Conversation> all;
  std::size_t number = 0;
  for (Frame& frame : read_pcap(golden_path(capture + ".pcap"))) {
    CapturedPacket packet;
    packet.number = ++number;
    if (wire::parse_frame(frame, packet.parsed) != wire::ParseError::ok) continue;
    packet.frame = std::move(frame);
    const wire::ParsedPacket& p = packet.parsed;
    const bool request = Conversation::is_request(packet);
    const wire::IpAddress& requester = request ? p.source : p.destination;
    auto at = std::find_if(all.begin(), all.end(), [&](const Conversation& c) {
      return c.qpn == p.dest_qpn && c.requester == requester;
    });
    if (at == all.end()) {
      if (!request) throw std::runtime_error(capture + ": an answer before any request");
      at = all.insert(at, {p.dest_qpn, p.source, p.destination, {}});
    }
    at->packets.push_back(std::move(packet));
  }
  return all;
}

Psn Conversation::first_psn() const {
  Psn first = packets.front().parsed.psn;
  for (const CapturedPacket& packet : packets) {
    if (distance(packet.parsed.psn, first) < 0) first = packet.parsed.psn;
  }
  return first;
}

namespace {

// The answers' data goes to the message that they answer.
void take_answer(std::vector<Message>& messages, const CapturedPacket& packet) {
  for (Message& m : messages) {
    const std::int32_t index = distance(packet.parsed.psn, m.first_psn);
    if (index < 0 || index >= static_cast<std::int32_t>(m.packets)) continue;
    if (packet.parsed.properties.operation == Operation::atomic_acknowledge) {
      m.original = packet.parsed.ext.atomic_original;
      m.answered = true;
    } else if (packet.parsed.properties.operation == Operation::read_response) {
      const auto payload = packet.payload();
      std::copy(payload.begin(), payload.end(),
                m.data.begin() + static_cast<std::ptrdiff_t>(index * std::int32_t{kGoldenMtu}));
    }
    return;
  }
}

}  // namespace

std::vector<Message> messages_of(const Conversation& conversation) {
  const Psn first = conversation.first_psn();
  std::vector<const CapturedPacket*> requests;
  for (const CapturedPacket& p : conversation.packets) {
    if (Conversation::is_request(p)) requests.push_back(&p);
  }
  std::stable_sort(requests.begin(), requests.end(), [&](const auto* a, const auto* b) {
    return distance(a->parsed.psn, first) < distance(b->parsed.psn, first);
  });
  std::vector<Message> messages;
  Psn expected = first;
  for (const CapturedPacket* request : requests) {
    const wire::ParsedPacket& p = request->parsed;
    if (p.psn != expected) {
      if (distance(p.psn, expected) < 0) continue;  // sent again
      break;                                        // never captured: the rest is of no use
    }
    if (p.properties.begins_message()) {
      Message m;
      m.operation = p.properties.operation;
      m.first_psn = p.psn;
      m.packets = 0;
      m.atomic = p.ext.atomic;
      m.address = p.properties.has_atomic_eth() ? p.ext.atomic.address : p.ext.reth.address;
      m.rkey = p.properties.has_atomic_eth() ? p.ext.atomic.rkey : p.ext.reth.rkey;
      if (m.operation == Operation::read_request) m.length = p.ext.reth.length;
      messages.push_back(std::move(m));
    }
    Message& m = messages.back();
    std::uint32_t packets = 1;
    if (m.operation == Operation::read_request) {
      packets = std::max<std::uint32_t>(1, (m.length + kGoldenMtu - 1) / kGoldenMtu);
      m.data.resize(m.length);
    } else {
      const auto payload = request->payload();
      m.data.insert(m.data.end(), payload.begin(), payload.end());
    }
    m.packets += packets;
    expected = expected + packets;
    if (p.properties.ends_message()) {
      m.complete = true;
      m.has_immediate = p.properties.has_immediate();
      m.immediate = p.ext.immediate;
      m.solicited = p.solicited;
    }
  }
  for (const CapturedPacket& p : conversation.packets) {
    if (!Conversation::is_request(p)) take_answer(messages, p);
  }
  return messages;
}

}  // namespace paceline::test
