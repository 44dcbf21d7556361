// Completion queues, their events, asynchronous events.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "tests/unit/verbs/open_device.h"

using namespace paceline;
using namespace paceline::verbs_test;
using attach::Operation;

namespace {

bool readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

}  // namespace

TEST_CASE("completions come in order, and no more than were asked for", "[verbs][threads]") {
  OpenDevice device;
  ibv_qp* const qp = device.make_pair();
  CHECK(device.poll().empty());
  for (std::uint32_t i = 0; i < 5; ++i) {
    device.complete(qp, attach::EntryOpcode::receive, 10 + i, i + 1);
  }
  auto done = device.poll(3);
  REQUIRE(done.size() == 3);
  CHECK(done[2].wr_id == 12);
  done = device.poll();
  REQUIRE(done.size() == 2);
  CHECK(done[1].wr_id == 14);
  CHECK(done[1].opcode == IBV_WC_RECV);
  CHECK(device.service.queue(device.cq->handle).header().head.value.load() == 5);
}

TEST_CASE("what is left of a destroyed queue pair is not polled", "[verbs][threads]") {
  OpenDevice device;
  ibv_qp* const gone = device.make_pair();
  ibv_qp* const stays = device.make_pair();
  device.complete(gone, attach::EntryOpcode::send, 1, 1);
  device.complete(stays, attach::EntryOpcode::send, 2, 1);
  device.complete(gone, attach::EntryOpcode::send, 3, 2);
  CHECK(ibv_destroy_cq(device.cq) == EBUSY);
  REQUIRE(ibv_destroy_qp(gone) == 0);
  device.pairs.erase(device.pairs.begin());
  const auto done = device.poll();
  REQUIRE(done.size() == 1);
  CHECK(done[0].wr_id == 2);
}

TEST_CASE("a resize keeps what waits", "[verbs][threads]") {
  OpenDevice device;
  ibv_qp* const qp = device.make_pair();
  for (std::uint32_t i = 0; i < 12; ++i) {
    device.complete(qp, attach::EntryOpcode::receive, i, i + 1);
  }
  REQUIRE(device.poll(2).size() == 2);
  CHECK(ibv_resize_cq(device.cq, 4) == EINVAL);
  CHECK(ibv_resize_cq(device.cq, 0) == EINVAL);
  REQUIRE(ibv_resize_cq(device.cq, 100) == 0);
  CHECK(device.cq->cqe == 128);
  device.complete(qp, attach::EntryOpcode::receive, 12, 13);
  const auto done = device.poll();
  REQUIRE(done.size() == 11);
  for (std::uint32_t i = 0; i < 11; ++i) CHECK(done[i].wr_id == i + 2);
  CHECK(device.poll().empty());
}

TEST_CASE("an armed queue writes to its channel once", "[verbs][threads]") {
  OpenDevice device;
  ibv_comp_channel* const channel = ibv_create_comp_channel(device.context);
  REQUIRE(channel != nullptr);
  int mark = 0;
  ibv_cq* const cq = ibv_create_cq(device.context, 8, &mark, channel, 0);
  REQUIRE(cq != nullptr);
  CHECK(ibv_destroy_comp_channel(channel) == EBUSY);
  ibv_qp_init_attr attr = device.wants();
  attr.recv_cq = cq;
  ibv_qp* const qp = device.make_pair(attr);
  attach::CompletionEntry entry;
  entry.qp_number = qp->qp_num;
  entry.opcode = attach::EntryOpcode::receive;
  device.service.complete(cq->handle, entry);
  CHECK_FALSE(readable(channel->fd));
  REQUIRE(ibv_req_notify_cq(cq, 0) == 0);
  CHECK_FALSE(readable(channel->fd));  // for what comes, not for what is there
  device.service.complete(cq->handle, entry);
  device.service.complete(cq->handle, entry);
  ibv_cq* from = nullptr;
  void* context = nullptr;
  REQUIRE(ibv_get_cq_event(channel, &from, &context) == 0);
  CHECK(from == cq);
  CHECK(context == &mark);
  CHECK_FALSE(readable(channel->fd));
  REQUIRE(ibv_req_notify_cq(cq, 1) == 0);
  device.service.complete(cq->handle, entry);
  CHECK_FALSE(readable(channel->fd));
  entry.flags = attach::entry_flag::solicited;
  device.service.complete(cq->handle, entry);
  CHECK(readable(channel->fd));

  // A blocking channel is the program's to make otherwise.
  REQUIRE(ibv_get_cq_event(channel, &from, &context) == 0);
  REQUIRE(::fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
  CHECK(ibv_get_cq_event(channel, &from, &context) == -1);
  CHECK(errno == EAGAIN);

  // Destruction waits until both events are acknowledged.
  ibv_destroy_qp(qp);
  device.pairs.clear();
  std::atomic<bool> acknowledged{false};
  ibv_ack_cq_events(cq, 1);
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    acknowledged.store(true);
    ibv_ack_cq_events(cq, 1);
  });
  CHECK(ibv_destroy_cq(cq) == 0);
  CHECK(acknowledged.load());
  late.join();
  CHECK(ibv_destroy_comp_channel(channel) == 0);
}

