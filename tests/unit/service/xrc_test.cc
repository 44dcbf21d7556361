// XRC domains: what sessions share, what they are refused, and what is left when one of them ends.
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <memory>

#include "tests/unit/service/service_support.h"

using namespace paceline;
using namespace paceline::test;
using attach::Operation;

namespace {

constexpr std::uint32_t kFatal = 1;         // IBV_EVENT_QP_FATAL
constexpr std::uint32_t kRequestError = 2;  // IBV_EVENT_QP_REQ_ERR
constexpr std::uint32_t kInError = 6;       // IBV_QPS_ERR

// Domain of a file that only its number says which it is.
Answer open_domain(AttachClient& client, std::uint64_t inode, std::uint32_t flags) {
  attach::OpenDomainRequest r;
  r.inode = inode;
  r.flags = flags;
  return client.ask(Operation::open_domain, r);
}
constexpr std::uint32_t kMake = attach::domain_flag::file | attach::domain_flag::create;

// A shared receive queue as a program sees it.
struct Receives {
  int create(End& end, std::uint32_t domain) {
    attach::CreateSrqRequest r;
    r.pd = end.pd;
    r.requests = 16;
    r.segments = 1;
    r.domain = domain;
    r.cq = end.cq.handle;
    Answer answer = end.client.ask(Operation::create_srq, r);
    if (!answer.ok()) return answer.error;
    reply = answer.message.as<attach::SrqReply>();
    shape = {reply.slots, reply.stride};
    REQUIRE(memory.open(std::move(answer.message.descriptors.at(0)), shape.bytes(), true));
    return 0;
  }
  void post(End& end, std::uint64_t wr_id, const attach::SharedSegment& segment) {
    std::byte* const at = memory.data() + shape.offset(tail);
    const attach::ReceiveSlot slot{wr_id, 1, 0};
    std::memcpy(at, &slot, sizeof(slot));
    std::memcpy(at + sizeof(slot), &segment, sizeof(segment));
    header().tail.value.store(++tail, std::memory_order_release);
    end.client.ring(reply.doorbell);
  }
  attach::WorkQueueHeader& header() {
    return *reinterpret_cast<attach::WorkQueueHeader*>(memory.data());
  }

  attach::SrqReply reply{};
  attach::WorkQueueShape shape{};
  attach::SharedMemory memory;
  std::uint32_t tail = 0;
};

attach::CreateQpReply make_target(AttachClient& client, std::uint32_t domain) {
  attach::CreateQpRequest r;
  r.type = attach::PairType::xrc_receive;
  r.domain = domain;
  const Answer answer = client.ask(Operation::create_qp, r);
  REQUIRE(answer.ok());
  REQUIRE(answer.message.descriptors.empty());
  return answer.message.as<attach::CreateQpReply>();
}

void lead(AttachClient& client, std::uint32_t handle, std::uint32_t remote, std::uint16_t id,
          bool target) {
  attach::QpValues steps[] = {to_init(), to_rtr(remote, id), to_rts()};
  if (target) {
    steps[2].mask = qp_bit::state | qp_bit::timeout | qp_bit::sq_psn;
  } else {
    steps[1].mask &= ~(qp_bit::max_dest_rd | qp_bit::rnr_timer);
  }
  for (attach::QpValues& step : steps) {
    step.handle = handle;
    REQUIRE(client.ask(Operation::modify_qp, step).ok());
  }
}

// An initiator at h0, connected to a target that `maker` has.
struct Sender {
  Sender(RunningService& service, AttachClient& maker, const attach::CreateQpReply& target)
      : end(service, "h0") {
    REQUIRE(end.pair.create(end.client, end.request(attach::PairType::xrc_send)) == 0);
    CHECK(end.pair.reply.receive_offset == 0);
    lead(end.client, end.pair.reply.handle, target.qp_number, maker.info().local_id, false);
    lead(maker, target.handle, end.pair.reply.qp_number, end.client.info().local_id, true);
  }
  attach::EntryStatus send(std::uint64_t wr_id, std::uint32_t srq) {
    attach::SendSlot slot = signaled_slot(attach::SendOpcode::send, wr_id);
    slot.target_srq = srq;
    const attach::SharedSegment from = end.piece(0, 5000);
    end.pair.post_send(slot, {&from, 1});
    attach::CompletionEntry entry;
    REQUIRE(end.cq.wait(entry));
    CHECK(entry.wr_id == wr_id);
    return entry.status;
  }

