// A device as programs see it: one NIC instance of the service, found when the list was made.
#pragma once

#include <atomic>
#include <cstdint>

#include "dataplane/attach/protocol.h"
#include "dataplane/verbs/abi/abi.h"
#include "dataplane/verbs/service_link/settings.h"

namespace paceline::verbs {

struct Device {
  ibv_device device{};  // first: programs hold its address
  attach::NicInfo nic{};
  Settings settings;
  int index = 0;                   // among all instances of the service
  std::atomic<int> references{1};  // the list and each context

  static Device* of(ibv_device* device) { return reinterpret_cast<Device*>(device); }
  void hold() { references.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
};

}  // namespace paceline::verbs