TEST_CASE("an event of a queue that is gone is nobody's", "[verbs][threads]") {
  OpenDevice device;
  ibv_comp_channel* const channel = ibv_create_comp_channel(device.context);
  REQUIRE(::fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
  ibv_cq* const cq = ibv_create_cq(device.context, 8, nullptr, channel, 0);
  REQUIRE(ibv_req_notify_cq(cq, 0) == 0);
  device.service.complete(cq->handle, {});
  REQUIRE(readable(channel->fd));
  REQUIRE(ibv_destroy_cq(cq) == 0);
  ibv_cq* from = nullptr;
  void* context = nullptr;
  CHECK(ibv_get_cq_event(channel, &from, &context) == -1);
  CHECK(errno == EAGAIN);
  CHECK(ibv_destroy_comp_channel(channel) == 0);
}

TEST_CASE("asynchronous events name their objects", "[verbs][threads]") {
  OpenDevice device;
  ibv_qp* const qp = device.make_pair();
  REQUIRE(::fcntl(device.context->async_fd, F_SETFL, O_NONBLOCK) == 0);
  ibv_async_event event{};
  CHECK(ibv_get_async_event(device.context, &event) == -1);
  CHECK(errno == EAGAIN);
  device.service.notice(IBV_EVENT_COMM_EST, qp->handle);
  REQUIRE(ibv_get_async_event(device.context, &event) == 0);
  CHECK(event.event_type == IBV_EVENT_COMM_EST);
  CHECK(event.element.qp == qp);
  ibv_ack_async_event(&event);
  device.service.notice(IBV_EVENT_CQ_ERR, device.cq->handle);
  REQUIRE(ibv_get_async_event(device.context, &event) == 0);
  CHECK(event.element.cq == device.cq);
  ibv_ack_async_event(&event);
  device.service.notice(IBV_EVENT_PORT_ERR, 1);
  REQUIRE(ibv_get_async_event(device.context, &event) == 0);
  CHECK(event.element.port_num == 1);
  ibv_ack_async_event(&event);
  device.service.notice(IBV_EVENT_QP_FATAL, 4711);  // of no queue pair any more
  CHECK(ibv_get_async_event(device.context, &event) == -1);

  // A queue pair waits for its events to be acknowledged.
  device.service.notice(IBV_EVENT_QP_FATAL, qp->handle);
  REQUIRE(ibv_get_async_event(device.context, &event) == 0);
  std::atomic<bool> acknowledged{false};
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    acknowledged.store(true);
    ibv_ack_async_event(&event);
  });
  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(acknowledged.load());
  late.join();
  device.pairs.clear();
}

TEST_CASE("a program that spins is woken by what it spins for", "[verbs][threads]") {
  OpenDevice device;
  ibv_qp* const qp = device.make_pair();
  std::atomic<bool> napped{false};
  std::thread service([&] {
    auto& wanted = device.service.queue(device.cq->handle).header().wanted.value;
    while ((wanted.load() & attach::completion_wanted::sleeper) == 0) std::this_thread::yield();
    napped.store(true);
    device.complete(qp, attach::EntryOpcode::send, 5, 1);
  });
  ibv_wc wc{};
  while (ibv_poll_cq(device.cq, 1, &wc) == 0) {
  }
  CHECK(napped.load());
  CHECK(wc.wr_id == 5);
  service.join();
}

TEST_CASE("several threads post and poll one queue pair", "[verbs][threads]") {
  OpenDevice device;
  ibv_qp* const qp = device.make_pair();
  constexpr int kThreads = 3;
  constexpr int kEach = 500;
  std::atomic<int> polled{0};
  std::atomic<bool> over{false};
  std::thread service([&] {
    std::uint32_t done = 0;
    while (!over.load()) {
      const std::uint32_t tail = device.shared(qp).send_tail();
      for (; done != tail; ++done) device.complete(qp, attach::EntryOpcode::send, done, done + 1);
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> programs;
  for (int t = 0; t < kThreads; ++t) {
    programs.emplace_back([&] {
      ibv_wc wc[4];
      for (int i = 0; i < kEach;) {
        ibv_send_wr wr = send_request(static_cast<std::uint64_t>(i));
        ibv_send_wr* bad = nullptr;
        if (ibv_post_send(qp, &wr, &bad) == 0) ++i;
        polled += ibv_poll_cq(device.cq, 4, wc);
      }
    });
  }
  for (auto& p : programs) p.join();
  ibv_wc wc[4];
  while (polled.load() < kThreads * kEach) polled += ibv_poll_cq(device.cq, 4, wc);
  over.store(true);
  service.join();
  CHECK(polled.load() == kThreads * kEach);
  CHECK(device.shared(qp).send_tail() == kThreads * kEach);
}
