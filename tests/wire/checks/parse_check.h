// What must hold of any input to the parser whatsoever. Shared by the mutation test and the fuzz
// target: each function returns what is wrong, or an empty string.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "dataplane/wire/packet/header_template.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::test {

// The addressing a packet came with: a template made of it rebuilds the packet's headers.
wire::FlowAddressing addressing_of(const wire::ParsedPacket& packet);

// Equal in everything a sender decides (not: the received ICRC and UDP checksum).
bool same_packet(const wire::ParsedPacket& a, const wire::ParsedPacket& b);

// Parses `bytes` as a frame with every combination of options. When it is accepted: all offsets lie
// inside, the lengths add up, the separate form agrees, and headers rebuilt from the parse parse
// to the same packet.
std::string check_frame(std::span<const std::byte> bytes);

// Parses `bytes` as headers of a packet with `padded_payload_bytes` elsewhere; same promises.
std::string check_headers(std::span<const std::byte> bytes, std::uint32_t padded_payload_bytes);

// Parses `bytes` as the body of each control message; what is accepted, written again, parses to
// the same message.
std::string check_control(std::span<const std::byte> bytes);

}  // namespace paceline::test
