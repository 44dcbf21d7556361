#include "dataplane/service/adapters/entry_values.h"

#include <bit>

#include "dataplane/base/units.h"

namespace paceline::service {

namespace {

// Programs see immediate data in network order.
constexpr std::uint32_t to_network(std::uint32_t value) {
  return std::endian::native == std::endian::little ? __builtin_bswap32(value) : value;
}

}  // namespace

attach::EntryStatus entry_status(transport::CompletionStatus status) {
  using transport::CompletionStatus;
  switch (status) {
    case CompletionStatus::success:
      return attach::EntryStatus::success;
    case CompletionStatus::local_length_error:
      return attach::EntryStatus::local_length_error;
    case CompletionStatus::local_protection_error:
      return attach::EntryStatus::local_protection_error;
    case CompletionStatus::bad_response:
      return attach::EntryStatus::bad_response;
    case CompletionStatus::remote_invalid_request:
      return attach::EntryStatus::remote_invalid_request;
    case CompletionStatus::remote_access_error:
      return attach::EntryStatus::remote_access_error;
    case CompletionStatus::remote_operational_error:
      return attach::EntryStatus::remote_operational_error;
    case CompletionStatus::retry_exceeded:
      return attach::EntryStatus::retry_exceeded;
    case CompletionStatus::rnr_retry_exceeded:
      return attach::EntryStatus::rnr_retry_exceeded;
    case CompletionStatus::flushed:
      return attach::EntryStatus::flushed;
  }
  return attach::EntryStatus::general_error;
}

attach::EntryOpcode entry_opcode(transport::CompletionOpcode opcode) {
  using transport::CompletionOpcode;
  switch (opcode) {
    case CompletionOpcode::send:
      return attach::EntryOpcode::send;
    case CompletionOpcode::write:
      return attach::EntryOpcode::write;
    case CompletionOpcode::read:
      return attach::EntryOpcode::read;
    case CompletionOpcode::fetch_add:
      return attach::EntryOpcode::fetch_add;
    case CompletionOpcode::compare_swap:
      return attach::EntryOpcode::compare_swap;
    case CompletionOpcode::receive:
      return attach::EntryOpcode::receive;
    case CompletionOpcode::receive_write_imm:
      return attach::EntryOpcode::receive_write_imm;
  }
  return attach::EntryOpcode::send;
}

std::optional<transport::WorkOpcode> work_opcode(attach::SendOpcode opcode) {
  using attach::SendOpcode;
  switch (opcode) {
    case SendOpcode::send:
      return transport::WorkOpcode::send;
    case SendOpcode::send_imm:
      return transport::WorkOpcode::send_imm;
    case SendOpcode::send_invalidate:
      return transport::WorkOpcode::send_invalidate;
    case SendOpcode::write:
      return transport::WorkOpcode::write;
    case SendOpcode::write_imm:
      return transport::WorkOpcode::write_imm;
    case SendOpcode::read:
      return transport::WorkOpcode::read;
    case SendOpcode::fetch_add:
      return transport::WorkOpcode::fetch_add;
    case SendOpcode::compare_swap:
      return transport::WorkOpcode::compare_swap;
    case SendOpcode::local_invalidate:
    case SendOpcode::bind_window:
      break;
  }
  return std::nullopt;
}

attach::EntryOpcode entry_opcode(attach::SendOpcode opcode) {
  if (opcode == attach::SendOpcode::local_invalidate) return attach::EntryOpcode::local_invalidate;
  if (opcode == attach::SendOpcode::bind_window) return attach::EntryOpcode::bind_window;
  const auto work = work_opcode(opcode);
  return work ? entry_opcode(transport::completion_opcode(*work)) : attach::EntryOpcode::send;
}

attach::EntryStatus refused_status(transport::PostResult result) {
  switch (result) {
    case transport::PostResult::bad_key:
      return attach::EntryStatus::local_protection_error;
    case transport::PostResult::bad_length:
      return attach::EntryStatus::local_length_error;
    default:
      return attach::EntryStatus::local_qp_operation_error;
  }
}

attach::CompletionEntry entry_from(const transport::Completion& completion) {
  attach::CompletionEntry entry;
  entry.wr_id = completion.wr_id;
  entry.timestamp_ns = static_cast<std::uint64_t>(to_nanos(completion.at).count);
  entry.qp_number = completion.qp_number;
  // At most 2^31 bytes.
  entry.bytes = static_cast<std::uint32_t>(completion.bytes);
  entry.source_qp = completion.source_qp_number;
  entry.status = entry_status(completion.status);
  entry.opcode = entry_opcode(completion.opcode);
  if (completion.has_immediate) {
    entry.flags |= attach::entry_flag::immediate;
    entry.immediate = to_network(completion.immediate);
  }
  if (completion.invalidated) {
    entry.flags |= attach::entry_flag::invalidated;
    entry.immediate = completion.invalidated_key;
  }
  if (completion.has_grh) {
    entry.flags |= attach::entry_flag::grh;
    // RoCE has no service levels. There, NICs tell in this field which header the buffer begins
    // with, and UCX uses it to find the address: bit 3 means "has a UDP header", below it 1 stands
    // for IPv6, 2 for IPv4.
    entry.service_level = completion.ipv6 ? 0x9 : 0xA;
  }
  if (completion.solicited) entry.flags |= attach::entry_flag::solicited;
  return entry;
}

}  // namespace paceline::service
