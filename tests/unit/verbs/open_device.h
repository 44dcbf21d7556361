// A device of a fake service, opened, with one of each object: what most tests start from.
#pragma once

#include <infiniband/verbs.h>

#include <catch2/catch.hpp>
#include <vector>

#include "tests/unit/verbs/fake_service.h"

namespace paceline::verbs_test {

struct OpenDevice {
  FakeService service;
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  std::vector<ibv_qp*> pairs;

  OpenDevice() {
    ibv_device** const list = ibv_get_device_list(nullptr);
    REQUIRE(list != nullptr);
    REQUIRE(list[0] != nullptr);
    context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    REQUIRE(context != nullptr);
    pd = ibv_alloc_pd(context);
    REQUIRE(pd != nullptr);
    cq = ibv_create_cq(context, 16, nullptr, nullptr, 0);
    REQUIRE(cq != nullptr);
  }
  ~OpenDevice() {
    for (ibv_qp* qp : pairs) ibv_destroy_qp(qp);
    if (cq != nullptr) ibv_destroy_cq(cq);
    ibv_dealloc_pd(pd);
    ibv_close_device(context);
  }
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;

  ibv_qp_init_attr wants(ibv_qp_type type = IBV_QPT_RC) const {
    ibv_qp_init_attr attr{};
    attr.send_cq = cq;
    attr.recv_cq = cq;
    attr.cap = {4, 4, 2, 2, 32};
    attr.qp_type = type;
    return attr;
  }
  // Ready to send, as far as the library is concerned.
  ibv_qp* make_pair(ibv_qp_init_attr attr) {
    ibv_qp* const qp = ibv_create_qp(pd, &attr);
    REQUIRE(qp != nullptr);
    pairs.push_back(qp);
    to_state(qp, IBV_QPS_RTS);
    return qp;
  }
  ibv_qp* make_pair() { return make_pair(wants()); }
  ibv_qp_ex* make_extended(ibv_qp_type type, std::uint64_t operations) {
    const ibv_qp_init_attr plain = wants(type);
    ibv_qp_init_attr_ex attr{};
    attr.send_cq = attr.recv_cq = cq;
    attr.cap = plain.cap;
    attr.qp_type = type;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.pd = pd;
    attr.send_ops_flags = operations;
    ibv_qp* const qp = ibv_create_qp_ex(context, &attr);
    if (qp == nullptr) return nullptr;
    pairs.push_back(qp);
    to_state(qp, IBV_QPS_RTS);
    return ibv_qp_to_qp_ex(qp);
  }
  static void to_state(ibv_qp* qp, ibv_qp_state state) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    REQUIRE(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
  }

  FakePair& shared(const ibv_qp* qp) { return service.pair(qp->handle); }
  void complete(const ibv_qp* qp, attach::EntryOpcode opcode, std::uint64_t wr_id,
                std::uint32_t retired, attach::EntryStatus status = attach::EntryStatus::success) {
    attach::CompletionEntry entry;
    entry.wr_id = wr_id;
    entry.qp_number = qp->qp_num;
    entry.opcode = opcode;
    entry.retired = retired;
    entry.status = status;
    service.complete(cq->handle, entry);
  }
  std::vector<ibv_wc> poll(int most = 16) {
    std::vector<ibv_wc> out(static_cast<std::size_t>(most));
    const int got = ibv_poll_cq(cq, most, out.data());
    REQUIRE(got >= 0);
    out.resize(static_cast<std::size_t>(got));
    return out;
  }
};

inline ibv_send_wr send_request(std::uint64_t wr_id, ibv_sge* list = nullptr, int count = 0) {
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = list;
  wr.num_sge = count;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  return wr;
}

inline ibv_recv_wr receive_request(std::uint64_t wr_id, ibv_sge* list = nullptr, int count = 0) {
  ibv_recv_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = list;
  wr.num_sge = count;
  return wr;
}

}  // namespace paceline::verbs_test
