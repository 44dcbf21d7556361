// Refusals that many operations have in common.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>

#include "dataplane/service/sessions/session_state.h"

namespace paceline::service {

inline Status nothing_called(const char* kind, std::uint32_t handle) {
  return {EINVAL, fmt::format("there is no {} {}", kind, handle)};
}

// The tenant has reached its limit.
inline Status over_quota(const char* what) {
  return {EDQUOT, fmt::format("{}: this user has reached its limit", what)};
}

inline Status out_of_queue_memory(const Allowance& of) {
  return {EDQUOT, fmt::format("memory of queues: {} of {} bytes are in use (service.queue_memory)",
                              of.used, of.most)};
}

inline Status out_of_range(const char* what, std::uint64_t value, std::uint64_t least,
                           std::uint64_t most) {
  return {EINVAL, fmt::format("{} = {}: {} to {}", what, value, least, most)};
}

// By TenantMemory::add.
inline Status memory_unreachable(int error) {
  switch (error) {
    case ESRCH:
      return {error, "the process that connected has ended, or runs another program now"};
    case EPERM:
    case EACCES:
      return {error,
              "the rights of this user do not reach the memory of the process (another user's, not "
              "dumpable, or a program of root whose capabilities the service has not)"};
    default:
      return {error, "the memory cannot be reached"};
  }
}

inline Status not_who_connected(int sender, int connected) {
  return {EPERM, fmt::format("process {} asks for memory of process {}, which connected", sender,
                             connected)};
}

// Ends an object unless others use it. What it holds of its tenant's quotas goes with it.
template <class T>
Status end_unused(HandleTable<T>& objects, const char* kind, const attach::Message& request) {
  const std::uint32_t handle = request.as<attach::HandleBody>().handle;
  const T* const object = objects.find(handle);
  if (object == nullptr) return nothing_called(kind, handle);
  if (object->uses != 0) return {EBUSY, fmt::format("the {} is in use", kind)};
  objects.erase(handle);
  return {};
}

inline Status worker_gone() { return {EIO, "the worker has ended"}; }

}  // namespace paceline::service
