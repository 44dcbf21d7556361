// ibv_open_xrcd and ibv_close_xrcd.
#include "dataplane/verbs/queue_pair/domain.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <memory>

#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/device/context.h"
#include "dataplane/verbs/device/operations.h"

namespace paceline::verbs {

namespace {

ibv_xrcd* open_domain(ibv_context* context, const ibv_xrcd_init_attr& attr) {
  constexpr std::uint32_t kMask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  if ((attr.comp_mask & ~kMask) != 0) return refuse(EOPNOTSUPP);
  if (attr.comp_mask != kMask || (attr.oflags & ~(O_CREAT | O_EXCL)) != 0) return refuse(EINVAL);
  attach::OpenDomainRequest request;
  if ((attr.oflags & O_CREAT) != 0) request.flags |= attach::domain_flag::create;
  if ((attr.oflags & O_EXCL) != 0) request.flags |= attach::domain_flag::exclusive;
  if (attr.fd != -1) {
    struct stat file {};
    if (::fstat(attr.fd, &file) != 0) return refuse(errno);
    request.flags |= attach::domain_flag::file;
    request.device = file.st_dev;
    request.inode = file.st_ino;
  }
  auto domain = std::make_unique<Domain>();
  attach::HandleBody reply;
  const int error =
      Context::of(context).session.ask(attach::Operation::open_domain, request, reply);
  if (error != 0) return refuse(error);
  domain->xrcd.context = context;
  domain->handle = reply.handle;
  return &domain.release()->xrcd;
}

}  // namespace

ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr) noexcept {
  return guarded(static_cast<ibv_xrcd*>(nullptr), [&] { return open_domain(context, *attr); });
}

int close_xrcd(ibv_xrcd* xrcd) noexcept {
  Domain* const domain = &Domain::of(xrcd);
  const int error = guarded(ENOMEM, [&] {
    return Context::of(xrcd->context).session.drop(attach::Operation::close_domain, domain->handle);
  });
  if (error != 0 && error != EIO) return result(error);
  delete domain;
  return 0;
}

}  // namespace paceline::verbs
