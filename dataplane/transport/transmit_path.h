// Outgoing packets: control packets first, then those of ready contexts, as long as the port takes
// them.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "dataplane/transport/congestion/congestion_manager.h"
#include "dataplane/transport/congestion/scheduler.h"
#include "dataplane/transport/core/engine_core.h"
#include "dataplane/transport/ends/requester.h"

namespace paceline::transport {

class TransmitPath {
 public:
  TransmitPath(EngineCore& core, Scheduler& scheduler, CongestionManager& congestion,
               Requester& requester)
      : core_(core), scheduler_(scheduler), congestion_(congestion), requester_(requester) {}

  // Control packets, as many as the port takes now.
  void flush_control();
  // Data, while the port accepts. Control packets were sent before.
  void send();
  // Frees packets that wait for the port; for the end of the engine.
  void discard();

 private:
  Packet* send_one(std::uint32_t index, CongestionContext& context);
  void offer(unsigned traffic_class, std::span<Packet* const> burst);
  bool flush_backlog(unsigned traffic_class);
  // The port was offered packets of the class. True: drop those that it did not take.
  bool stands_still(unsigned traffic_class, bool took_some);

  EngineCore& core_;
  Scheduler& scheduler_;
  CongestionManager& congestion_;
  Requester& requester_;
  // Classes of which the port took nothing when it was last offered packets, a bit each; and since
  // when, in EngineCore::awake().
  std::uint32_t refusing_ = 0;
  std::array<Picos, kTrafficClasses> refused_since_{};
};

}  // namespace paceline::transport
