// A queue pair as the program has it: the ibv_qp that it holds, both work queues, and what was
// agreed when it was created.
#pragma once

#include <cstdint>
#include <memory>

#include "dataplane/attach/shared_memory.h"
#include "dataplane/verbs/abi/abi.h"
#include "dataplane/verbs/injection/pair_faults.h"
#include "dataplane/verbs/queue_pair/work_queue.h"

namespace paceline::verbs {

struct Context;

struct QueuePair {
  ibv_qp_ex qp{};  // first: programs hold its address, as of an ibv_qp or of an ibv_qp_ex
  Context* context = nullptr;
  attach::SharedMemory memory;
  WorkQueue send;
  WorkQueue receive;  // none with a shared receive queue
  bool all_signaled = false;
  ibv_qp_cap cap{};
  std::shared_ptr<PairFaults> faults;  // paceline exec --fault

  // ibv_wr_*: between wr_start and wr_complete, under send.lock.
  std::uint64_t send_operations = 0;  // enum ibv_qp_create_send_ops_flags; 0: made without
  std::uint32_t pending = 0;          // requests of this batch
  int batch_error = 0;                // of the first call that was wrong

  // Under ibv_qp::mutex: handed out, to be acknowledged.
  std::uint32_t async_reported = 0;

  static QueuePair& of(ibv_qp* qp) { return *reinterpret_cast<QueuePair*>(qp); }
  static QueuePair& of(ibv_qp_ex* qp) { return *reinterpret_cast<QueuePair*>(qp); }
  ibv_qp& base() { return qp.qp_base; }
};

// Fills in the functions of an extended queue pair (extended_post.cc).
void set_post_functions(ibv_qp_ex& qp) noexcept;
// Which of them a queue pair of a type has: enum ibv_qp_create_send_ops_flags.
std::uint64_t send_operations_of(ibv_qp_type type) noexcept;

}  // namespace paceline::verbs
