// Registered memory of a session.
#include <infiniband/verbs.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "dataplane/service/refusals.h"
#include "dataplane/service/session.h"

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
  // Who may reach it from outside may also be told to give it up.
  if ((bits & transport::access::remote) != 0) bits |= transport::access::remote_invalidate;
  return bits;
}

}  // namespace

Verdict Session::share_memory(Message& request, Reply& reply) {
  if (request.descriptors.size() != 1) return {EPROTO, "share_memory comes with one descriptor"};
  const int error = memory_->share(std::move(request.descriptors.front()));
  if (error != 0) return {error, std::strerror(error)};
  reply.put(attach::HandleBody{});
  if (service_.userfaultfd() >= 0) reply.descriptors.push_back(service_.userfaultfd());
  return {};
}

Verdict Session::check_region(const attach::RegisterRequest& r) const {
  const std::uint64_t most = service_.settings().limits.region_bytes;
  if (r.length == 0 || r.length > most) return out_of_range("length", r.length, 1, most);
  if (r.address + r.length < r.address || r.iova + r.length < r.iova) {
    return {EINVAL, "the region goes beyond the end of the address space"};
  }
  return {};
}

Verdict Session::extents_of(const Message& request, std::vector<attach::Extent>& out) const {
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

static Verdict check_access(std::uint32_t access) {
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
std::uint32_t Session::add_region(const RegionObject& region) {
  std::uint32_t key = 0;
  on_worker([&](Picos) {
    transport::RegionTable& table = engine().regions();
    const std::span<std::byte> plain = region.memory->plain();
    const std::uint8_t access = engine_access(region.access);
    key = plain.empty() ? table.add_provided(region.iova, region.length, region.memory->provider(),
                                             access, region.pd->number)
                        : table.add_plain(region.iova, plain, access, region.pd->number);
  });
  return key;
}

bool Session::remove_region(const RegionObject& region) {
  bool busy = false;
  on_worker([&](Picos) { busy = !engine().regions().remove(region.key); });
  return !busy;
}

Verdict Session::register_region(const Message& request, Reply& reply) {
  const auto r = request.as<attach::RegisterRequest>();
  std::vector<attach::Extent> extents;
  if (Verdict v = extents_of(request, extents); v.error != 0) return v;
  if (Verdict v = check_region(r); v.error != 0) return v;
  if (Verdict v = check_access(r.access); v.error != 0) return v;
  ProtectionDomain* const pd = pds_.find(r.pd);
  if (pd == nullptr) return nothing_called("protection domain", r.pd);
  if (!tenant_.regions.take()) return over_quota("regions");
  if (!tenant_.registered_bytes.take(r.length)) {
    tenant_.regions.give();
    return over_quota("registered bytes");
  }
  RegionObject region;
  int error = 0;
  region.memory = memory_->add(r.address, r.length, extents, error);
  region.pd = pd;
  region.iova = r.iova;
  region.length = r.length;
  region.access = r.access;
  if (region.memory != nullptr) {
    region.key = add_region(region);
    if (region.key == 0) memory_->remove(std::move(region.memory));
  }
  if (region.memory == nullptr) {
    tenant_.regions.give();
    tenant_.registered_bytes.give(r.length);
    return memory_unreachable(error != 0 ? error : EIO);
  }
  ++pd->uses;
  const std::uint32_t handle = regions_.next();
  const std::uint32_t key = region.key;
  regions_.insert(handle, std::move(region));
  reply.put(attach::RegisterReply{handle, key, key, 0});
  return {};
}

// The key stays but where the translation changes: then what holds the old one is refused.
Verdict Session::reregister_region(const Message& request, Reply& reply) {
  const auto r = request.as<attach::RegisterRequest>();
  RegionObject* const region = regions_.find(r.handle);
  if (region == nullptr) return nothing_called("region", r.handle);
  if (r.change == 0 || (r.change & ~kKnownChanges) != 0) {
    return {EINVAL, fmt::format("flags = {:#x}: translation, pd, access", r.change)};
  }
  RegionObject changed;
  changed.pd = region->pd;
  changed.iova = region->iova;
  changed.length = region->length;
  changed.access = region->access;
  if ((r.change & IBV_REREG_MR_CHANGE_PD) != 0) {
    changed.pd = pds_.find(r.pd);
    if (changed.pd == nullptr) return nothing_called("protection domain", r.pd);
  }
  if ((r.change & IBV_REREG_MR_CHANGE_ACCESS) != 0) {
    if (Verdict v = check_access(r.access); v.error != 0) return v;
    changed.access = r.access;
  }
  std::uint64_t more_bytes = 0;
  const bool moves = (r.change & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  if (moves) {
    std::vector<attach::Extent> extents;
    if (Verdict v = extents_of(request, extents); v.error != 0) return v;
    if (Verdict v = check_region(r); v.error != 0) return v;
    more_bytes = r.length;
    if (!tenant_.registered_bytes.take(more_bytes)) return over_quota("registered bytes");
    int error = 0;
    changed.memory = memory_->add(r.address, r.length, extents, error);
    if (changed.memory == nullptr) {
      tenant_.registered_bytes.give(more_bytes);
      return memory_unreachable(error);
    }
    changed.iova = r.iova;
    changed.length = r.length;
  }
  bool free = false;  // of windows
  if (moves) {
    free = remove_region(*region);
  } else {
    const bool ran = on_worker([&](Picos) {
      free =
          engine().regions().change(region->key, engine_access(changed.access), changed.pd->number);
    });
    if (!ran) return worker_gone();
  }
  if (!free) {
    if (moves) {
      memory_->remove(std::move(changed.memory));
      tenant_.registered_bytes.give(more_bytes);
    }
    return {EBUSY, "memory windows are bound to the region"};
  }
  ++changed.pd->uses;
  --region->pd->uses;
  if (moves) {
    memory_->remove(std::move(region->memory));
    tenant_.registered_bytes.give(region->length);
    changed.key = add_region(changed);
  } else {
    changed.memory = std::move(region->memory);
    changed.key = region->key;
  }
  *region = std::move(changed);
  reply.put(attach::RegisterReply{r.handle, region->key, region->key, 0});
  return {};
}

Verdict Session::deregister_region(const Message& request) {
  const std::uint32_t handle = request.as<attach::HandleBody>().handle;
  RegionObject* const region = regions_.find(handle);
  if (region == nullptr) return nothing_called("region", handle);
  if (!remove_region(*region)) return {EBUSY, "memory windows are bound to the region"};
  memory_->remove(std::move(region->memory));
  tenant_.regions.give();
  tenant_.registered_bytes.give(region->length);
  --region->pd->uses;
  regions_.erase(handle);
  return {};
}

Verdict Session::allocate_window(const Message& request, Reply& reply) {
  const auto r = request.as<attach::AllocateWindowRequest>();
  if (r.type != IBV_MW_TYPE_1 && r.type != IBV_MW_TYPE_2) {
    return out_of_range("type", r.type, IBV_MW_TYPE_1, IBV_MW_TYPE_2);
  }
  ProtectionDomain* const pd = pds_.find(r.pd);
  if (pd == nullptr) return nothing_called("protection domain", r.pd);
  if (!tenant_.regions.take()) return over_quota("regions");
  const auto type =
      r.type == IBV_MW_TYPE_1 ? transport::WindowType::one : transport::WindowType::two;
  std::uint32_t key = 0;
  const bool ran = on_worker([&](Picos) { key = engine().regions().add_window(type, pd->number); });
  if (!ran) {
    tenant_.regions.give();
    return worker_gone();
  }
  ++pd->uses;
  const std::uint32_t handle = windows_.next();
  windows_.insert(handle, {pd, key});
  reply.put(attach::WindowReply{handle, key});
  return {};
}

Verdict Session::free_window(const Message& request) {
  const std::uint32_t handle = request.as<attach::HandleBody>().handle;
  WindowObject* const window = windows_.find(handle);
  if (window == nullptr) return nothing_called("memory window", handle);
  on_worker([&](Picos) { engine().regions().remove_window(window->key); });
  tenant_.regions.give();
  --window->pd->uses;
  windows_.erase(handle);
  return {};
}

}  // namespace paceline::service
