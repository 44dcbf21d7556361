// Base transport header opcodes and what each implies, as one table of 256 rows known at compile
// time (IBTA vol. 1, 9.2, tables 35 to 38; XRC: annex A14; CNP: annex A17.9.3). The upper three
// bits name the service: RC 000, UC 001, UD 011, CNP 100, XRC 101, manufacturer specific 110 and
// 111. RD does not occur over RoCEv2; FLUSH and ATOMIC WRITE (annex A19) are not spoken.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace paceline::wire {

enum class Opcode : std::uint8_t {
  rc_send_first = 0x00,
  rc_send_middle = 0x01,
  rc_send_last = 0x02,
  rc_send_last_imm = 0x03,
  rc_send_only = 0x04,
  rc_send_only_imm = 0x05,
  rc_write_first = 0x06,
  rc_write_middle = 0x07,
  rc_write_last = 0x08,
  rc_write_last_imm = 0x09,
  rc_write_only = 0x0A,
  rc_write_only_imm = 0x0B,
  rc_read_request = 0x0C,
  rc_read_response_first = 0x0D,
  rc_read_response_middle = 0x0E,
  rc_read_response_last = 0x0F,
  rc_read_response_only = 0x10,
  rc_acknowledge = 0x11,
  rc_atomic_acknowledge = 0x12,
  rc_compare_swap = 0x13,
  rc_fetch_add = 0x14,
  rc_send_last_invalidate = 0x16,
  rc_send_only_invalidate = 0x17,

  uc_send_first = 0x20,
  uc_send_middle = 0x21,
  uc_send_last = 0x22,
  uc_send_last_imm = 0x23,
  uc_send_only = 0x24,
  uc_send_only_imm = 0x25,
  uc_write_first = 0x26,
  uc_write_middle = 0x27,
  uc_write_last = 0x28,
  uc_write_last_imm = 0x29,
  uc_write_only = 0x2A,
  uc_write_only_imm = 0x2B,

  ud_send_only = 0x64,
  ud_send_only_imm = 0x65,

  cnp = 0x81,

  // Ours, in the manufacturer-specific range (docs/wire-protocol.md).
  hello = 0xC0,
  request = 0xC1,
  grant = 0xC2,
  xack = 0xC4,  // to the queue pair it is about (xack.h)
  notice = 0xC5,
};

// XRC has the operations of RC, under opcodes that differ by these bits.
inline constexpr std::uint8_t kXrcBits = 0xA0;
constexpr Opcode xrc_opcode(Opcode rc) {
  return static_cast<Opcode>(kXrcBits | static_cast<unsigned>(rc));
}

// Destination queue pair of HELLO, REQUEST, GRANT and NOTICE. Queue pairs 0 and 1 are the
// management ones, 0xFFFFFF is multicast; this number is never given to an application's queue
// pair.
inline constexpr std::uint32_t kControlQpn = 0xFF'FFFD;
inline constexpr std::uint32_t kMulticastQpn = 0xFF'FFFF;
inline constexpr std::uint32_t kMaxQpn = 0xFF'FFFF;

enum class Service : std::uint8_t { none = 0, rc, uc, ud, cnp, control, xrc };

enum class Operation : std::uint8_t {
  none = 0,
  send,
  write,
  read_request,
  read_response,
  acknowledge,
  atomic_acknowledge,
  compare_swap,
  fetch_add,
  cnp,
  hello,
  request,
  grant,
  xack,
  notice,
};

// Place of the packet in its message. Bit 0: begins a message; bit 1: ends it.
enum class Position : std::uint8_t { middle = 0, first = 1, last = 2, only = 3 };

