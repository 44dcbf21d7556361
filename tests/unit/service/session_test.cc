// What a program may ask for, what it is refused and why, and what is left when it is gone.
#include <signal.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "tests/unit/service/service_support.h"

using namespace paceline;
using namespace paceline::test;
using attach::Operation;

namespace {

attach::HandleBody named(std::uint32_t handle) { return {handle, 0}; }

nlohmann::json status_of(AttachClient& client) {
  const Answer answer = client.ask(Operation::status);
  REQUIRE(answer.ok());
  REQUIRE(answer.message.descriptors.empty());
  const auto& body = answer.message.body;
  return nlohmann::json::parse(reinterpret_cast<const char*>(body.data()),
                               reinterpret_cast<const char*>(body.data() + body.size()));
}

// Until `holds`, or 5 s have gone by.
template <class Holds>
bool comes_true(Holds holds) {
  for (int i = 0; i < 5000; ++i) {
    if (holds()) return true;
    ::usleep(1000);
  }
  return false;
}

}  // namespace

TEST_CASE("attaching goes step by step, and what is out of turn ends the connection", "[threads]") {
  RunningService service;
  SECTION("a NIC is opened after hello only") {
    AttachClient client(service.path());
    attach::OpenRequest open;
    std::strcpy(open.nic.data(), "h0");
    const Answer answer = client.ask(Operation::open_nic, open);
    CHECK(answer.error == EPROTO);
    CHECK(client.ask(Operation::hello, attach::HelloRequest{}).transfer != attach::Transfer::done);
  }
  SECTION("objects are made in a session only") {
    AttachClient client(service.path());
    REQUIRE(client.ask(Operation::hello, attach::HelloRequest{}).ok());
    CHECK(client.ask(Operation::create_pd).error == EPROTO);
  }
  SECTION("the NICs are listed without a session, and a wrong name is told") {
    AttachClient client(service.path());
    REQUIRE(client.ask(Operation::hello, attach::HelloRequest{}).ok());
    const Answer list = client.ask(Operation::list_nics);
    REQUIRE(list.ok());
    REQUIRE(list.message.as<attach::NicList>().count == 2);
    REQUIRE(list.message.body.size() == sizeof(attach::NicList) + 2 * sizeof(attach::NicInfo));
    attach::OpenRequest open;
    std::strcpy(open.nic.data(), "h7");
    const Answer answer = client.ask(Operation::open_nic, open);
    CHECK(answer.error == ENODEV);
    CHECK(answer.complaint() == "there is no NIC 'h7'");
    std::strcpy(open.nic.data(), "h1");
    CHECK(client.ask(Operation::open_nic, open).ok());
    CHECK(client.ask(Operation::open_nic, open).error == EPROTO);
  }
  SECTION("an operation that does not exist") {
    AttachClient client(service.path());
    REQUIRE(client.open("h0"));
    CHECK(client.ask(static_cast<Operation>(999)).error == EPROTO);
  }
  SECTION("bytes that are no message") {
    AttachClient client(service.path());
    REQUIRE(client.connected());
    REQUIRE(::write(client.socket(), "nonsense", 8) == 8);
    attach::Message message;
    CHECK(attach::receive_message(client.socket(), message) == attach::Transfer::done);
    CHECK(message.header.error == EPROTO);
    CHECK(attach::receive_message(client.socket(), message) == attach::Transfer::closed);
  }
}

TEST_CASE("what others are built on is not destroyed under them", "[threads]") {
  RunningService service;
  End a(service, "h0");
  AttachClient& client = a.client;
  CHECK(client.ask(Operation::destroy_pd, named(a.pd)).error == EBUSY);  // a region
  REQUIRE(a.pair.create(client, a.request()) == 0);
  CHECK(client.ask(Operation::destroy_cq, named(a.cq.handle)).error == EBUSY);
  REQUIRE(client.ask(Operation::deregister_region, named(a.region.handle)).ok());
  CHECK(client.ask(Operation::deregister_region, named(a.region.handle)).error == EINVAL);
  CHECK(client.ask(Operation::destroy_pd, named(a.pd)).error == EBUSY);  // a queue pair
  REQUIRE(client.ask(Operation::destroy_qp, named(a.pair.reply.handle)).ok());
  CHECK(client.ask(Operation::destroy_qp, named(a.pair.reply.handle)).error == EINVAL);
  CHECK(client.ask(Operation::destroy_cq, named(a.cq.handle)).ok());
  CHECK(client.ask(Operation::destroy_pd, named(a.pd)).ok());
}

