// Configuration of a queue pair, and the data that its two ends exchange.
#pragma once

#include <cstdint>

#include "dataplane/base/protocol/psn.h"
#include "dataplane/base/units.h"
#include "dataplane/transport/interface/completion_queue.h"
#include "dataplane/transport/interface/receive_queue.h"
#include "dataplane/transport/interface/types.h"
#include "dataplane/transport/memory/region.h"
#include "dataplane/wire/headers/addresses.h"

namespace paceline::transport {

// The general services interface (vol. 1, 3.9.2): management datagrams go from number 1 to number
// 1, with this Q_Key.
inline constexpr std::uint32_t kManagementQpNumber = 1;
inline constexpr std::uint32_t kManagementQkey = 0x8001'0000;

inline constexpr Picos kNoTimeout{std::int64_t{1} << 60};  // beyond all time

struct QpConfig {
  // Fields that every packet uses come first: they are at the end of the queue pair's first cache
  // line.
  QpType type = QpType::rc;
  std::uint8_t traffic_class = kDefaultDataClass;
  std::uint8_t retry_count = 7;  // timeouts and sequence NAKs without progress
  std::uint8_t rnr_retry = 7;    // 7 = for ever (vol. 1, 9.7.5.2.8)
  // Protection domain, as of regions. XRC target: that of the receive queue in use.
  std::uint32_t pd = 0;
  Picos retransmit_timeout = picos_from_micros(500);  // kNoTimeout: none

  std::uint8_t min_rnr_timer = 12;       // code of table 45: 12 = 0.64 ms
  std::uint8_t arm = 0;                  // experiment arm of its congestion context
  std::uint8_t access = access::remote;  // what peers may ask for
  std::uint8_t max_rd_atomic = 16;       // READs and atomics outstanding at most (9.7.2.6)
  std::uint8_t max_dest_rd_atomic = 16;  // of the peer's, answered or kept for repetition
  std::uint8_t max_send_segments = 1;    // up to kMaxSegments
  std::uint16_t send_queue_depth = 128;
  std::uint16_t max_inline = 0;  // bytes of a request that may be given inline
  std::uint16_t path_mtu = 0;    // payload bytes of a full packet; 0: the engine's
  std::uint32_t qkey = 0;        // UD
  std::uint32_t domain = 0;      // XRC target: whose shared receive queues it serves (not 0)
  CompletionQueue* send_cq = nullptr;
  // XRC target: the queues that the newest request names (domain_receiver.h).
  CompletionQueue* receive_cq = nullptr;
  ReceiveQueue* receive_queue = nullptr;  // may be shared
};

// Data that the two ends exchange out of band before a connection carries data.
struct QpAddress {
  wire::IpAddress ip{};
  wire::MacAddress mac{};
  std::uint32_t qp_number = 0;
  Psn first_psn;  // of the packets this end will send
};

}  // namespace paceline::transport
