// Memory regions: registration in all its spellings, re-registration, deregistration.
#include "dataplane/verbs/regions/memory_region.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/device/context.h"
#include "dataplane/verbs/device/process_memory.h"

namespace paceline::verbs {

namespace {

constexpr unsigned kOffered = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                              IBV_ACCESS_MW_BIND;
constexpr unsigned kKnownAccess =
    kOffered | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB;

// Removes optional flags from `access`. Returns 0, or an errno for a flag that is not supported.
int check_access(unsigned& access) {
  access &= ~static_cast<unsigned>(IBV_ACCESS_OPTIONAL_RANGE);
  if ((access & ~kKnownAccess) != 0) return EINVAL;
  // A hint on how the memory was allocated, of use to pinning alone.
  access &= ~static_cast<unsigned>(IBV_ACCESS_HUGETLB);
  // No page is ever pinned: memory that is not shared is read and written where it is at that time.
  access &= ~static_cast<unsigned>(IBV_ACCESS_ON_DEMAND);
  if ((access & ~kOffered) != 0) return EOPNOTSUPP;
  // IBTA 10.6.3.1, ibv_reg_mr(3): remote write and atomics take local write.
  const bool written_from_afar =
      (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
  if (written_from_afar && (access & IBV_ACCESS_LOCAL_WRITE) == 0) return EINVAL;
  return 0;
}

std::uint64_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

// Asks the service for a region of the held range, or, if nothing is held, of the same range as
// before.
int send_registration(Context& c, attach::Operation operation, attach::RegisterRequest request,
                      const RegistrationMap::Held& held, attach::RegisterReply& out) {
  std::vector<attach::Extent> extents;
  if (!held.empty()) {
    // In more pieces than a request has room for, or unknown to this session: by copy, all of it.
    const bool shared = c.shares_memory && held.extents().size() <= attach::kMaxExtents;
    extents = shared ? held.extents() : std::vector<attach::Extent>{held.by_copy()};
  }
  if (c.order != nullptr) {
    for (attach::Extent& e : extents) c.order->mark(e);
  }
  request.extents = static_cast<std::uint32_t>(extents.size());
  attach::Message body;
  body.append(request);
  for (const attach::Extent& e : extents) body.append(e);
  attach::Message reply;
  const int error = c.session.exchange(operation, body.body, reply);
  if (error == 0) out = reply.as<attach::RegisterReply>();
  return error;
}

MemoryRegion* make_region(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                          unsigned access) {
  // A region of all addresses: refused as by the kernel's drivers that page on demand without it.
  const bool implicit = address == nullptr && length == std::numeric_limits<std::size_t>::max();
  if (implicit && (access & IBV_ACCESS_ON_DEMAND) != 0) return refuse(EINVAL);
  if (const int error = check_access(access); error != 0) return refuse(error);
  if (number_of(address) + length < length || iova + length < length) return refuse(EINVAL);
  auto region = std::make_unique<MemoryRegion>();
  region->mr.context = pd->context;
  region->mr.pd = pd;
  region->mr.addr = address;
  Context& c = Context::of(pd->context);
  if (!c.usable()) return refuse(EIO);
  // Nothing can be reached, so there is no key.
  if (length == 0) return region.release();
  int error = process_memory().prepare(number_of(address), length, region->held);
  if (error != 0) return refuse(error);
  attach::RegisterRequest request;
  request.address = number_of(address);
  request.length = length;
  request.iova = iova;
  request.access = access;
  request.pd = pd->handle;
  attach::RegisterReply reply;
  error = send_registration(c, attach::Operation::register_region, request, region->held, reply);
  if (error != 0) {
    process_memory().release(region->held);
    return refuse(error);
  }
  region->mr = {pd->context, pd, address, length, reply.handle, reply.local_key, reply.remote_key};
  region->iova = iova;
  region->access = access;
  return region.release();
}

// A value of enum ibv_rereg_mr_err_code; errno says more.
int reregister(MemoryRegion& region, int flags, ibv_pd* pd, void* address, std::size_t length,
               unsigned access) {
  ibv_mr& mr = region.mr;
  const bool moved = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  const bool other_access = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
  const bool other_pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0;
  int error = 0;
  if ((flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0 || flags == 0) error = EINVAL;
  if (moved && (address == nullptr || length == 0)) error = EINVAL;
  if (mr.handle == 0) error = EINVAL;  // of no bytes
  if (other_pd && (pd == nullptr || pd->context != mr.context)) error = EINVAL;
  if (error == 0 && other_access) error = check_access(access);
  if (error != 0) {
    errno = error;
    return IBV_REREG_MR_ERR_INPUT;
  }
  RegistrationMap::Held held;
  if (moved) error = process_memory().prepare(number_of(address), length, held);
  if (error != 0) {
    errno = error;
    return IBV_REREG_MR_ERR_INPUT;
  }
  attach::RegisterRequest q;
  q.address = moved ? number_of(address) : number_of(mr.addr);
  q.length = moved ? length : mr.length;
  q.iova = moved ? q.address : region.iova;
  q.access = other_access ? access : region.access;
  q.pd = (other_pd ? pd : mr.pd)->handle;
  q.handle = mr.handle;
  q.change = static_cast<std::uint32_t>(flags);
  attach::RegisterReply reply;
  error = send_registration(Context::of(mr.context), attach::Operation::reregister_region, q, held,
                            reply);
  if (error != 0) {
    if (moved) process_memory().release(held);
    errno = error;
    // A refused request changes nothing (protocol.h), so the region is still what it was.
    return error == EIO ? IBV_REREG_MR_ERR_CMD : IBV_REREG_MR_ERR_INPUT;
  }
  if (moved) {
    std::swap(region.held, held);
    process_memory().release(held);
  }
  mr.handle = reply.handle;
  mr.lkey = reply.local_key;
  mr.rkey = reply.remote_key;
  if (moved) {
    mr.addr = address;
    mr.length = length;
  }
  if (other_pd) mr.pd = pd;
  region.iova = q.iova;
  region.access = q.access;
  return 0;
}

ibv_mr* handle_of(MemoryRegion* region) { return region == nullptr ? nullptr : &region->mr; }

}  // namespace

MemoryRegion* register_memory(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                              unsigned access) noexcept {
  return guarded(static_cast<MemoryRegion*>(nullptr),
                 [&] { return make_region(pd, address, length, iova, access); });
}

}  // namespace paceline::verbs

using paceline::verbs::MemoryRegion;

PACELINE_VERBS_EXPORT ibv_mr* ibv_reg_mr(ibv_pd* pd, void* addr, std::size_t length, int access) {
  return paceline::verbs::handle_of(paceline::verbs::register_memory(
      pd, addr, length, paceline::verbs::number_of(addr), static_cast<unsigned>(access)));
}

PACELINE_VERBS_EXPORT ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* addr, std::size_t length,
                                              std::uint64_t iova, int access) {
  return paceline::verbs::handle_of(
      paceline::verbs::register_memory(pd, addr, length, iova, static_cast<unsigned>(access)));
}

PACELINE_VERBS_EXPORT ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* addr, std::size_t length,
                                               std::uint64_t iova, unsigned int access) {
  return paceline::verbs::handle_of(
      paceline::verbs::register_memory(pd, addr, length, iova, access));
}

