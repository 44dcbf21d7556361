#include "dataplane/service/sessions/region_requests.h"

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "dataplane/service/memory/program_memory.h"
#include "dataplane/service/sessions/refusals.h"

namespace paceline::service {

namespace {

constexpr std::uint32_t kAllAccess =
    attach::region_access::local_write | attach::region_access::remote_write |
    attach::region_access::remote_read | attach::region_access::remote_atomic |
    attach::region_access::window_bind;
constexpr std::uint32_t kKnownChanges =
    IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;

std::uint8_t engine_access(std::uint32_t access) {
  auto bits = static_cast<std::uint8_t>(access & kAllAccess & ~attach::region_access::window_bind);
  if ((access & attach::region_access::window_bind) != 0) bits |= transport::access::window_bind;
  // A region that peers may access can also be taken away.
  if ((bits & transport::access::remote) != 0) bits |= transport::access::remote_invalidate;
  return bits;
}

// Result of memory_->add(), from any thread.
struct Mapped {
  std::unique_ptr<RegionMemory> memory;
  int error = EIO;
};

// The most mappings that the service makes; none for memory that is copied.
std::uint64_t mappings_of(std::span<const attach::Extent> extents) {
  const bool copied = std::all_of(extents.begin(), extents.end(), [](const auto& extent) {
    return extent.kind == attach::ExtentKind::by_copy;
  });
  return copied ? 0 : extents.size();
}

std::uint64_t shared_bytes(std::span<const attach::Extent> extents) {
  std::uint64_t bytes = 0;
  for (const attach::Extent& extent : extents) {
    if (extent.kind == attach::ExtentKind::shared) bytes += extent.length;
  }
  return bytes;
}

Status windows_bound() { return {EBUSY, "memory windows are bound to the region"}; }

Status unreachable(int error) {
  if (error == ENODATA) {
    return {EFAULT,
            "the shared memory has no pages in a part of the region: nothing was written "
            "there yet, and the service makes none for a program"};
  }
  return memory_unreachable(error != 0 ? error : EIO);
}

}  // namespace

// The descriptor is received and checked; a wrong one is closed on a side thread.
Status RegionRequests::take_memory(int socket, Reply& reply) {
  struct Taken {
    attach::Descriptor socket;
    attach::Transfer transfer = attach::Transfer::failed;
    int sender = 0;
    std::size_t descriptors = 0;
    int error = 0;
  };
  auto taken = std::make_shared<Taken>();
  taken->socket.reset(::fcntl(socket, F_DUPFD_CLOEXEC, 0));
  if (!taken->socket) return {errno, "descriptors"};
  reply.aside = [taken, memory = state_.memory, pid = state_.peer.pid] {
    attach::Message message;
    taken->transfer = attach::receive_message(taken->socket.get(), message);
    taken->sender = message.sender;
    taken->descriptors = message.descriptors.size();
    if (taken->descriptors == 1 && taken->sender == pid) {
      taken->error = memory->share(std::move(message.descriptors.front()));
    }
    taken->socket.reset();
  };
  reply.then = [this, taken](Reply& answer) -> Status {
    if (taken->transfer != attach::Transfer::done || taken->descriptors != 1) {
      return {EPROTO, "share_memory comes with one descriptor"};
    }
    if (taken->sender != state_.peer.pid) return not_who_connected(taken->sender, state_.peer.pid);
    if (taken->error != 0) return {taken->error, std::strerror(taken->error)};
    answer.put(attach::HandleBody{});
    if (state_.service.userfaultfd() >= 0)
      answer.descriptors.push_back(state_.service.userfaultfd());
    return {};
  };
  return {};
}

// Maps it, aside where that takes long; then `then` with what came of it.
template <class Then>
Status RegionRequests::map_memory(const attach::RegisterRequest& r,
                                  std::vector<attach::Extent> extents, Reply& reply, Then then) {
  auto mapped = std::make_shared<Mapped>();
  const bool quick = shared_bytes(extents) <= TenantMemory::kQuickBytes;
  auto map = [mapped, memory = state_.memory, r, extents = std::move(extents)] {
    try {
      mapped->memory = memory->add(r.address, r.length, extents, mapped->error);
    } catch (const std::exception&) {
      mapped->error = ENOMEM;
    }
  };
  auto after = [mapped, then = std::move(then)](Reply& answer) {
    return then(answer, std::move(mapped->memory), mapped->error);
  };
  if (quick) {
    map();
    return after(reply);
  }
  reply.aside = std::move(map);
  reply.then = std::move(after);
  return {};
}

// Unmaps it, aside where that takes long, before the answer: `status`.
Status RegionRequests::unmap_memory(std::unique_ptr<RegionMemory> region, Reply& reply,
                                    Status status) {
  if (state_.memory->quick_to_remove(*region)) {
    state_.memory->remove(std::move(region));
    return status;
  }
  auto removed = std::make_shared<std::unique_ptr<RegionMemory>>(std::move(region));
  reply.aside = [removed, memory = state_.memory] { memory->remove(std::move(*removed)); };
  reply.then = [status = std::move(status)](Reply&) { return status; };
  return {};
}

Status RegionRequests::check_lockable(std::uint64_t bytes) {
  if (!state_.service.settings().memlock) return {};
  const std::uint64_t most = state_.peer.program->lockable();
  const auto found = state_.tenant.process_bytes.find(state_.peer.pid);
  const std::uint64_t used = found == state_.tenant.process_bytes.end() ? 0 : found->second;
  if (used <= most && bytes <= most - used) return {};
  std::string why = fmt::format(
      "RLIMIT_MEMLOCK of process {} is {} bytes: it has {} registered and asks for {} more "
      "(service.memlock)",
      state_.peer.pid, most, used, bytes);
  if (!std::exchange(told_memlock_, true)) {
    spdlog::warn("user {}, {}: {}", state_.peer.user, state_.program, why);
  }
  return {EDQUOT, std::move(why)};
}

Status RegionRequests::take_extents(std::uint64_t bytes, std::uint64_t mappings) {
  if (Status v = check_lockable(bytes); v.error != 0) return v;
  if (!state_.tenant.registered_bytes.take(bytes)) return over_quota("registered bytes");
  if (state_.tenant.mappings.take(mappings)) {
    state_.tenant.process_bytes[state_.peer.pid] += bytes;
    return {};
  }
  state_.tenant.registered_bytes.give(bytes);
  return over_quota("mappings: extents of regions that are shared");
}

void RegionRequests::give_extents(std::uint64_t bytes, std::uint64_t mappings) {
  state_.tenant.registered_bytes.give(bytes);
  state_.tenant.mappings.give(mappings);
  const auto of = state_.tenant.process_bytes.find(state_.peer.pid);
  if ((of->second -= bytes) == 0) state_.tenant.process_bytes.erase(of);
}

Status RegionRequests::check_region(const attach::RegisterRequest& r) const {
  const std::uint64_t most = state_.service.settings().limits.region_bytes;
  if (r.length == 0 || r.length > most) return out_of_range("length", r.length, 1, most);
  if (r.address + r.length < r.address || r.iova + r.length < r.iova) {
    return {EINVAL, "the region goes beyond the end of the address space"};
  }
  return {};
}

Status RegionRequests::extents_of(const attach::Message& request,
                                  std::vector<attach::Extent>& out) const {
  const auto r = request.as<attach::RegisterRequest>();
  const auto rest = request.beyond<attach::RegisterRequest>();
  if (r.extents == 0 || r.extents > attach::kMaxExtents ||
      rest.size() != r.extents * sizeof(attach::Extent)) {
    return {EPROTO, "extents do not fit their count"};
  }
  out.resize(r.extents);
  std::memcpy(out.data(), rest.data(), rest.size());
  return {};
}

static Status check_access(std::uint32_t access) {
  if ((access & ~kAllAccess) != 0) {
    return {EINVAL, fmt::format("access: bits {:#x} are not offered", access & ~kAllAccess)};
  }
  // Vol. 1, 10.6.3.1: remote writing and atomics need local writing.
  constexpr std::uint32_t kWrites =
      attach::region_access::remote_write | attach::region_access::remote_atomic;
  if ((access & kWrites) != 0 && (access & attach::region_access::local_write) == 0) {
    return {EINVAL, "access: remote write and atomic need local write"};
  }
  return {};
}

// 0: the worker has ended.
std::uint32_t RegionRequests::add_region(const RegionObject& region) {
  std::uint32_t key = 0;
  state_.on_worker([&](Picos) {
    transport::RegionTable& table = state_.engine().regions();
    const std::span<std::byte> plain = region.memory->plain();
    const std::uint8_t access = engine_access(region.access);
    key = plain.empty() ? table.add_provided(region.iova, region.length, region.memory->provider(),
                                             access, region.pd->number)
                        : table.add_plain(region.iova, plain, access, region.pd->number);
  });
  return key;
}

bool RegionRequests::remove_region(const RegionObject& region) {
  bool busy = false;
  state_.on_worker([&](Picos) { busy = !state_.engine().regions().remove(region.key); });
  return !busy;
}

Status RegionRequests::register_region(const attach::Message& request, Reply& reply) {
  const auto r = request.as<attach::RegisterRequest>();
  std::vector<attach::Extent> extents;
  if (Status v = extents_of(request, extents); v.error != 0) return v;
  if (Status v = check_region(r); v.error != 0) return v;
  if (Status v = check_access(r.access); v.error != 0) return v;
  ProtectionDomain* const pd = state_.pds.find(r.pd);
  if (pd == nullptr) return nothing_called("protection domain", r.pd);
  if (!state_.tenant.regions.take()) return over_quota("regions");
  const std::uint64_t mappings = mappings_of(extents);
  if (Status v = take_extents(r.length, mappings); v.error != 0) {
    state_.tenant.regions.give();
    return v;
  }
  return map_memory(r, std::move(extents), reply,
                    [this, r, pd, mappings](Reply& answer, std::unique_ptr<RegionMemory> memory,
                                            int error) -> Status {
                      RegionObject region;
                      region.memory = std::move(memory);
                      region.pd = pd;
                      region.iova = r.iova;
                      region.length = r.length;
                      region.mappings = mappings;
                      region.access = r.access;
                      if (region.memory != nullptr) region.key = add_region(region);
                      if (region.key == 0) {
                        state_.tenant.regions.give();
                        give_extents(r.length, mappings);
                        if (region.memory == nullptr) return unreachable(error);
                        return unmap_memory(std::move(region.memory), answer, worker_gone());
                      }
                      ++pd->uses;
                      const std::uint32_t handle = state_.regions.next();
                      const std::uint32_t key = region.key;
                      state_.regions.insert(handle, std::move(region));
                      answer.put(attach::RegisterReply{handle, key, key, 0});
                      return {};
                    });
}

// The key stays but where the translation changes: then what holds the old one is refused.
Status RegionRequests::reregister_region(const attach::Message& request, Reply& reply) {
  const auto r = request.as<attach::RegisterRequest>();
  RegionObject* const region = state_.regions.find(r.handle);
  if (region == nullptr) return nothing_called("region", r.handle);
  if (r.change == 0 || (r.change & ~kKnownChanges) != 0) {
    return {EINVAL, fmt::format("flags = {:#x}: translation, pd, access", r.change)};
  }
  RegionObject changed;
  changed.pd = region->pd;
  changed.access = region->access;
  if ((r.change & IBV_REREG_MR_CHANGE_PD) != 0) {
    changed.pd = state_.pds.find(r.pd);
    if (changed.pd == nullptr) return nothing_called("protection domain", r.pd);
  }
  if ((r.change & IBV_REREG_MR_CHANGE_ACCESS) != 0) {
    if (Status v = check_access(r.access); v.error != 0) return v;
    changed.access = r.access;
  }
  if ((r.change & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    return move_region(request, *region, changed, reply);
  }
  bool free = false;  // of windows
  const bool ran = state_.on_worker([&](Picos) {
    free = state_.engine().regions().change(region->key, engine_access(changed.access),
                                            changed.pd->number);
  });
  if (!ran) return worker_gone();
  if (!free) return windows_bound();
  ++changed.pd->uses;
  --region->pd->uses;
  region->pd = changed.pd;
  region->access = changed.access;
  reply.put(attach::RegisterReply{r.handle, region->key, region->key, 0});
  return {};
}

// `to` has what stays, and the new protection domain and rights.
Status RegionRequests::move_region(const attach::Message& request, RegionObject& region,
                                   const RegionObject& to, Reply& reply) {
  const auto r = request.as<attach::RegisterRequest>();
  std::vector<attach::Extent> extents;
  if (Status v = extents_of(request, extents); v.error != 0) return v;
  if (Status v = check_region(r); v.error != 0) return v;
  const std::uint64_t mappings = mappings_of(extents);
  if (Status v = take_extents(r.length, mappings); v.error != 0) return v;
  return map_memory(r, std::move(extents), reply,
                    [this, r, mappings, &region, pd = to.pd, access = to.access](
                        Reply& answer, std::unique_ptr<RegionMemory> memory, int error) -> Status {
                      if (memory == nullptr) {
                        give_extents(r.length, mappings);
                        return unreachable(error);
                      }
                      if (!remove_region(region)) {
                        give_extents(r.length, mappings);
                        return unmap_memory(std::move(memory), answer, windows_bound());
                      }
                      give_extents(region.length, region.mappings);
                      ++pd->uses;
                      --region.pd->uses;
                      std::swap(region.memory, memory);
                      region.pd = pd;
                      region.iova = r.iova;
                      region.length = r.length;
                      region.mappings = mappings;
                      region.access = access;
                      region.key = add_region(region);
                      answer.put(attach::RegisterReply{r.handle, region.key, region.key, 0});
                      return unmap_memory(std::move(memory), answer, {});
                    });
}

Status RegionRequests::deregister_region(const attach::Message& request, Reply& reply) {
  const std::uint32_t handle = request.as<attach::HandleBody>().handle;
  RegionObject* const region = state_.regions.find(handle);
  if (region == nullptr) return nothing_called("region", handle);
  if (!remove_region(*region)) return windows_bound();
  std::unique_ptr<RegionMemory> memory = std::move(region->memory);
  state_.tenant.regions.give();
  give_extents(region->length, region->mappings);
  --region->pd->uses;
  state_.regions.erase(handle);
  return unmap_memory(std::move(memory), reply, {});
}

bool RegionRequests::holds(std::uintptr_t address) {
  for (const auto& [handle, region] : state_.regions) {
    if (region.memory->holds(address)) return true;
  }
  return false;
}

Status RegionRequests::allocate_window(const attach::Message& request, Reply& reply) {
  const auto r = request.as<attach::AllocateWindowRequest>();
  if (r.type != IBV_MW_TYPE_1 && r.type != IBV_MW_TYPE_2) {
    return out_of_range("type", r.type, IBV_MW_TYPE_1, IBV_MW_TYPE_2);
  }
  ProtectionDomain* const pd = state_.pds.find(r.pd);
  if (pd == nullptr) return nothing_called("protection domain", r.pd);
  if (!state_.tenant.regions.take()) return over_quota("regions");
  const auto type =
      r.type == IBV_MW_TYPE_1 ? transport::WindowType::one : transport::WindowType::two;
  std::uint32_t key = 0;
  const bool ran = state_.on_worker(
      [&](Picos) { key = state_.engine().regions().add_window(type, pd->number); });
  if (!ran) {
    state_.tenant.regions.give();
    return worker_gone();
  }
  ++pd->uses;
  const std::uint32_t handle = state_.windows.next();
  state_.windows.insert(handle, {pd, key});
  reply.put(attach::WindowReply{handle, key});
  return {};
}

Status RegionRequests::free_window(const attach::Message& request) {
  const std::uint32_t handle = request.as<attach::HandleBody>().handle;
  WindowObject* const window = state_.windows.find(handle);
  if (window == nullptr) return nothing_called("memory window", handle);
  state_.on_worker([&](Picos) { state_.engine().regions().remove_window(window->key); });
  state_.tenant.regions.give();
  --window->pd->uses;
  state_.windows.erase(handle);
  return {};
}

}  // namespace paceline::service