namespace opcode_flag {
inline constexpr std::uint16_t reth = 1U << 0;
inline constexpr std::uint16_t aeth = 1U << 1;
inline constexpr std::uint16_t immediate = 1U << 2;
inline constexpr std::uint16_t ieth = 1U << 3;
inline constexpr std::uint16_t atomic_eth = 1U << 4;
inline constexpr std::uint16_t atomic_ack_eth = 1U << 5;
inline constexpr std::uint16_t deth = 1U << 6;
inline constexpr std::uint16_t reserved16 = 1U << 7;  // the 16 zero bytes of a CNP
inline constexpr std::uint16_t payload = 1U << 8;     // may carry payload
inline constexpr std::uint16_t request = 1U << 9;     // from requester to responder
inline constexpr std::uint16_t response = 1U << 10;   // from responder to requester
inline constexpr std::uint16_t body = 1U << 11;       // Paceline's own: a message body
inline constexpr std::uint16_t xack = 1U << 12;       // the body of an extended acknowledgement
inline constexpr std::uint16_t xrc_eth = 1U << 13;
// Any extension header at all.
inline constexpr std::uint16_t any_extension =
    reth | aeth | immediate | ieth | atomic_eth | atomic_ack_eth | deth | xrc_eth;
}  // namespace opcode_flag

struct OpcodeProperties {
  std::uint16_t flags = 0;  // of opcode_flag
  Service service = Service::none;
  Operation operation = Operation::none;
  Position position = Position::only;
  std::uint8_t extension_bytes = 0;  // between the base transport header and the payload

  constexpr bool known() const { return service != Service::none; }
  constexpr bool has(std::uint16_t any_of) const { return (flags & any_of) != 0; }
  constexpr bool has_reth() const { return has(opcode_flag::reth); }
  constexpr bool has_aeth() const { return has(opcode_flag::aeth); }
  constexpr bool has_immediate() const { return has(opcode_flag::immediate); }
  constexpr bool has_ieth() const { return has(opcode_flag::ieth); }
  constexpr bool has_atomic_eth() const { return has(opcode_flag::atomic_eth); }
  constexpr bool has_atomic_ack_eth() const { return has(opcode_flag::atomic_ack_eth); }
  constexpr bool has_deth() const { return has(opcode_flag::deth); }
  constexpr bool has_xrc_eth() const { return has(opcode_flag::xrc_eth); }
  constexpr bool carries_payload() const { return has(opcode_flag::payload); }
  constexpr bool is_request() const { return has(opcode_flag::request); }
  constexpr bool is_response() const { return has(opcode_flag::response); }
  constexpr bool is_control() const { return has(opcode_flag::body); }
  constexpr bool begins_message() const { return (static_cast<unsigned>(position) & 1U) != 0; }
  constexpr bool ends_message() const { return (static_cast<unsigned>(position) & 2U) != 0; }
  friend constexpr bool operator==(const OpcodeProperties&, const OpcodeProperties&) = default;
};
static_assert(sizeof(OpcodeProperties) == 6);

