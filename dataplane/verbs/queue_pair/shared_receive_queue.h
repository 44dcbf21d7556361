// A shared receive queue as the program has it.
#pragma once

#include <cstdint>

#include "dataplane/attach/shared_memory.h"
#include "dataplane/verbs/abi/abi.h"
#include "dataplane/verbs/queue_pair/work_queue.h"

namespace paceline::verbs {

struct Context;

struct SharedReceiveQueue {
  ibv_srq srq{};  // first: programs hold its address
  Context* context = nullptr;
  attach::SharedMemory memory;
  WorkQueue queue;
  std::uint32_t number = 0;
  std::uint32_t async_reported = 0;  // under ibv_srq::mutex: handed out, to be acknowledged

  static SharedReceiveQueue& of(ibv_srq* srq) {
    return *reinterpret_cast<SharedReceiveQueue*>(srq);
  }
};

}  // namespace paceline::verbs
