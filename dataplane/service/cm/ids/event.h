// What programs are told: the events of rdma_cm with their parameters.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/wire/headers/addresses.h"

namespace paceline::service::cm {

// Numbers of enum rdma_cm_event_type.
enum class EventKind : std::uint32_t {
  address_resolved = 0,
  address_error = 1,
  route_resolved = 2,
  route_error = 3,
  connect_request = 4,
  connect_response = 5,
  unreachable = 7,
  rejected = 8,
  established = 9,
  disconnected = 10,
  device_removal = 11,
  timewait_exit = 15,
};

// An address vector from the NIC instance of an id to the other end.
struct PeerPath {
  wire::Gid destination{};
  std::uint8_t port = 1;        // of the instance
  std::uint8_t source_gid = 0;  // index
  std::uint8_t hop_limit = 64;
  std::uint8_t traffic_class = 0;
  std::uint8_t service_level = 0;
};

struct Event {
  EventKind kind = EventKind::address_resolved;
  // 0, a negative errno, or a positive value of the other end: the reason of a REJ, the status of a
  // SIDR_REP.
  int status = 0;
  std::uint32_t counts_for = 0;  // the id that reports it; of a connection request, the listener
  std::uint32_t id = 0;          // the same, but of a connection request the new id
  std::uint64_t cookie = 0;      // the program's name for counts_for
  bool datagram = false;
  std::uint32_t qp_number = 0;
  std::uint32_t qkey = 0;
  std::uint8_t shared_receives = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t flow_control = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  PeerPath path{};  // datagrams: of `established`
  std::vector<std::byte> private_data;
};

}  // namespace paceline::service::cm