TEST_CASE("sizes, handles and rights are checked before anything is made", "[threads]") {
  RunningService service;
  End a(service, "h0");
  const auto made = [&](auto change) {
    attach::CreateQpRequest r = a.request();
    change(r);
    ClientPair pair;
    return pair.create(a.client, r);
  };
  CHECK(made([](auto& r) { r.pd = 99; }) == EINVAL);
  CHECK(made([](auto& r) { r.send_cq = 0; }) == EINVAL);
  CHECK(made([](auto& r) { r.receive_cq = 99; }) == EINVAL);
  CHECK(made([](auto& r) { r.srq = 4; }) == EINVAL);
  CHECK(made([](auto& r) { r.send_requests = 16385; }) == EINVAL);
  CHECK(made([](auto& r) { r.receive_segments = 17; }) == EINVAL);
  CHECK(made([](auto& r) { r.inline_bytes = 513; }) == EINVAL);
  CHECK(made([](auto& r) { r.type = static_cast<attach::PairType>(8); }) == EOPNOTSUPP);
  CHECK(made([](auto&) {}) == 0);

  int error = 0;
  a.client.register_region(a.memory.data(), 0, a.pd, 1, &error);
  CHECK(error == EINVAL);
  a.client.register_region(a.memory.data(), 64, a.pd, 2, &error);  // remote write without local
  CHECK(error == EINVAL);
  a.client.register_region(a.memory.data(), 64, a.pd, 64, &error);
  CHECK(error == EINVAL);
  a.client.register_region(a.memory.data(), 64, 77, 1, &error);
  CHECK(error == EINVAL);

  ClientQueue queue;
  CHECK_FALSE(queue.create(a.client, 0));
  CHECK_FALSE(queue.create(a.client, 65537));
  CHECK_FALSE(queue.create(a.client, 8, 5));
}

TEST_CASE("states of a queue pair: what is refused changes nothing", "[threads]") {
  RunningService service;
  End a(service, "h0");
  REQUIRE(a.pair.create(a.client, a.request()) == 0);
  CHECK(a.modify(to_rts()) == EINVAL);
  attach::QpValues init = to_init();
  init.port = 2;
  CHECK(a.modify(init) == EINVAL);
  REQUIRE(a.modify(to_init()) == 0);
  attach::QpValues rtr = to_rtr(17, 9);
  CHECK(a.modify(rtr) == EHOSTUNREACH);  // no instance 9
  rtr = to_rtr(17, 2);
  rtr.path_mtu = 7;
  CHECK(a.modify(rtr) == EINVAL);
  rtr = to_rtr(17, 2);
  rtr.max_dest_rd_atomic = 17;
  CHECK(a.modify(rtr) == EINVAL);
  rtr = to_rtr(17, 2);
  rtr.mask |= 1U << 14;  // alternate path
  CHECK(a.modify(rtr) == EINVAL);
  REQUIRE(a.modify(to_rtr(17, 2)) == 0);
  REQUIRE(a.modify(to_rts()) == 0);

  const Answer answer = a.client.ask(Operation::query_qp, named(a.pair.reply.handle));
  REQUIRE(answer.ok());
  const auto v = answer.message.as<attach::QpValues>();
  CHECK(v.state == 3);
  CHECK(v.path_mtu == 3);
  CHECK(v.dest_qp == 17);
  CHECK(v.rq_psn == 100);
  CHECK(v.sq_psn == 100);
  CHECK(v.timeout == 14);
  CHECK(v.path.destination_id == 2);
  CHECK(v.access == 0xF);
}

