// Memory windows: ibv_alloc_mw, ibv_bind_mw, ibv_dealloc_mw. The service decides what may be bound
// to what: a bind that is not allowed completes with an error.
#include <cerrno>
#include <memory>

#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/device/context.h"
#include "dataplane/verbs/device/operations.h"

namespace paceline::verbs {

namespace {

ibv_mw* make_window(ibv_pd* pd, ibv_mw_type type) {
  auto window = std::make_unique<ibv_mw>();
  const attach::AllocateWindowRequest request{pd->handle, static_cast<std::uint32_t>(type)};
  attach::WindowReply reply;
  const int error =
      Context::of(pd->context).session.ask(attach::Operation::allocate_window, request, reply);
  if (error != 0) return refuse(error);
  *window = {pd->context, pd, reply.key, reply.handle, type};
  return window.release();
}

}  // namespace

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) noexcept {
  // An unknown type is an error, not an empty answer.
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) return refuse(EINVAL);
  return guarded(static_cast<ibv_mw*>(nullptr), [&] { return make_window(pd, type); });
}

int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) noexcept {
  if (mw->type != IBV_MW_TYPE_1 || qp->pd == nullptr || mw->pd->handle != qp->pd->handle) {
    return result(EINVAL);
  }
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_BIND_MW;
  wr.wr_id = bind->wr_id;
  wr.send_flags = bind->send_flags;
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
  wr.bind_mw.bind_info = bind->bind_info;
  ibv_send_wr* bad = nullptr;
  return post_send(qp, &wr, &bad);
}

int dealloc_mw(ibv_mw* mw) noexcept {
  const int error = guarded(ENOMEM, [&] {
    return Context::of(mw->context).session.drop(attach::Operation::free_window, mw->handle);
  });
  if (error != 0 && error != EIO) return result(error);
  delete mw;
  return 0;
}

}  // namespace paceline::verbs
