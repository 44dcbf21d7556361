// Messages of communication management: management datagrams (MADs) of 256 bytes, class 0x07, to
// queue pair 1 (InfiniBand Architecture Specification, volume 1, release 1.4: 13.4 the common
// header, 12.6 the attributes). Automatic path migration is not supported: LAP and APR are unknown.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/wire/headers/addresses.h"

namespace paceline::service::cm {

inline constexpr std::size_t kMadBytes = 256;
inline constexpr std::size_t kMostPrivateBytes = 224;

enum class Attribute : std::uint16_t {
  req = 0x0010,
  mra = 0x0011,
  rej = 0x0012,
  rep = 0x0013,
  rtu = 0x0014,
  dreq = 0x0015,
  drep = 0x0016,
  sidr_req = 0x0017,
  sidr_rep = 0x0018,
};

// The field "message rejected" of REJ and "message MRAed" of MRA.
enum class About : std::uint8_t { req = 0, rep = 1, other = 2 };

// Table 108 (12.6.7.2): the reasons that this service sends or treats differently.
namespace reject_reason {
inline constexpr std::uint16_t timeout = 4;
inline constexpr std::uint16_t invalid_communication_id = 6;
inline constexpr std::uint16_t invalid_service_id = 8;
inline constexpr std::uint16_t invalid_service_type = 9;
inline constexpr std::uint16_t consumer_defined = 28;
inline constexpr std::uint16_t vendor_option_unsupported = 35;
}  // namespace reject_reason

// 12.11.2.2.
namespace sidr_status {
inline constexpr std::uint8_t success = 0;
inline constexpr std::uint8_t service_unsupported = 1;
inline constexpr std::uint8_t rejected = 2;
}  // namespace sidr_status

// The primary path of a REQ.
struct MadPath {
  wire::Gid local{};
  wire::Gid remote{};
  std::uint32_t flow_label = 0;  // 20 bits
  std::uint16_t local_lid = 0xFFFF;
  std::uint16_t remote_lid = 0xFFFF;
  std::uint8_t packet_rate = 0;    // 6 bits, enum ibv_rate
  std::uint8_t traffic_class = 0;  // of the IP header
  std::uint8_t hop_limit = 0;
  std::uint8_t service_level = 0;  // 4 bits
  std::uint8_t ack_timeout = 0;    // 5 bits: 4.096 us * 2^value

  friend bool operator==(const MadPath&, const MadPath&) = default;
};

// One message. Each attribute uses some of the fields; the others are neither written nor read.
struct Mad {
  Attribute attribute = Attribute::req;
  std::uint64_t transaction = 0;
  std::uint32_t local_id = 0;   // communication id of the sender; SIDR: the request id
  std::uint32_t remote_id = 0;  // communication id of the receiver
  std::uint64_t service_id = 0;
  std::uint64_t guid = 0;  // of the sending channel adapter
  std::uint32_t qkey = 0;
  std::uint32_t qp_number = 0;  // of the sender; DREQ: of the receiver
  std::uint32_t starting_psn = 0;
  std::uint16_t partition_key = 0;
  std::uint16_t reason = 0;          // REJ
  About about = About::req;          // REJ, MRA
  std::uint8_t status = 0;           // SIDR_REP
  std::uint8_t service_timeout = 0;  // MRA: 4.096 us * 2^value
  std::uint8_t service_type = 0;     // REQ: 0 RC, 1 UC
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t flow_control = 0;             // 1 bit
  std::uint8_t retry_count = 0;              // 3 bits
  std::uint8_t rnr_retry_count = 0;          // 3 bits
  std::uint8_t shared_receives = 0;          // 1 bit
  std::uint8_t path_mtu = 0;                 // 4 bits, enum ibv_mtu
  std::uint8_t remote_response_timeout = 0;  // REQ, 5 bits
  std::uint8_t local_response_timeout = 0;   // REQ, 5 bits
  std::uint8_t most_retries = 0;             // REQ, 4 bits: of CM messages
  std::uint8_t target_ack_delay = 0;         // REP, 5 bits
  MadPath path{};                            // REQ
  std::array<std::byte, kMostPrivateBytes> private_data{};

  friend bool operator==(const Mad&, const Mad&) = default;
};

// The length of the private data in a message of this attribute; it is fixed.
constexpr std::size_t private_bytes(Attribute attribute) {
  switch (attribute) {
    case Attribute::req:
      return 92;
    case Attribute::mra:
      return 222;
    case Attribute::rej:
      return 148;
    case Attribute::rep:
      return 196;
    case Attribute::rtu:
    case Attribute::drep:
      return 224;
    case Attribute::dreq:
      return 220;
    case Attribute::sidr_req:
      return 216;
    case Attribute::sidr_rep:
      return 136;
  }
  return 0;
}

using MadBytes = std::array<std::byte, kMadBytes>;

// Values wider than their fields are truncated.
MadBytes build_mad(const Mad& mad);
// Nothing if the size is not 256 bytes, or if class, version or attribute is unknown.
std::optional<Mad> parse_mad(std::span<const std::byte> bytes);
// The response to a Get or Set, of whatever class: this end offers none (13.4.7, "method/attribute
// combination not supported"). Nothing if the bytes are neither.
std::optional<MadBytes> answer_to_query(std::span<const std::byte> bytes);

}  // namespace paceline::service::cm
