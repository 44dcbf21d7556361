// Runs the algorithm of a context, and the fallback of a proactive one. Writes the context's
// algorithm state and its decision, and nothing else of it.
#pragma once

#include "cc/interface/event.h"
#include "dataplane/transport/congestion/congestion_setups.h"
#include "dataplane/transport/core/engine_core.h"

namespace paceline::transport {

class AlgorithmRunner {
 public:
  AlgorithmRunner(EngineCore& core, const CongestionSetups& setups)
      : core_(core), setups_(setups) {}

  // `algorithm` is in charge from here on; it hears Signal::start. `index` is the context's.
  // `handover`: what the algorithm before it leaves; may be null.
  void start(std::uint32_t index, CongestionContext& context, cc::AlgorithmId algorithm,
             const cc::Handover* handover);
  // The algorithm forgets what it has learned.
  void restart(CongestionContext& context);
  // Passes the event to the algorithm, and to the fallback if that decides. True: the demand of a
  // proactive algorithm on the uplink may have changed.
  bool run(CongestionContext& context, const cc::Event& event);
  // The fallback of the context's arm is another one now.
  void change_fallback(CongestionContext& context);

 private:
  void enter_fallback(CongestionContext& context, const cc::Event& event);
  void begin_fallback(CongestionContext& context, const cc::Event& event);

  EngineCore& core_;
  const CongestionSetups& setups_;
};

}  // namespace paceline::transport
