// A session: one program's connection, the NIC instance that it has opened, and everything that it
// has there. Requests come one at a time, and each is checked in full; a refusal changes nothing.
// When the session ends, everything is destroyed in the order of dependence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "dataplane/attach/message_socket.h"
#include "dataplane/service/sessions/cm_requests.h"
#include "dataplane/service/sessions/pair_requests.h"
#include "dataplane/service/sessions/queue_requests.h"
#include "dataplane/service/sessions/region_requests.h"
#include "dataplane/service/sessions/session_state.h"

namespace paceline::service {

class Session {
 public:
  Session(Service& service, cm::CmService& cm, Peer peer);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Handles one request; the answer is in `reply` unless the request is refused. If reply.aside is
  // set, run it, then call resume(), again as long as there is another. No other request may come
  // meanwhile.
  Status handle(attach::Message& request, Reply& reply);
  Status resume(Reply& reply);
  // share_memory, whose message still lies in the socket.
  Status take_memory(int socket, Reply& reply) {
    return region_requests_.take_memory(socket, reply);
  }
  bool takes_memory() const { return state_.memory != nullptr; }
  // Held as long as anything of the session is left after its end.
  std::shared_ptr<const void> remains() { return state_.tenant.remains(); }

  // --- for a look from outside ---
  std::uint32_t number() const { return state_.number; }
  const Peer& peer() const { return state_.peer; }
  const std::string& program() const { return state_.program; }
  std::optional<NicPlace> place() const {
    return opened_ ? std::optional(state_.place) : std::nullopt;
  }
  std::size_t queue_pairs() const { return state_.pairs.size(); }
  std::size_t completion_queues() const { return state_.queues.size(); }
  std::size_t regions() const { return state_.regions.size(); }
  std::uint64_t messages() const {
    return state_.worker_session == nullptr ? 0 : state_.worker_session->messages();
  }
  // False: its user has as many sessions as it may have.
  bool admitted() const { return counted_; }
  bool greeted() const { return greeted_; }
  TenantMemoryCounters memory() const;
  bool manages_connections() const { return cm_requests_.opened(); }
  cm::CmCounts cm_counts() const { return cm_requests_.counts(); }
  // Whether that address of this process is in a view of its regions.
  bool holds(std::uintptr_t address) { return region_requests_.holds(address); }

 private:
  Status dispatch(attach::Message& request, Reply& reply);
  Status counted(Status status);
  Status hello(const attach::Message& request, Reply& reply);
  Status list_nics(Reply& reply);
  Status find_nic(const attach::Message& request, NicPlace& out) const;
  Status port_counters(const attach::Message& request, Reply& reply);
  Status open_nic(const attach::Message& request, Reply& reply);
  Status query_port(Reply& reply);
  Status create_pd(Reply& reply);
  Status create_channel(Reply& reply);
  // Destroys all objects; afterwards the worker has no reference to them. Allocates nothing.
  void close();

  // What a side thread releases after the session's end.
  struct Left {
    HandleTable<RegionObject> regions;
    std::shared_ptr<TenantMemory> memory;
  };

  Held descriptors_;  // given back when those of `state_` are closed
  std::shared_ptr<Left> left_ = std::make_shared<Left>();
  std::function<void()> let_go_ = [left = left_] {
    for (auto& [handle, region] : left->regions) left->memory->abandon(std::move(region.memory));
  };
  SessionState state_;
  RegionRequests region_requests_{state_};
  QueueRequests queue_requests_{state_};
  PairRequests pair_requests_{state_};
  CmRequests cm_requests_;
  bool greeted_ = false;
  bool opened_ = false;
  bool counted_ = false;  // among the tenant's sessions
};

}  // namespace paceline::service
