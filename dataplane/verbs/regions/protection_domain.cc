#include "dataplane/verbs/regions/protection_domain.h"

#include <memory>
#include <new>

#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/device/context.h"
#include "dataplane/verbs/device/operations.h"

namespace paceline::verbs {

namespace {

ibv_pd* make_domain(ibv_context* context) {
  auto domain = std::make_unique<ProtectionDomain>();
  attach::HandleBody reply;
  const int error =
      Context::of(context).session.ask(attach::Operation::create_pd, attach::HandleBody{}, reply);
  if (error != 0) return refuse(error);
  domain->pd.context = context;
  domain->pd.handle = reply.handle;
  return &domain.release()->pd;
}

ibv_pd* make_parent(ibv_context* context, const ibv_parent_domain_init_attr& attr) {
  // This library allocates nothing in the program's memory for a queue, so it never calls the
  // program's allocators; pd_context is only an argument of theirs.
  constexpr std::uint32_t kKnown =
      IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  if ((attr.comp_mask & ~kKnown) != 0) return refuse(EOPNOTSUPP);
  if (attr.pd == nullptr || attr.pd->context != context) return refuse(EINVAL);
  auto domain = std::make_unique<ProtectionDomain>();
  ProtectionDomain& given = ProtectionDomain::of(attr.pd);
  domain->original = given.original != nullptr ? given.original : &given;
  domain->pd = domain->original->pd;
  domain->original->parents.fetch_add(1);
  if (attr.td != nullptr) {
    domain->thread = reinterpret_cast<ThreadDomain*>(attr.td);
    domain->thread->users.fetch_add(1);
  }
  return &domain.release()->pd;
}

}  // namespace

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr) noexcept {
  if (attr != nullptr && attr->comp_mask != 0) return refuse(EOPNOTSUPP);
  auto* const domain = new (std::nothrow) ThreadDomain;
  if (domain == nullptr) return refuse(ENOMEM);
  domain->td.context = context;
  return &domain->td;
}

int dealloc_td(ibv_td* td) noexcept {
  auto* const domain = reinterpret_cast<ThreadDomain*>(td);
  if (domain->users.load() != 0) return result(EBUSY);
  delete domain;
  return 0;
}

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr) noexcept {
  return guarded(static_cast<ibv_pd*>(nullptr), [&] { return make_parent(context, *attr); });
}

}  // namespace paceline::verbs

using paceline::verbs::Context;
using paceline::verbs::ProtectionDomain;

PACELINE_VERBS_EXPORT ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return paceline::verbs::guarded(static_cast<ibv_pd*>(nullptr),
                                  [&] { return paceline::verbs::make_domain(context); });
}

PACELINE_VERBS_EXPORT int ibv_dealloc_pd(ibv_pd* pd) {
  using paceline::verbs::result;
  ProtectionDomain* const domain = &ProtectionDomain::of(pd);
  if (domain->original != nullptr) {
    domain->original->parents.fetch_sub(1);
    if (domain->thread != nullptr) domain->thread->users.fetch_sub(1);
    delete domain;
    return 0;
  }
  if (domain->parents.load() != 0) return result(EBUSY);
  Context& c = Context::of(pd->context);
  const int error = paceline::verbs::guarded(
      ENOMEM, [&] { return c.session.drop(paceline::attach::Operation::destroy_pd, pd->handle); });
  // A service that is gone has nothing left to free.
  if (error != 0 && error != EIO) return result(error);
  delete domain;
  return 0;
}
