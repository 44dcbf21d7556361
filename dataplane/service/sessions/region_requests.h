// Requests for memory of the program: shared memory, regions and memory windows.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/attach/message_socket.h"
#include "dataplane/service/sessions/reply.h"
#include "dataplane/service/sessions/session_state.h"

namespace paceline::service {

class RegionRequests {
 public:
  explicit RegionRequests(SessionState& state) : state_(state) {}

  // share_memory, whose message still lies in the socket.
  Status take_memory(int socket, Reply& reply);
  Status register_region(const attach::Message& request, Reply& reply);
  Status reregister_region(const attach::Message& request, Reply& reply);
  Status deregister_region(const attach::Message& request, Reply& reply);
  Status allocate_window(const attach::Message& request, Reply& reply);
  Status free_window(const attach::Message& request);
  // Whether that address of this process is in a view of its regions.
  bool holds(std::uintptr_t address);
  // Gives back the quota of a region, beside its place in the table.
  void give_extents(std::uint64_t bytes, std::uint64_t mappings);

 private:
  Status move_region(const attach::Message& request, RegionObject& region, const RegionObject& to,
                     Reply& reply);
  template <class Then>
  Status map_memory(const attach::RegisterRequest& r, std::vector<attach::Extent> extents,
                    Reply& reply, Then then);
  Status unmap_memory(std::unique_ptr<RegionMemory> region, Reply& reply, Status status);
  std::uint32_t add_region(const RegionObject& region);
  // False: windows are bound to it.
  bool remove_region(const RegionObject& region);
  Status check_region(const attach::RegisterRequest& r) const;
  Status extents_of(const attach::Message& request, std::vector<attach::Extent>& out) const;
  // Checks RLIMIT_MEMLOCK of its process (service.memlock); logs the first refusal of a session.
  Status check_lockable(std::uint64_t bytes);
  // Takes the quota of a region, beside its place in the table; a refusal takes nothing.
  Status take_extents(std::uint64_t bytes, std::uint64_t mappings);

  SessionState& state_;
  bool told_memlock_ = false;
};

}  // namespace paceline::service
