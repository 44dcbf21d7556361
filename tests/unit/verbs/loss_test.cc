// The service goes away, or the program forks: no hang, no crash, and everybody is told.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "tests/unit/verbs/open_device.h"

using namespace paceline;
using namespace paceline::verbs_test;

TEST_CASE("when the service dies, what was out is flushed and every call after that fails",
          "[verbs][threads]") {
  OpenDevice device;
  ibv_comp_channel* const channel = ibv_create_comp_channel(device.context);
  ibv_cq* const armed = ibv_create_cq(device.context, 8, nullptr, channel, 0);
  ibv_qp_init_attr attr = device.wants();
  attr.recv_cq = armed;
  ibv_qp* const qp = device.make_pair(attr);
  ibv_send_wr wr = send_request(21);
  ibv_send_wr* bad = nullptr;
  wr.send_flags = 0;  // flushed requests complete, signaled or not
  REQUIRE(ibv_post_send(qp, &wr, &bad) == 0);
  wr.wr_id = 22;
  REQUIRE(ibv_post_send(qp, &wr, &bad) == 0);
  wr.wr_id = 23;
  REQUIRE(ibv_post_send(qp, &wr, &bad) == 0);
  ibv_recv_wr receive = receive_request(31);
  ibv_recv_wr* bad_receive = nullptr;
  REQUIRE(ibv_post_recv(qp, &receive, &bad_receive) == 0);
  device.complete(qp, attach::EntryOpcode::send, 21, 1);
  REQUIRE(ibv_req_notify_cq(armed, 0) == 0);
  device.service.die();

  // The program finds out by waiting for the event that it armed.
  ibv_cq* from = nullptr;
  void* context = nullptr;
  REQUIRE(ibv_get_cq_event(channel, &from, &context) == 0);
  CHECK(from == armed);
  ibv_ack_cq_events(armed, 1);
  CHECK(ibv_req_notify_cq(armed, 0) == EIO);  // else the next event would come at once, for ever
  CHECK(ibv_get_cq_event(channel, &from, &context) == -1);
  CHECK(errno == EIO);
  ibv_wc wc[4];
  REQUIRE(ibv_poll_cq(armed, 4, wc) == 1);
  CHECK(wc[0].wr_id == 31);
  CHECK(wc[0].status == IBV_WC_WR_FLUSH_ERR);
  const auto done = device.poll();
  REQUIRE(done.size() == 3);
  CHECK(done[0].wr_id == 21);
  CHECK(done[0].status == IBV_WC_SUCCESS);
  CHECK(done[1].wr_id == 22);
  CHECK(done[1].status == IBV_WC_WR_FLUSH_ERR);
  CHECK(done[2].wr_id == 23);
  CHECK(done[2].qp_num == qp->qp_num);
  CHECK(device.poll().empty());

  ibv_async_event event{};
  REQUIRE(ibv_get_async_event(device.context, &event) == 0);
  CHECK(event.event_type == IBV_EVENT_DEVICE_FATAL);
  ibv_ack_async_event(&event);
  CHECK(ibv_get_async_event(device.context, &event) == -1);
  CHECK(errno == EIO);

  CHECK(ibv_post_send(qp, &wr, &bad) == EIO);
  CHECK(bad == &wr);
  CHECK(ibv_alloc_pd(device.context) == nullptr);
  CHECK(errno == EIO);
  ibv_qp_attr state{};
  CHECK(ibv_modify_qp(qp, &state, IBV_QP_STATE) == EIO);
  // Only destruction works, as there is nothing left to destroy but what is here.
  CHECK(ibv_destroy_qp(qp) == 0);
  device.pairs.clear();
  CHECK(ibv_destroy_cq(armed) == 0);
  CHECK(ibv_destroy_comp_channel(channel) == 0);
}

TEST_CASE("a program that only polls finds out that the service died", "[verbs][threads]") {
  OpenDevice device;
  ibv_qp* const qp = device.make_pair();
  ibv_recv_wr receive = receive_request(31);
  ibv_recv_wr* bad = nullptr;
  REQUIRE(ibv_post_recv(qp, &receive, &bad) == 0);
  device.service.die();
  ibv_wc wc{};
  int got = 0;
  while ((got = ibv_poll_cq(device.cq, 1, &wc)) == 0) {
  }
  CHECK(got == 1);
  CHECK(wc.wr_id == 31);
  CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
}

TEST_CASE("a child of fork is refused and leaves its parent's queues alone", "[verbs][threads]") {
  OpenDevice device;
  ibv_qp* const qp = device.make_pair();
  ibv_send_wr wr = send_request(1);
  ibv_send_wr* bad = nullptr;
  REQUIRE(ibv_post_send(qp, &wr, &bad) == 0);
  device.complete(qp, attach::EntryOpcode::send, 1, 1);
  const std::size_t asked = device.service.requests(attach::Operation::modify_qp);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ibv_wc wc{};
    ibv_qp_attr attr{};
    int wrong = 0;
    if (ibv_post_send(qp, &wr, &bad) != EIO) wrong |= 1;
    if (ibv_poll_cq(device.cq, 1, &wc) >= 0) wrong |= 2;
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE) != EIO) wrong |= 4;
    if (ibv_destroy_qp(qp) != 0) wrong |= 8;
    if (ibv_destroy_cq(device.cq) != 0) wrong |= 16;
    if (ibv_close_device(device.context) != 0) wrong |= 32;
    ::_exit(wrong);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  // The parent continues as if nothing had happened.
  CHECK(device.shared(qp).send_tail() == 1);
  CHECK(device.service.requests(attach::Operation::modify_qp) == asked);
  const auto done = device.poll();
  REQUIRE(done.size() == 1);
  CHECK(done[0].wr_id == 1);
  REQUIRE(ibv_post_send(qp, &wr, &bad) == 0);
  CHECK(device.shared(qp).send_tail() == 2);
}