TEST_CASE("a tenant has its quota and no more, and what it gives back it may have again",
          "[threads]") {
  service::ServiceSettings settings;
  settings.quota.queue_pairs = 1;
  settings.quota.registered_bytes = (1 << 16) + 100;
  settings.quota.sessions = 2;
  RunningService service(settings);
  End a(service, "h0");
  REQUIRE(a.pair.create(a.client, a.request()) == 0);
  ClientPair second;
  CHECK(second.create(a.client, a.request()) == ENOMEM);
  int error = 0;
  a.client.register_region(a.memory.data(), 101, a.pd, 1, &error);
  CHECK(error == ENOMEM);
  CHECK(a.client.register_region(a.memory.data(), 100, a.pd, 1).handle != 0);

  AttachClient other(service.path());
  REQUIRE(other.open("h1"));
  AttachClient third(service.path());
  CHECK_FALSE(third.open("h1"));
  const auto status = status_of(other);
  CHECK(status["tenants"][0]["refused"]["EDQUOT"] == 2);
  CHECK(status["sessions"].size() == 2);

  REQUIRE(a.client.ask(Operation::destroy_qp, named(a.pair.reply.handle)).ok());
  CHECK(second.create(a.client, a.request()) == 0);
}

TEST_CASE("protection and XRC domains share a quota, and a session gives back all that it had",
          "[threads]") {
  service::ServiceSettings settings;
  settings.quota.protection_domains = 3;
  RunningService service(settings);
  AttachClient left(service.path());
  REQUIRE(left.open("h1"));
  const auto used = [&] {
    return status_of(left)["tenants"][0]["protection_domains"]["used"].get<int>();
  };
  {
    AttachClient client(service.path());
    REQUIRE(client.open("h0"));
    const std::uint32_t pd = client.create_pd();
    CHECK(client.create_pd() != pd);
    const Answer domain = client.ask(Operation::open_domain, attach::OpenDomainRequest{});
    REQUIRE(domain.ok());
    CHECK(client.ask(Operation::create_pd).error == ENOMEM);
    CHECK(client.ask(Operation::open_domain, attach::OpenDomainRequest{}).error == ENOMEM);
    REQUIRE(client.ask(Operation::destroy_pd, named(pd)).ok());
    CHECK(client.ask(Operation::destroy_pd, named(pd)).error == EINVAL);
    REQUIRE(
        client.ask(Operation::close_domain, named(domain.message.as<attach::HandleBody>().handle))
            .ok());
    CHECK(used() == 1);
  }
  for (int i = 0; i < 5000 && used() != 0; ++i) ::usleep(1000);
  CHECK(used() == 0);
}

TEST_CASE("requests that cannot be carried out complete in error, in their turn", "[threads]") {
  Connection connection;
  auto& [service, a, b] = connection;
  // One that is good, the bad one, and one that is flushed behind it.
  attach::SendSlot good = signaled_slot(attach::SendOpcode::write, 1);
  good.flags = 0;  // silent: the next that is not counts it
  good.remote_address = reinterpret_cast<std::uint64_t>(b.memory.data());
  good.remote_key = b.region.remote_key;
  const attach::SharedSegment all[] = {a.piece(0, 4096)};
  attach::EntryStatus expected{};
  attach::SendSlot bad = signaled_slot(attach::SendOpcode::send, 2);
  std::vector<attach::SharedSegment> segments{a.piece(0, 8)};
  SECTION("a key that does not exist") {
    segments[0].key ^= 0x100;
    expected = attach::EntryStatus::local_protection_error;
  }
  SECTION("beyond the end of its region") {
    segments[0].address += a.memory.size();
    expected = attach::EntryStatus::local_protection_error;
  }
  SECTION("an operation that does not exist") {
    bad.opcode = static_cast<attach::SendOpcode>(77);
    expected = attach::EntryStatus::local_qp_operation_error;
  }
  SECTION("more segments than the queue pair has") {
    segments.resize(5, a.piece(0, 8));
    expected = attach::EntryStatus::local_qp_operation_error;
  }
  SECTION("invalidation of a region that does not exist") {
    bad.opcode = attach::SendOpcode::local_invalidate;
    bad.immediate = 0x7777'0000;
    expected = attach::EntryStatus::local_qp_operation_error;
  }
  SECTION("an atomic operation of another length than 8") {
    bad.opcode = attach::SendOpcode::fetch_add;
    segments[0].length = 16;
    expected = attach::EntryStatus::local_length_error;
  }
  a.pair.post_send(good, all);
  a.pair.post_send(bad, segments);
  a.pair.post_send(signaled_slot(attach::SendOpcode::send, 3), all);
  attach::CompletionEntry entry;
  REQUIRE(a.cq.wait(entry));
  CHECK(entry.wr_id == 2);
  CHECK(entry.retired == 2);
  CHECK(static_cast<int>(entry.status) == static_cast<int>(expected));
  REQUIRE(a.cq.wait(entry));
  CHECK(entry.wr_id == 3);
  CHECK(entry.status == attach::EntryStatus::flushed);
  CHECK(std::equal(a.memory.begin(), a.memory.begin() + 4096, b.memory.begin()));
}

