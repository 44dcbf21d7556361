// An open device: the attach session and what it shares with the worker, behind the ibv_context
// that programs hold.
//
// The lists of objects serve names that arrive from outside: events of completion channels (cookie)
// and asynchronous events (handle). Only the control path touches them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "dataplane/attach/descriptors/own_descriptor.h"
#include "dataplane/attach/doorbell.h"
#include "dataplane/attach/shared_memory.h"
#include "dataplane/verbs/abi/abi.h"
#include "dataplane/verbs/device/device.h"
#include "dataplane/verbs/injection/fault_injector.h"
#include "dataplane/verbs/injection/order_check.h"
#include "dataplane/verbs/service_link/presence.h"
#include "dataplane/verbs/service_link/session.h"

namespace paceline::verbs {

struct CompletionQueue;
struct QueuePair;
struct SharedReceiveQueue;

struct Context {
  // First, so that a pointer to it is a pointer to the whole; its last member is the ibv_context.
  verbs_context verbs{};

  Device* device = nullptr;
  attach::NicInfo nic{};
  Presence presence;
  Session session;
  attach::SharedMemory doorbells;
  attach::SharedMemory worker;
  attach::OwnDescriptor wake;
  attach::OwnDescriptor notices;
  bool shares_memory = false;  // the service has the descriptor of process_memory()
  bool fatal_told = false;     // IBV_EVENT_DEVICE_FATAL was handed out; under objects

  // Spinning is for machines that have a processor to spare for it.
  std::uint32_t spins = 0;                                   // empty polls before a nap
  std::atomic<const CompletionQueue*> last_polled{nullptr};  // found empty

  std::mutex objects;
  std::vector<CompletionQueue*> completion_queues;
  std::vector<QueuePair*> queue_pairs;
  std::vector<SharedReceiveQueue*> shared_receive_queues;
  std::uint64_t next_cookie = 1;

  // Only under paceline exec --fault or --reorder: otherwise no message looks at these.
  std::unique_ptr<FaultInjector> faults;
  std::unique_ptr<OrderCheck> order;
  bool watched() const { return faults != nullptr || order != nullptr; }

  static Context& of(ibv_context* context) {
    return *reinterpret_cast<Context*>(reinterpret_cast<char*>(context) -
                                       offsetof(verbs_context, context));
  }
  ibv_context* handle() { return &verbs.context; }
  bool usable() const noexcept { return presence.usable(); }

  // After a new tail was stored (release): tells the worker, and wakes it where it sleeps.
  void ring(std::uint32_t bell) noexcept;
};

// Takes an object out of one of the lists above; the lock is held.
template <class Object>
void forget(std::vector<Object*>& list, const Object* object) {
  list.erase(std::remove(list.begin(), list.end(), object), list.end());
}

// Fills in the operations that programs reach through the context (operations.cc).
void set_operations(verbs_context& verbs);

}  // namespace paceline::verbs
