// libFuzzer target for what reads requests of the control protocol: any text is a request or a list
// of sentences, and a refused one keeps no more than its id.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "dataplane/service/protocol/control_request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline::service;
  const ParsedControl parsed =
      parse_control(std::string_view(reinterpret_cast<const char*>(data), size));
  for (const std::string& error : parsed.errors) {
    if (error.empty()) std::abort();
  }
  if (!parsed.errors.empty()) return 0;
  const ControlRequest& request = parsed.request;
  const bool sound = request.arm <= 1 && request.guard.pause_share <= 1 &&
                     request.guard.stall_ms <= 100 &&
                     (request.op != ControlOp::use_arm || request.epoch != 0) &&
                     (request.op != ControlOp::trial ||
                      (request.hold_ms >= kLeastHoldMs && !request.name.empty()));
  if (!sound) std::abort();
  if ((request.op == ControlOp::fault) == request.faults.empty()) std::abort();
  for (const paceline::config::LinkFault& fault : request.faults) {
    const bool timed = fault.after.count >= 0 && fault.lasts.count >= 0;
    const bool rated = fault.action != "rate" || fault.rate >= paceline::rate_from_mbps(1);
    const bool delayed = fault.action != "delay" || fault.delay.count > 0;
    const bool possible = fault.probability >= 0 && fault.probability <= 1;
    if (fault.target.empty() || !timed || !rated || !delayed || !possible) std::abort();
  }
  return 0;
}
