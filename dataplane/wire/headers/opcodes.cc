#include "dataplane/wire/headers/opcodes.h"

namespace paceline::wire {
namespace {

std::string_view position_names(Opcode op, std::string_view first, std::string_view middle,
                                std::string_view last, std::string_view only) {
  switch (properties(op).position) {
    case Position::first:
      return first;
    case Position::middle:
      return middle;
    case Position::last:
      return last;
    case Position::only:
      break;
  }
  return only;
}

std::string_view rc_data_name(Opcode op) {
  const OpcodeProperties& row = properties(op);
  if (row.operation == Operation::read_response) {
    return position_names(op, "RC READ Response First", "RC READ Response Middle",
                          "RC READ Response Last", "RC READ Response Only");
  }
  if (row.operation == Operation::send) {
    if (row.has_ieth()) return row.begins_message() ? "RC SEND Only+Inv" : "RC SEND Last+Inv";
    if (row.has_immediate()) return row.begins_message() ? "RC SEND Only+Imm" : "RC SEND Last+Imm";
    return position_names(op, "RC SEND First", "RC SEND Middle", "RC SEND Last", "RC SEND Only");
  }
  if (row.has_immediate()) return row.begins_message() ? "RC WRITE Only+Imm" : "RC WRITE Last+Imm";
  return position_names(op, "RC WRITE First", "RC WRITE Middle", "RC WRITE Last", "RC WRITE Only");
}

std::string_view uc_name(Opcode op) {
  const OpcodeProperties& row = properties(op);
  if (row.operation == Operation::send) {
    if (row.has_immediate()) return row.begins_message() ? "UC SEND Only+Imm" : "UC SEND Last+Imm";
    return position_names(op, "UC SEND First", "UC SEND Middle", "UC SEND Last", "UC SEND Only");
  }
  if (row.has_immediate()) return row.begins_message() ? "UC WRITE Only+Imm" : "UC WRITE Last+Imm";
  return position_names(op, "UC WRITE First", "UC WRITE Middle", "UC WRITE Last", "UC WRITE Only");
}

}  // namespace

std::string_view opcode_name(Opcode op) {
  const OpcodeProperties& row = properties(op);
  switch (row.operation) {
    case Operation::none:
      return "unknown";
    case Operation::send:
    case Operation::write:
      if (row.service == Service::uc) return uc_name(op);
      if (row.service == Service::ud)
        return row.has_immediate() ? "UD SEND Only+Imm" : "UD SEND Only";
      return rc_data_name(op);
    case Operation::read_response:
      return rc_data_name(op);
    case Operation::read_request:
      return "RC READ Request";
    case Operation::acknowledge:
      return "RC ACK";
    case Operation::atomic_acknowledge:
      return "RC ATOMIC ACK";
    case Operation::compare_swap:
      return "RC CMP_SWAP";
    case Operation::fetch_add:
      return "RC FETCH_ADD";
    case Operation::cnp:
      return "CNP";
    case Operation::hello:
      return "HELLO";
    case Operation::request:
      return "REQUEST";
    case Operation::grant:
      return "GRANT";
    case Operation::xack:
      return "XACK";
    case Operation::notice:
      return "NOTICE";
  }
  return "unknown";
}

std::string_view service_name(Service service) {
  switch (service) {
    case Service::none:
      break;
    case Service::rc:
      return "RC";
    case Service::uc:
      return "UC";
    case Service::ud:
      return "UD";
    case Service::cnp:
      return "CNP";
    case Service::control:
      return "control";
  }
  return "none";
}

}  // namespace paceline::wire