PACELINE_VERBS_EXPORT ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* /*pd*/, std::uint64_t /*offset*/,
                                                std::size_t /*length*/, std::uint64_t /*iova*/,
                                                int /*fd*/, int /*access*/) {
  return paceline::verbs::refuse(EOPNOTSUPP);
}

PACELINE_VERBS_EXPORT int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* addr,
                                       std::size_t length, int access) {
  return paceline::verbs::guarded(static_cast<int>(IBV_REREG_MR_ERR_INPUT), [&] {
    return paceline::verbs::reregister(MemoryRegion::of(mr), flags, pd, addr, length,
                                       static_cast<unsigned>(access));
  });
}

PACELINE_VERBS_EXPORT int ibv_dereg_mr(ibv_mr* mr) {
  using namespace paceline::verbs;
  MemoryRegion* const region = &MemoryRegion::of(mr);
  const int error = guarded(ENOMEM, [&] {
    if (mr->handle == 0) return 0;  // of no bytes
    return Context::of(mr->context)
        .session.drop(paceline::attach::Operation::deregister_region, mr->handle);
  });
  if (error != 0 && error != EIO) return result(error);
  guarded(0, [&] {
    process_memory().release(region->held);
    return 0;
  });
  if (region->users != nullptr) region->users->fetch_sub(1);
  delete region;
  return 0;
}
