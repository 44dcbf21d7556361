// A session: one program's connection, the NIC instance that it has opened, and all that it has
// there. Requests come one at a time, each checked in full; a refusal changes nothing. When the
// session ends, everything goes, in the order in which it is built on one another.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/attach/message_socket.h"
#include "dataplane/attach/protocol.h"
#include "dataplane/service/adapters/worker_session.h"
#include "dataplane/service/sessions/objects.h"
#include "dataplane/service/workers/service.h"

namespace paceline::service {

class ProgramMemory;

struct Peer {
  pid_t pid = 0;
  uid_t user = 0;
  std::shared_ptr<ProgramMemory> program;
};

// 0, or an errno and why. EPROTO ends the connection.
struct Status {
  int error = 0;
  std::string why;
};

// What goes back. The descriptors stay the session's.
struct Reply {
  std::vector<std::byte> body;
  std::vector<int> descriptors;
  // Where the program decides how long something takes, the answer waits: `aside` runs on another
  // thread, owns what it uses and does not throw; Session::resume() then says what comes of it.
  std::function<void()> aside;
  std::function<Status(Reply&)> then;

  template <class T>
  void put(const T& part) {
    const auto* const from = reinterpret_cast<const std::byte*>(&part);
    body.insert(body.end(), from, from + sizeof(T));
  }
};

class Session {
 public:
  Session(Service& service, Peer peer);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // One request; what it answers is in `reply` unless it is refused. When reply.aside is set: run
  // it, then resume(), and again as long as there is another. No other request meanwhile.
  Status handle(attach::Message& request, Reply& reply);
  Status resume(Reply& reply);
  // share_memory, whose message still lies in the socket.
  Status take_memory(int socket, Reply& reply);
  bool takes_memory() const { return memory_ != nullptr; }
  // Held as long as something is left of the session after its end.
  std::shared_ptr<const void> remains() { return tenant_.remains(); }

  // --- for a look from outside ---
  std::uint32_t number() const { return number_; }
  const Peer& peer() const { return peer_; }
  const std::string& program() const { return program_; }
  std::optional<NicPlace> place() const { return opened_ ? std::optional(place_) : std::nullopt; }
  std::size_t queue_pairs() const { return pairs_.size(); }
  std::size_t completion_queues() const { return queues_.size(); }
  std::size_t regions() const { return regions_.size(); }
  std::uint64_t messages() const {
    return worker_session_ == nullptr ? 0 : worker_session_->messages();
  }
  // False: its user has as many sessions as it may have.
  bool admitted() const { return counted_; }
  bool greeted() const { return greeted_; }
  TenantMemoryCounters memory() const;
  // Whether that address of this process is in a view of its regions.
  bool holds(std::uintptr_t address);

 private:
  using Message = attach::Message;

  Status dispatch(Message& request, Reply& reply);
  Status counted(Status status);
  Status hello(const Message& request, Reply& reply);
  Status list_nics(Reply& reply);
  Status open_nic(const Message& request, Reply& reply);
  Status query_port(Reply& reply);
  Status create_pd(Reply& reply);
  Status destroy_pd(const Message& request);
  Status create_channel(Reply& reply);
  Status destroy_channel(const Message& request);
  // session_memory.cc
  Status register_region(const Message& request, Reply& reply);
  Status reregister_region(const Message& request, Reply& reply);
  Status deregister_region(const Message& request, Reply& reply);
  Status allocate_window(const Message& request, Reply& reply);
  Status free_window(const Message& request);
  Status move_region(const Message& request, RegionObject& region, const RegionObject& to,
                     Reply& reply);
  template <class Then>
  Status map_memory(const attach::RegisterRequest& r, std::vector<attach::Extent> extents,
                    Reply& reply, Then then);
  Status unmap_memory(std::unique_ptr<RegionMemory> region, Reply& reply, Status status);
  std::uint32_t add_region(const RegionObject& region);
  // False: windows are bound to it.
  bool remove_region(const RegionObject& region);
  Status check_region(const attach::RegisterRequest& r) const;
  Status extents_of(const Message& request, std::vector<attach::Extent>& out) const;
  // session_queues.cc
  Status create_cq(const Message& request, Reply& reply);
  Status resize_cq(const Message& request, Reply& reply);
  std::uint64_t unfinished_sends(const CompletionAdapter& queue);
  Status destroy_cq(const Message& request);
  Status create_srq(const Message& request, Reply& reply);
  Status modify_srq(const Message& request);
  Status query_srq(const Message& request, Reply& reply);
  Status destroy_srq(const Message& request);
  // session_pairs.cc
  Status create_qp(const Message& request, Reply& reply);
  Status modify_qp(const Message& request);
  Status query_qp(const Message& request, Reply& reply);
  Status destroy_qp(const Message& request, Reply& reply);
  Status limit_rate(const Message& request);
  Status create_ah(const Message& request, Reply& reply);
  Status destroy_ah(const Message& request);
  Status path_of(const attach::AddressVector& from, std::uint32_t local_qp, std::uint32_t remote_qp,
                 transport::QpPath& path) const;
  // Of an unreliable one: something is posted that is not sent.
  bool sending(const PairObject& pair);
  Status destroy_sent(std::uint32_t handle, int looks, Reply& reply);
  void release(PairObject& pair);

  // Everything goes; the worker knows nothing of it afterwards.
  void close();
  ServiceWorker& worker() { return service_.worker(place_.worker); }
  const NicSet& nics() const { return service_.worker(place_.worker).nics(); }
  transport::Engine& engine() { return *nics().nic(place_.nic).engine; }
  template <class Work>
  bool on_worker(Work&& work) {
    return worker().call(place_.nic, std::forward<Work>(work));
  }
  // Of a queue that takes so many bytes, shared and of our own.
  Status take_queue(QueueShare& share, std::uint64_t bytes);
  // By its process' RLIMIT_MEMLOCK (service.memlock); the first refusal of a session is logged.
  Status check_lockable(std::uint64_t bytes);
  // What a region takes beside its place among them; a refusal takes nothing.
  Status take_extents(std::uint64_t bytes, std::uint64_t mappings);
  void give_extents(std::uint64_t bytes, std::uint64_t mappings);
  std::optional<std::uint32_t> take_bell();
  void give_bell(std::uint32_t bell);

  Service& service_;
  Tenant& tenant_;
  Peer peer_;
  std::uint32_t number_;
  std::string program_;
  bool greeted_ = false;
  bool opened_ = false;
  bool told_memlock_ = false;
  Held descriptors_;
  bool counted_ = false;  // among the tenant's sessions
  NicPlace place_{};
  attach::SharedMemory bells_;
  attach::Descriptor wake_;
  Pipe notices_;
  std::shared_ptr<TenantMemory> memory_;
  std::unique_ptr<WorkerSession> worker_session_;
  std::vector<bool> bell_used_;

  HandleTable<ProtectionDomain> pds_;
  HandleTable<Channel> channels_;
  HandleTable<RegionObject> regions_;
  HandleTable<WindowObject> windows_;
  HandleTable<CompletionObject> queues_;
  HandleTable<SharedReceiveObject> srqs_;
  HandleTable<PairObject> pairs_;
  HandleTable<AddressHandleObject> handles_;
  std::vector<std::uint32_t> leaving_handles_;  // destroyed, but not yet the engine's
};

}  // namespace paceline::service
