// An XRC domain as the program has it.
#pragma once

#include <cstdint>

#include "dataplane/verbs/abi/abi.h"

namespace paceline::verbs {

struct Domain {
  ibv_xrcd xrcd{};  // first: programs hold its address
  std::uint32_t handle = 0;

  static Domain& of(ibv_xrcd* xrcd) { return *reinterpret_cast<Domain*>(xrcd); }
};

}  // namespace paceline::verbs
