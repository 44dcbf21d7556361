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

// Names of XRC opcodes; without the first letter they are those of RC.
std::string_view reliable_name(Opcode op) {
  const OpcodeProperties& row = properties(op);
  switch (row.operation) {
    case Operation::read_request:
      return "XRC READ Request";
    case Operation::read_response:
      return position_names(op, "XRC READ Response First", "XRC READ Response Middle",
                            "XRC READ Response Last", "XRC READ Response Only");
    case Operation::acknowledge:
      return "XRC ACK";
    case Operation::atomic_acknowledge:
      return "XRC ATOMIC ACK";
    case Operation::compare_swap:
      return "XRC CMP_SWAP";
    case Operation::fetch_add:
      return "XRC FETCH_ADD";
    case Operation::send:
      if (row.has_ieth()) return row.begins_message() ? "XRC SEND Only+Inv" : "XRC SEND Last+Inv";
      if (row.has_immediate())
        return row.begins_message() ? "XRC SEND Only+Imm" : "XRC SEND Last+Imm";
      return position_names(op, "XRC SEND First", "XRC SEND Middle", "XRC SEND Last",
                            "XRC SEND Only");
    default:
      break;
  }
  if (row.has_immediate())
    return row.begins_message() ? "XRC WRITE Only+Imm" : "XRC WRITE Last+Imm";
  return position_names(op, "XRC WRITE First", "XRC WRITE Middle", "XRC WRITE Last",
                        "XRC WRITE Only");
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
  if (row.service == Service::xrc) return reliable_name(op);
  switch (row.operation) {
    case Operation::none:
      return "unknown";
    case Operation::send:
    case Operation::write:
      if (row.service == Service::uc) return uc_name(op);
      if (row.service == Service::ud)
        return row.has_immediate() ? "UD SEND Only+Imm" : "UD SEND Only";
      return reliable_name(op).substr(1);
    case Operation::read_response:
    case Operation::read_request:
    case Operation::acknowledge:
    case Operation::atomic_acknowledge:
    case Operation::compare_swap:
    case Operation::fetch_add:
      return reliable_name(op).substr(1);
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
    case Service::xrc:
      return "XRC";
  }
  return "none";
}

}  // namespace paceline::wire
