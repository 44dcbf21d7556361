// One host of a virtual world: its engine, and what uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "dataplane/driver/traffic/message_app.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "dataplane/driver/traffic/plan_index.h"
#include "dataplane/probing/probe_end.h"
#include "dataplane/transport/engine.h"

namespace paceline {

struct WorldHost {
  WorldHost(transport::EngineConfig config, Port& port, std::uint32_t number,
            const MessagePlan& plan, const PlanIndex& index, std::vector<MessageRecord>& records,
            Connector& connector, transport::MemoryProvider* memory)
      : engine(std::move(config), port),
        app(number, plan, index, records, engine, connector, memory) {}

  Picos next_deadline() const { return earlier(engine.next_deadline(), app.next_deadline()); }

  transport::Engine engine;
  MessageApp app;
  std::unique_ptr<probing::ProbeEnd> probe;  // all hosts have one, or none
};

}  // namespace paceline