  End end;
};

}  // namespace

TEST_CASE("XRC: domains of files, and who finds them", "[threads]") {
  RunningService service;
  End a(service, "h1");
  End b(service, "h1");
  End elsewhere(service, "h0");
  CHECK(open_domain(a.client, 7, attach::domain_flag::file).error == EAGAIN);
  const Answer first = open_domain(a.client, 7, kMake);
  REQUIRE(first.ok());
  const std::uint32_t domain = first.message.as<attach::HandleBody>().handle;
  CHECK(open_domain(b.client, 7, kMake | attach::domain_flag::exclusive).error == EINVAL);
  CHECK(open_domain(b.client, 8, attach::domain_flag::file).error == EAGAIN);
  CHECK(open_domain(elsewhere.client, 7, attach::domain_flag::file).error == EAGAIN);
  const Answer second = open_domain(b.client, 7, attach::domain_flag::file);
  REQUIRE(second.ok());
  CHECK(a.client.ask(Operation::close_domain, attach::HandleBody{domain, 0}).ok());
  CHECK(a.client.ask(Operation::close_domain, attach::HandleBody{domain, 0}).error == EINVAL);
  // It lives on with b; when that is gone, so is it.
  CHECK(open_domain(a.client, 7, attach::domain_flag::file).ok());
  const std::uint32_t handle = second.message.as<attach::HandleBody>().handle;
  Receives receives;
  CHECK(receives.create(b, handle + 5) == EINVAL);
  REQUIRE(receives.create(b, handle) == 0);
  CHECK(b.client.ask(Operation::close_domain, attach::HandleBody{handle, 0}).error == EBUSY);
  CHECK(b.client.ask(Operation::destroy_cq, attach::HandleBody{b.cq.handle, 0}).error == EBUSY);
  // Queue pairs of other kinds do not share it.
  attach::CreateQpRequest wish = b.request();
  wish.srq = receives.reply.handle;
  CHECK(b.pair.create(b.client, wish) == EINVAL);
  CHECK(b.client.ask(Operation::destroy_srq, attach::HandleBody{receives.reply.handle, 0}).ok());
  CHECK(b.client.ask(Operation::close_domain, attach::HandleBody{handle, 0}).ok());
}

