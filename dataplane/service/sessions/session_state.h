// State of a session: the objects of its program, and the helpers that serve them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/attach/protocol.h"
#include "dataplane/service/adapters/worker_session.h"
#include "dataplane/service/sessions/objects.h"
#include "dataplane/service/sessions/reply.h"
#include "dataplane/service/workers/service.h"

namespace paceline::service {

class ProgramMemory;

struct Peer {
  pid_t pid = 0;
  uid_t user = 0;
  std::shared_ptr<ProgramMemory> program;
};

struct SessionState {
  SessionState(Service& service, Peer peer);

  // --- with a NIC open ---
  ServiceWorker& worker() { return service.worker(place.worker); }
  const NicSet& nics() const { return service.worker(place.worker).nics(); }
  transport::Engine& engine() { return *nics().nic(place.nic).engine; }
  // Runs `work` between two turns of the worker. False: the worker has ended.
  template <class Work>
  bool on_worker(Work&& work) {
    return worker().call(place.nic, std::forward<Work>(work));
  }

  // For a queue that takes this many bytes of shared and own memory.
  Status take_queue(QueueShare& share, std::uint64_t bytes);
  std::optional<std::uint32_t> take_bell();
  void give_bell(std::uint32_t bell);

  Service& service;
  Tenant& tenant;
  Peer peer;
  std::uint32_t number;
  std::string program;  // printable
  NicPlace place{};
  attach::SharedMemory bells;
  attach::Descriptor wake;
  Pipe notices;
  std::shared_ptr<TenantMemory> memory;
  std::unique_ptr<WorkerSession> worker_session;  // there as long as a NIC is open
  std::vector<bool> bell_used;

  HandleTable<ProtectionDomain> pds;
  HandleTable<DomainObject> domains;
  HandleTable<Channel> channels;
  HandleTable<RegionObject> regions;
  HandleTable<WindowObject> windows;
  HandleTable<CompletionObject> queues;
  HandleTable<SharedReceiveObject> srqs;
  HandleTable<PairObject> pairs;
  HandleTable<AddressHandleObject> handles;
  std::vector<std::uint32_t> leaving_handles;  // destroyed, but not yet the engine's
};

}  // namespace paceline::service
