// A protection domain. A parent domain is another name for one, by which a program says which of
// its objects only one thread uses at a time.
#pragma once

#include <atomic>

#include "dataplane/verbs/abi/abi.h"

namespace paceline::verbs {

struct ThreadDomain {
  ibv_td td{};  // first: programs hold its address
  std::atomic<int> users{0};
};

struct ProtectionDomain {
  ibv_pd pd{};  // first: programs hold its address; its handle is the service's
  ProtectionDomain* original = nullptr;  // of a parent domain
  ThreadDomain* thread = nullptr;        // of a parent domain, if it was given one
  std::atomic<int> parents{0};           // parent domains made of this one

  static ProtectionDomain& of(ibv_pd* pd) { return *reinterpret_cast<ProtectionDomain*>(pd); }
};

}  // namespace paceline::verbs