// By the service's own clock, and only that it is not faster: how late a test is, nobody knows.
TEST_CASE("a rate limit bounds what a queue pair sends", "[threads]") {
  Connection connection;
  auto& [service, a, b] = connection;
  attach::RateRequest limit;
  limit.handle = a.pair.reply.handle + 100;
  limit.kbps = 50'000;
  CHECK(a.client.ask(attach::Operation::limit_rate, limit).error == EINVAL);
  limit.handle = a.pair.reply.handle;
  CHECK(a.client.ask(attach::Operation::limit_rate, limit).ok());
  attach::QpValues query;
  query.handle = limit.handle;
  CHECK(a.client.get<attach::QpValues>(attach::Operation::query_qp, query).rate_limit_kbps ==
        50'000);

  attach::SendSlot write = signaled_slot(attach::SendOpcode::write, 1);
  write.remote_address = reinterpret_cast<std::uint64_t>(b.memory.data());
  write.remote_key = b.region.remote_key;
  // Its completion is before what is posted next, however late the worker saw it.
  const attach::SharedSegment little[] = {a.piece(0, 64)};
  a.pair.post_send(write, little);
  attach::CompletionEntry before;
  REQUIRE(a.cq.wait(before));
  const attach::SharedSegment piece[] = {a.piece(0, 60'000)};
  for (int i = 0; i < 3; ++i) a.pair.post_send(write, piece);
  attach::CompletionEntry last;
  for (int i = 0; i < 3; ++i) REQUIRE(a.cq.wait(last));
  CHECK(last.status == attach::EntryStatus::success);
  // 180,000 bytes at 50 Mb/s take 28.8 ms; the last packet, and what a late worker makes up for,
  // less.
  CHECK(last.timestamp_ns - before.timestamp_ns >= 26'000'000);
}

TEST_CASE("local invalidation is done in order, and the key is dead afterwards", "[threads]") {
  Connection connection;
  auto& [service, a, b] = connection;
  attach::SendSlot write = signaled_slot(attach::SendOpcode::write, 1);
  write.remote_address = reinterpret_cast<std::uint64_t>(b.memory.data());
  write.remote_key = b.region.remote_key;
  const attach::SharedSegment piece[] = {a.piece(0, 60'000)};
  a.pair.post_send(write, piece);
  attach::SendSlot invalidate = signaled_slot(attach::SendOpcode::local_invalidate, 2);
  invalidate.immediate = a.region.local_key;
  a.pair.post_send(invalidate, {});
  a.pair.post_send(write, piece);
  attach::CompletionEntry entry;
  REQUIRE(a.cq.wait(entry));
  CHECK(entry.opcode == attach::EntryOpcode::write);
  CHECK(entry.status == attach::EntryStatus::success);
  REQUIRE(a.cq.wait(entry));
  CHECK(entry.opcode == attach::EntryOpcode::local_invalidate);
  CHECK(entry.status == attach::EntryStatus::success);
  REQUIRE(a.cq.wait(entry));
  CHECK(entry.status == attach::EntryStatus::local_protection_error);
}

TEST_CASE("a memory window is bound in order, and holds its region", "[threads]") {
  Connection connection;
  auto& [service, a, b] = connection;
  // Changed in place: the keys stay.
  attach::RegisterRequest change;
  change.handle = b.region.handle;
  change.change = 4;  // IBV_REREG_MR_CHANGE_ACCESS
  change.access = attach::region_access::local_write | attach::region_access::window_bind;
  const Answer changed = b.client.ask(Operation::reregister_region, change);
  REQUIRE(changed.ok());
  CHECK(changed.message.as<attach::RegisterReply>().remote_key == b.region.remote_key);

  CHECK(b.client.ask(Operation::allocate_window, attach::AllocateWindowRequest{b.pd, 3}).error ==
        EINVAL);
  CHECK(b.client.ask(Operation::allocate_window, attach::AllocateWindowRequest{99, 2}).error ==
        EINVAL);
  const Answer made =
      b.client.ask(Operation::allocate_window, attach::AllocateWindowRequest{b.pd, 2});
  REQUIRE(made.ok());
  const auto window = made.message.as<attach::WindowReply>();
  attach::SendSlot bind = signaled_slot(attach::SendOpcode::bind_window, 1);
  bind.remote_key = window.key ^ 1U;
  bind.address_handle = b.region.local_key;
  bind.remote_address = reinterpret_cast<std::uint64_t>(b.memory.data());
  bind.compare_add = 4096;
  bind.swap = attach::region_access::remote_write;
  b.pair.post_send(bind, {});
  attach::CompletionEntry entry;
  REQUIRE(b.cq.wait(entry));
  CHECK(entry.opcode == attach::EntryOpcode::bind_window);
  REQUIRE(entry.status == attach::EntryStatus::success);
  CHECK(b.client.ask(Operation::deregister_region, named(b.region.handle)).error == EBUSY);
  CHECK(b.client.ask(Operation::reregister_region, change).error == EBUSY);

  attach::SendSlot write = signaled_slot(attach::SendOpcode::write, 2);
  write.remote_address = bind.remote_address;
  write.remote_key = bind.remote_key;
  const attach::SharedSegment piece[] = {a.piece(0, 4096)};
  a.pair.post_send(write, piece);
  REQUIRE(a.cq.wait(entry));
  CHECK(entry.status == attach::EntryStatus::success);
  CHECK(std::equal(a.memory.begin(), a.memory.begin() + 4096, b.memory.begin()));

  // It is bound: not again, and the queue pair fails.
  b.pair.post_send(bind, {});
  REQUIRE(b.cq.wait(entry));
  CHECK(entry.status == attach::EntryStatus::window_bind_error);
  CHECK(b.client.ask(Operation::destroy_pd, named(b.pd)).error == EBUSY);
  REQUIRE(b.client.ask(Operation::free_window, named(window.handle)).ok());
  CHECK(b.client.ask(Operation::free_window, named(window.handle)).error == EINVAL);
  CHECK(b.client.ask(Operation::deregister_region, named(b.region.handle)).ok());
}

TEST_CASE("a queue whose index makes no sense fails alone", "[threads]") {
  Connection connection;
  auto& [service, a, b] = connection;
  a.pair.set_send_tail(1000);  // of 16
  const attach::AsyncNotice notice = a.client.notice();
  CHECK(notice.event == 1);  // IBV_EVENT_QP_FATAL
  CHECK(notice.handle == a.pair.reply.handle);
  const Answer answer = a.client.ask(Operation::query_qp, named(a.pair.reply.handle));
  CHECK(answer.message.as<attach::QpValues>().state == 6);
  End c(service, "h0");  // others continue
  CHECK(c.pair.create(c.client, c.request()) == 0);
}

TEST_CASE("a completion queue that overruns takes its queue pairs with it", "[threads]") {
  RunningService service;
  End a(service, "h0");
  End b(service, "h1");
  ClientQueue small;
  REQUIRE(small.create(a.client, 2));
  attach::CreateQpRequest request = a.request();
  request.send_cq = small.handle;
  REQUIRE(a.pair.create(a.client, request) == 0);
  REQUIRE(b.pair.create(b.client, b.request()) == 0);
  connect(a, b);
  attach::SendSlot write = signaled_slot(attach::SendOpcode::write, 1);
  write.remote_address = reinterpret_cast<std::uint64_t>(b.memory.data());
  write.remote_key = b.region.remote_key;
  const attach::SharedSegment piece[] = {a.piece(0, 8)};
  for (int i = 0; i < 3; ++i) a.pair.post_send(write, piece);
  attach::AsyncNotice notice = a.client.notice();
  CHECK(notice.event == 0);  // IBV_EVENT_CQ_ERR
  CHECK(notice.handle == small.handle);
  notice = a.client.notice();
  CHECK(notice.event == 1);
  CHECK(notice.handle == a.pair.reply.handle);
}

TEST_CASE("a completion queue grows with what waits in it", "[threads]") {
  Connection connection;
  auto& [service, a, b] = connection;
  attach::SendSlot write = signaled_slot(attach::SendOpcode::write, 0);
  write.remote_address = reinterpret_cast<std::uint64_t>(b.memory.data());
  write.remote_key = b.region.remote_key;
  const attach::SharedSegment piece[] = {a.piece(0, 8)};
  attach::CompletionEntry entry;
  for (std::uint64_t id = 1; id <= 10; ++id) {
    write.wr_id = id;
    a.pair.post_send(write, piece);
    if (id == 3) {
      REQUIRE(a.cq.wait(entry));
      CHECK(entry.wr_id == 1);
      REQUIRE_FALSE(a.cq.resize(a.client, 0));
    }
    if (id == 6) {
      REQUIRE(a.cq.resize(a.client, 200));
      CHECK(a.cq.slots == 256);
    }
  }
  for (std::uint64_t id = 2; id <= 10; ++id) {
    REQUIRE(a.cq.wait(entry));
    CHECK(entry.wr_id == id);
  }
}

TEST_CASE("an armed completion queue writes its cookie to its channel, once", "[threads]") {
  RunningService service;
  End a(service, "h0");
  End b(service, "h1");
  Answer channel = a.client.ask(Operation::create_channel);
  REQUIRE(channel.ok());
  REQUIRE(channel.message.descriptors.size() == 1);
  ClientQueue queue;
  REQUIRE(queue.create(a.client, 16, channel.message.as<attach::HandleBody>().handle, 0xC00C1E));
  attach::CreateQpRequest request = a.request();
  request.send_cq = queue.handle;
  REQUIRE(a.pair.create(a.client, request) == 0);
  REQUIRE(b.pair.create(b.client, b.request()) == 0);
  connect(a, b);
  queue.header().wanted.value.fetch_or(attach::completion_wanted::event);
  attach::SendSlot write = signaled_slot(attach::SendOpcode::write, 0);
  write.remote_address = reinterpret_cast<std::uint64_t>(b.memory.data());
  write.remote_key = b.region.remote_key;
  const attach::SharedSegment piece[] = {a.piece(0, 8)};
  a.pair.post_send(write, piece);
  pollfd fd{channel.message.descriptors[0].get(), POLLIN, 0};
  REQUIRE(::poll(&fd, 1, 5000) == 1);
  attach::ChannelEvent event;
  REQUIRE(::read(fd.fd, &event, sizeof(event)) == sizeof(event));
  CHECK(event.cookie == 0xC00C1E);
  attach::CompletionEntry entry;
  REQUIRE(queue.wait(entry));
  a.pair.post_send(write, piece);  // not armed again
  REQUIRE(queue.wait(entry));
  CHECK(::poll(&fd, 1, 0) == 0);
  CHECK(a.client
            .ask(Operation::destroy_channel, named(channel.message.as<attach::HandleBody>().handle))
            .error == EBUSY);
}

TEST_CASE("a program that is killed leaves nothing behind, and its peer learns of it",
          "[threads]") {
  RunningService service;
  End a(service, "h0");
  int pipe_ends[2];
  REQUIRE(::pipe(pipe_ends) == 0);
  // The child only holds a socket whose session the parent sets up: no thread is needed in it.
  AttachClient other(service.path());
  auto b = std::make_unique<End>(service, "h1");
  REQUIRE(a.pair.create(a.client, a.request()) == 0);
  REQUIRE(b->pair.create(b->client, b->request()) == 0);
  connect(a, *b);
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  REQUIRE(child > 0);
  b->client.close();  // the child's copy is the last
  REQUIRE(other.open("h0"));
  CHECK(status_of(other)["sessions"].size() == 3);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
  CHECK(comes_true([&] { return status_of(other)["sessions"].size() == 2; }));
  const auto tenant = status_of(other)["tenants"][0];
  CHECK(tenant["queue_pairs"]["used"] == 1);
  CHECK(tenant["regions"]["used"] == 1);
  CHECK(tenant["registered_bytes"]["used"] == a.memory.size());
  // The peer waits for nothing, and is told all the same.
  CHECK(comes_true([&] {
    const Answer answer = a.client.ask(Operation::query_qp, named(a.pair.reply.handle));
    return answer.message.as<attach::QpValues>().state == 6;
  }));
}
