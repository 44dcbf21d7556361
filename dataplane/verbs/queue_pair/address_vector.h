// ibv_ah_attr and the attach protocol's AddressVector.
#pragma once

#include <cstring>

#include "dataplane/attach/protocol.h"
#include "dataplane/verbs/abi/abi.h"

namespace paceline::verbs {

inline attach::AddressVector address_vector(const ibv_ah_attr& from) {
  attach::AddressVector to;
  if (from.is_global != 0) {
    std::memcpy(to.destination.data(), from.grh.dgid.raw, to.destination.size());
    to.flow_label = from.grh.flow_label;
    to.source_gid = from.grh.sgid_index;
    to.hop_limit = from.grh.hop_limit;
    to.traffic_class = from.grh.traffic_class;
    to.global = 1;
  }
  to.destination_id = from.dlid;
  to.service_level = from.sl;
  to.static_rate = from.static_rate;
  to.port = from.port_num;
  return to;
}

inline ibv_ah_attr address_attributes(const attach::AddressVector& from) {
  ibv_ah_attr to{};
  std::memcpy(to.grh.dgid.raw, from.destination.data(), from.destination.size());
  to.grh.flow_label = from.flow_label;
  to.grh.sgid_index = from.source_gid;
  to.grh.hop_limit = from.hop_limit;
  to.grh.traffic_class = from.traffic_class;
  to.dlid = from.destination_id;
  to.sl = from.service_level;
  to.static_rate = from.static_rate;
  to.is_global = from.global;
  to.port_num = from.port;
  return to;
}

}  // namespace paceline::verbs
