// Runs the algorithm of a context, and the fallback of a proactive one. Of the context it writes
// only the algorithm state and the decision.
#pragma once

#include "cc/interface/event.h"
#include "dataplane/transport/congestion/congestion_setups.h"
#include "dataplane/transport/core/engine_core.h"

namespace paceline::transport {

class AlgorithmRunner {
 public:
  AlgorithmRunner(EngineCore& core, const CongestionSetups& setups)
      : core_(core), setups_(setups) {}

  // `algorithm` is in charge from here on and gets Signal::start. `index` is the context's.
  // `handover`: what the previous algorithm passes on; may be null.
  void start(std::uint32_t index, CongestionContext& context, cc::AlgorithmId algorithm,
             const cc::Handover* handover);
  // The algorithm forgets what it has learned.
  void restart(CongestionContext& context);
  // Passes the event to the algorithm, and to the fallback if that one decides. True: the uplink
  // demand of a proactive algorithm may have changed.
  bool run(CongestionContext& context, const cc::Event& event);
  // The fallback of the context's arm has changed.
  void change_fallback(CongestionContext& context);

 private:
  void enter_fallback(CongestionContext& context, const cc::Event& event);
  void begin_fallback(CongestionContext& context, const cc::Event& event);

  EngineCore& core_;
  const CongestionSetups& setups_;
};

}  // namespace paceline::transport
