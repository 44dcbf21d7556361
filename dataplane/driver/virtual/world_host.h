// One host of a virtual world: its engine, the first of several where it has shards, and what uses
// it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "dataplane/driver/host_shards.h"
#include "dataplane/driver/traffic/message_app.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "dataplane/driver/traffic/plan_index.h"
#include "dataplane/transport/engine.h"

namespace paceline {

struct WorldHost {
  WorldHost(transport::EngineConfig config, Port& port, std::uint32_t number,
            const MessagePlan& plan, const PlanIndex& index, std::vector<MessageRecord>& records,
            Connector& connector, transport::MemoryProvider* memory, HostShards* shards_)
      : engine(std::move(config), port),
        app(number, plan, index, records, engine, shards_, connector, memory),
        shards(shards_) {
    if (shards != nullptr) shards->set_leader(engine);
  }

  // Of all shards.
  telemetry::EngineCounters counters() const {
    return shards == nullptr ? engine.counters() : shards->counters();
  }
  std::uint64_t tx_data_bytes() const {
    return shards == nullptr ? engine.counters().tx_data_bytes : shards->counters().tx_data_bytes;
  }
  transport::Engine& engine_for_connection() {
    return shards == nullptr ? engine : shards->next_engine();
  }
  Picos next_deadline() const {
    return earlier(shards == nullptr ? engine.next_deadline() : shards->next_deadline(),
                   app.next_deadline());
  }

  transport::Engine engine;
  MessageApp app;
  HostShards* shards;  // nullptr: the engine is the only one
};

}  // namespace paceline
