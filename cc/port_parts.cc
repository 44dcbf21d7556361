#include "cc/port_parts.h"

#include "cc/cadence/receiver/receiver.h"
#include "cc/cadence/sender.h"
#include "cc/eqds/receiver.h"
#include "cc/eqds/sender.h"
#include "cc/homa/receiver.h"
#include "cc/param_block.h"
#include "cc/plugin/rates/downlink.h"
#include "cc/plugin/rates/uplink.h"
#include "cc/plugin/receiver.h"
#include "cc/sird/receiver.h"
#include "cc/sird/sender.h"

namespace paceline::cc {

std::unique_ptr<DownlinkAllocator> make_downlink_allocator(const ParamBlock& params) {
  switch (params.id) {
    case AlgorithmId::cadence:
      return std::make_unique<CadenceReceiver>(params.as<CadenceParams>());
    case AlgorithmId::eqds:
      return std::make_unique<EqdsReceiver>(params.as<EqdsParams>());
    case AlgorithmId::sird:
      return std::make_unique<SirdReceiver>(params.as<SirdParams>());
    case AlgorithmId::homa:
      return std::make_unique<HomaReceiver>(params.as<HomaParams>());
    default:
      if (auto receiver = plugin::make_receiver(params)) return receiver;
      return plugin::make_downlink(params);
  }
}

std::unique_ptr<UplinkArbiter> make_uplink_arbiter(const ParamBlock& params) {
  switch (params.id) {
    case AlgorithmId::cadence:
      return std::make_unique<CadenceSender>(params.as<CadenceParams>());
    case AlgorithmId::eqds:
      return std::make_unique<EqdsSender>(params.as<EqdsParams>());
    case AlgorithmId::sird:
      return std::make_unique<SirdSender>(params.as<SirdParams>());
    default:
      return plugin::make_uplink(params);
  }
}

}  // namespace paceline::cc
