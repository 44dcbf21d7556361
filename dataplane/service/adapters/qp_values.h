// Between the numbers of the verbs interface, as the attach protocol carries them, and the engine's
// attributes of a queue pair.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dataplane/attach/protocol.h"
#include "dataplane/transport/interface/attributes.h"

namespace paceline::service {

struct QpChange {
  transport::QpAttributes attributes{};
  std::uint32_t mask = 0;  // of qp_attribute
  bool limit_rate = false;
};

// The attributes that `values.mask` names, except for the path. Nothing, and `why`, if a number is
// invalid or asks for a feature that is not offered (alternate paths, migration, resizing).
std::optional<QpChange> change_from(const attach::QpValues& values, std::uint8_t most_rd_atomic,
                                    std::string& why);

// Records the requested values, after a change that succeeded.
void remember(attach::QpValues& known, const attach::QpValues& asked);

// The answer of query_qp: recorded values, and those that only the engine knows.
attach::QpValues values_of(const attach::QpValues& known,
                           const transport::QpAttributes& attributes);

// The UDP source port of a connection. A flow label determines it (Linux and rdma-core map the 20
// bits in the same way: rdma_flow_label_to_udp_sport). Without one, a label is made from both queue
// pair numbers (rdma_calc_flow_label).
std::uint16_t source_port_of(std::uint32_t flow_label, std::uint32_t local_qp,
                             std::uint32_t remote_qp);

// The limit that an address vector's static rate means, a number of enum ibv_rate. 0: none;
// nothing: the number does not exist.
std::optional<Rate> static_rate_of(std::uint8_t number);

// The traffic class that an address vector asks for: by DSCP, else by service level, else none.
std::optional<std::uint8_t> traffic_class_of(const attach::AddressVector& path);

}  // namespace paceline::service