namespace detail {

constexpr std::uint8_t extension_bytes_of(std::uint16_t flags) {
  unsigned n = 0;
  if (flags & opcode_flag::reth) n += 16;
  if (flags & opcode_flag::aeth) n += 4;
  if (flags & opcode_flag::immediate) n += 4;
  if (flags & opcode_flag::ieth) n += 4;
  if (flags & opcode_flag::atomic_eth) n += 28;
  if (flags & opcode_flag::atomic_ack_eth) n += 8;
  if (flags & opcode_flag::deth) n += 8;
  if (flags & opcode_flag::reserved16) n += 16;
  if (flags & opcode_flag::xack) n += 44;
  if (flags & opcode_flag::xrc_eth) n += 4;
  return static_cast<std::uint8_t>(n);
}

constexpr std::array<OpcodeProperties, 256> make_opcode_table() {
  using namespace opcode_flag;
  std::array<OpcodeProperties, 256> table{};
  const auto row = [&table](Opcode op, Service service, Operation operation, Position position,
                            unsigned flags) {
    const auto f = static_cast<std::uint16_t>(flags);
    table[static_cast<std::size_t>(op)] = {f, service, operation, position, extension_bytes_of(f)};
  };
  constexpr auto kFirst = Position::first;
  constexpr auto kMiddle = Position::middle;
  constexpr auto kLast = Position::last;
  constexpr auto kOnly = Position::only;
  constexpr unsigned kData = request | payload;

  // SEND and WRITE have the same rows under RC and UC.
  const auto send_and_write = [&row](unsigned base, Service s) {
    const auto op = [base](Opcode rc) {
      return static_cast<Opcode>(base + static_cast<unsigned>(rc));
    };
    row(op(Opcode::rc_send_first), s, Operation::send, kFirst, kData);
    row(op(Opcode::rc_send_middle), s, Operation::send, kMiddle, kData);
    row(op(Opcode::rc_send_last), s, Operation::send, kLast, kData);
    row(op(Opcode::rc_send_last_imm), s, Operation::send, kLast, kData | immediate);
    row(op(Opcode::rc_send_only), s, Operation::send, kOnly, kData);
    row(op(Opcode::rc_send_only_imm), s, Operation::send, kOnly, kData | immediate);
    row(op(Opcode::rc_write_first), s, Operation::write, kFirst, kData | reth);
    row(op(Opcode::rc_write_middle), s, Operation::write, kMiddle, kData);
    row(op(Opcode::rc_write_last), s, Operation::write, kLast, kData);
    row(op(Opcode::rc_write_last_imm), s, Operation::write, kLast, kData | immediate);
    row(op(Opcode::rc_write_only), s, Operation::write, kOnly, kData | reth);
    row(op(Opcode::rc_write_only_imm), s, Operation::write, kOnly, kData | reth | immediate);
  };
  send_and_write(0x00, Service::rc);
  send_and_write(0x20, Service::uc);

  constexpr auto kRc = Service::rc;
  row(Opcode::rc_read_request, kRc, Operation::read_request, kOnly, request | reth);
  row(Opcode::rc_read_response_first, kRc, Operation::read_response, kFirst,
      response | payload | aeth);
  row(Opcode::rc_read_response_middle, kRc, Operation::read_response, kMiddle, response | payload);
  row(Opcode::rc_read_response_last, kRc, Operation::read_response, kLast,
      response | payload | aeth);
  row(Opcode::rc_read_response_only, kRc, Operation::read_response, kOnly,
      response | payload | aeth);
  row(Opcode::rc_acknowledge, kRc, Operation::acknowledge, kOnly, response | aeth);
  row(Opcode::rc_atomic_acknowledge, kRc, Operation::atomic_acknowledge, kOnly,
      response | aeth | atomic_ack_eth);
  row(Opcode::rc_compare_swap, kRc, Operation::compare_swap, kOnly, request | atomic_eth);
  row(Opcode::rc_fetch_add, kRc, Operation::fetch_add, kOnly, request | atomic_eth);
  row(Opcode::rc_send_last_invalidate, kRc, Operation::send, kLast, kData | ieth);
  row(Opcode::rc_send_only_invalidate, kRc, Operation::send, kOnly, kData | ieth);

  // XRC requests name the receive queue that they are for; XRC responses are like those of RC.
  for (unsigned rc = 0; rc <= static_cast<unsigned>(Opcode::rc_send_only_invalidate); ++rc) {
    const OpcodeProperties& like = table[rc];
    if (!like.known()) continue;
    row(xrc_opcode(static_cast<Opcode>(rc)), Service::xrc, like.operation, like.position,
        like.is_request() ? like.flags | unsigned{xrc_eth} : like.flags);
  }

  row(Opcode::ud_send_only, Service::ud, Operation::send, kOnly, kData | deth);
  row(Opcode::ud_send_only_imm, Service::ud, Operation::send, kOnly, kData | deth | immediate);

  row(Opcode::cnp, Service::cnp, Operation::cnp, kOnly, response | reserved16);

  row(Opcode::hello, Service::control, Operation::hello, kOnly, body);
  row(Opcode::request, Service::control, Operation::request, kOnly, body);
  row(Opcode::grant, Service::control, Operation::grant, kOnly, body);
  row(Opcode::notice, Service::control, Operation::notice, kOnly, body);
  row(Opcode::xack, kRc, Operation::xack, kOnly, response | xack);
  return table;
}

}  // namespace detail

inline constexpr std::array<OpcodeProperties, 256> kOpcodeTable = detail::make_opcode_table();

constexpr const OpcodeProperties& properties(Opcode op) {
  return kOpcodeTable[static_cast<std::size_t>(op)];
}

// The longest extension: that of XACK.
inline constexpr std::size_t kMaxExtensionBytes = 44;

// "RC SEND Only+Imm", "CNP", "GRANT"; "unknown" for opcodes that are not in the table.
std::string_view opcode_name(Opcode op);
std::string_view service_name(Service service);

}  // namespace paceline::wire