TEST_CASE("XRC: a target serves the queues of other sessions, and lives with the last who has it",
          "[threads]") {
  RunningService service;
  End receiver(service, "h1");
  auto maker = std::make_unique<End>(service, "h1");
  const std::uint32_t made_in =
      open_domain(maker->client, 7, kMake).message.as<attach::HandleBody>().handle;
  const std::uint32_t domain =
      open_domain(receiver.client, 7, kMake).message.as<attach::HandleBody>().handle;
  const attach::CreateQpReply target = make_target(maker->client, made_in);
  Receives receives;
  REQUIRE(receives.create(receiver, domain) == 0);
  Sender sender(service, maker->client, target);
  for (std::byte& b : sender.end.memory) b = std::byte{0x5A};

  const auto arrives = [&](std::uint64_t id) {
    receives.post(receiver, id, receiver.piece(0, 8000));
    CHECK(sender.send(id, receives.reply.number) == attach::EntryStatus::success);
    attach::CompletionEntry entry;
    REQUIRE(receiver.cq.wait(entry));
    CHECK(entry.wr_id == id);
    CHECK(entry.bytes == 5000);
    CHECK(entry.qp_number == target.qp_number);
    CHECK((entry.flags & attach::entry_flag::from_domain) != 0);
    CHECK(receives.header().taken.value.load() == receives.tail);
    CHECK(receiver.memory[4999] == std::byte{0x5A});
  };
  arrives(1);
  CHECK(receiver.client.ask(Operation::open_qp, attach::OpenQpRequest{domain, 12345}).error ==
        EINVAL);
  const Answer opened =
      receiver.client.ask(Operation::open_qp, attach::OpenQpRequest{domain, target.qp_number});
  REQUIRE(opened.ok());
  const auto own = opened.message.as<attach::CreateQpReply>();
  CHECK(own.qp_number == target.qp_number);
  maker.reset();  // its session ends
  arrives(2);
  attach::QpValues known =
      receiver.client.get<attach::QpValues>(Operation::query_qp, attach::HandleBody{own.handle, 0});
  CHECK(known.state == 3);

  // The queue goes, with its memory: the next request is refused, and who has the target hears.
  REQUIRE(receiver.client.ask(Operation::destroy_srq, attach::HandleBody{receives.reply.handle, 0})
              .ok());
  CHECK(sender.send(3, receives.reply.number) == attach::EntryStatus::remote_invalid_request);
  const attach::AsyncNotice notice = receiver.client.notice();
  CHECK(notice.event == kRequestError);
  CHECK(notice.handle == own.handle);
  CHECK(receiver.client.ask(Operation::destroy_qp, attach::HandleBody{own.handle, 0}).ok());
  // Gone with the last: the maker's session may take its time.
  int error = 0;
  for (int i = 0; i < 5000 && error == 0; ++i) {
    const Answer late =
        receiver.client.ask(Operation::open_qp, attach::OpenQpRequest{domain, target.qp_number});
    error = late.error;
    if (!late.ok()) break;
    const auto made = late.message.as<attach::CreateQpReply>();
    REQUIRE(receiver.client.ask(Operation::destroy_qp, attach::HandleBody{made.handle, 0}).ok());
    ::usleep(1000);
  }
  CHECK(error == EINVAL);
}

TEST_CASE("XRC: the target of an initiator that ends fails, and who has it hears", "[threads]") {
  RunningService service;
  End keeper(service, "h1");
  const std::uint32_t domain =
      open_domain(keeper.client, 7, kMake).message.as<attach::HandleBody>().handle;
  const attach::CreateQpReply target = make_target(keeper.client, domain);
  { const Sender sender(service, keeper.client, target); }
  const attach::AsyncNotice notice = keeper.client.notice();
  CHECK(notice.event == kFatal);
  CHECK(notice.handle == target.handle);
  const auto known = keeper.client.get<attach::QpValues>(Operation::query_qp,
                                                         attach::HandleBody{target.handle, 0});
  CHECK(known.state == kInError);
}

TEST_CASE("XRC: a session that ends takes its queues, and the target goes on for others",
          "[threads]") {
  RunningService service;
  End keeper(service, "h1");
  const std::uint32_t domain =
      open_domain(keeper.client, 7, kMake).message.as<attach::HandleBody>().handle;
  const attach::CreateQpReply target = make_target(keeper.client, domain);
  Receives kept;
  REQUIRE(kept.create(keeper, domain) == 0);
  Sender sender(service, keeper.client, target);
  std::uint32_t gone = 0;
  {
    End other(service, "h1");
    const std::uint32_t same =
        open_domain(other.client, 7, kMake).message.as<attach::HandleBody>().handle;
    Receives receives;
    REQUIRE(receives.create(other, same) == 0);
    gone = receives.reply.number;
    receives.post(other, 1, other.piece(0, 8000));
    CHECK(sender.send(1, gone) == attach::EntryStatus::success);
  }
  kept.post(keeper, 2, keeper.piece(0, 8000));
  CHECK(sender.send(2, kept.reply.number) == attach::EntryStatus::success);
  attach::CompletionEntry entry;
  REQUIRE(keeper.cq.wait(entry));
  CHECK(entry.wr_id == 2);
  CHECK(gone != kept.reply.number);
}
