// What the service itself takes for a tenant is bounded: memory of queues, descriptors, mappings.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/service/cm/cm_service.h"
#include "dataplane/service/memory/program_memory.h"
#include "dataplane/service/sessions/session.h"
#include "tests/unit/service/service_support.h"

using namespace paceline;
using namespace paceline::test;
using attach::Operation;

namespace {

nlohmann::json tenant_of(AttachClient& client) {
  const Answer answer = client.ask(Operation::status);
  REQUIRE(answer.ok());
  const auto* const text = reinterpret_cast<const char*>(answer.message.body.data());
  return nlohmann::json::parse(text, text + answer.message.body.size())["tenants"][0];
}

// Extents of one page each, so that no two are one mapping.
int register_pages(AttachClient& client, std::uint32_t pd, std::uint32_t pages,
                   attach::RegisterReply* made = nullptr) {
  constexpr std::uint64_t kPage = 4096;
  attach::RegisterRequest r;
  r.address = r.iova = std::uint64_t{1} << 32U;
  r.length = pages * kPage;
  r.access = 1;
  r.pd = pd;
  r.extents = pages;
  attach::Message m;
  m.append(r);
  for (std::uint32_t i = 0; i < pages; ++i) {
    attach::Extent extent;
    extent.length = kPage;
    extent.offset = i % 2 * 2 * kPage;
    extent.kind = attach::ExtentKind::shared;
    m.append(extent);
  }
  const Answer answer = client.ask_bytes(Operation::register_region, m.body);
  if (made != nullptr) *made = answer.message.as<attach::RegisterReply>();
  return answer.error;
}

}  // namespace

TEST_CASE("memory of a tenant's queues is bounded, and comes back", "[threads]") {
  service::ServiceSettings settings;
  settings.quota.queue_bytes = 4 << 20;
  RunningService service(settings);
  End a(service, "h0");
  const auto before = tenant_of(a.client)["queue_bytes"]["used"].get<std::uint64_t>();
  CHECK(before >= 64 * sizeof(attach::CompletionEntry));

  ClientQueue deep;
  CHECK_FALSE(deep.create(a.client, 65536));
  attach::CreateQpRequest large = a.request();
  large.send_requests = large.receive_requests = 16384;
  CHECK(a.pair.create(a.client, large) == ENOMEM);
  attach::CreateSrqRequest shared;
  shared.pd = a.pd;
  shared.requests = 16384;
  shared.segments = 16;
  CHECK(a.client.ask(Operation::create_srq, shared).error == ENOMEM);
  CHECK(tenant_of(a.client)["queue_bytes"]["used"] == before);

  REQUIRE(a.pair.create(a.client, a.request()) == 0);
  const auto pair = tenant_of(a.client)["queue_bytes"]["used"].get<std::uint64_t>();
  CHECK(pair > before);
  attach::ResizeCqRequest resize;
  resize.handle = a.cq.handle;
  resize.entries = 65536;
  CHECK(a.client.ask(Operation::resize_cq, resize).error == ENOMEM);
  resize.entries = 1024;
  CHECK(a.client.ask(Operation::resize_cq, resize).ok());
  CHECK(tenant_of(a.client)["queue_bytes"]["used"] > pair);
  resize.entries = 64;
  CHECK(a.client.ask(Operation::resize_cq, resize).ok());
  CHECK(tenant_of(a.client)["queue_bytes"]["used"] == pair);
  REQUIRE(a.client.ask(Operation::destroy_qp, attach::HandleBody{a.pair.reply.handle, 0}).ok());
  CHECK(tenant_of(a.client)["queue_bytes"]["used"] == before);
}

TEST_CASE("a tenant has its part of the service's descriptors and no more", "[threads]") {
  service::ServiceSettings settings;
  settings.quota.descriptors = 64;
  RunningService service(settings);
  AttachClient a(service.path());
  REQUIRE(a.open("h0"));
  std::vector<Answer> channels;
  while (channels.size() < 64) {
    channels.push_back(a.ask(Operation::create_channel));
    if (!channels.back().ok()) break;
  }
  CHECK(channels.back().error == ENOMEM);
  CHECK(channels.size() > 10);
  CHECK(channels.size() <= 28);
  AttachClient second(service.path());
  CHECK_FALSE(second.open("h1"));

  for (int i = 0; i < 6; ++i) {
    REQUIRE(a.ask(Operation::destroy_channel,
                  channels[static_cast<std::size_t>(i)].message.as<attach::HandleBody>())
                .ok());
  }

  AttachClient third(service.path());
  CHECK(third.open("h1"));
}

TEST_CASE("a tenant has its part of the service's mappings and no more", "[threads]") {
  service::ServiceSettings settings;
  settings.quota.mappings = 100;
  RunningService service(settings);
  AttachClient a(service.path());
  REQUIRE(a.open("h0"));
  const std::uint32_t pd = a.create_pd();
  attach::SharedMemory memory;
  REQUIRE(memory.make("bounds", 4 * 4096));
  std::memset(memory.data(), 1, memory.size());
  const attach::ShareMemoryRequest share;
  const int descriptor = memory.descriptor();
  REQUIRE(
      a.ask_bytes(Operation::share_memory, std::as_bytes(std::span(&share, 1)), {&descriptor, 1})
          .ok());
  attach::RegisterReply region{};
  CHECK(register_pages(a, pd, 101) == ENOMEM);
  CHECK(register_pages(a, pd, 60, &region) == 0);
  CHECK(register_pages(a, pd, 60) == ENOMEM);
  CHECK(register_pages(a, pd, 40) == 0);
  CHECK(tenant_of(a)["mappings"]["used"] == 100);
  REQUIRE(a.ask(Operation::deregister_region, attach::HandleBody{region.handle, 0}).ok());
  CHECK(tenant_of(a)["mappings"]["used"] == 40);
  CHECK(register_pages(a, pd, 60) == 0);
}

namespace {

// A program of that user with that limit of locked memory. It is made before any thread is: a child
// of a process with threads may find locks of the allocator taken for ever.
class RegisteringProgram {
 public:
  RegisteringProgram(uid_t user, rlim_t limit) {
    REQUIRE(::pipe2(ask_.data(), O_CLOEXEC) == 0);
    REQUIRE(::pipe2(answer_.data(), O_CLOEXEC) == 0);
    child_ = ::fork();
    REQUIRE(child_ >= 0);
    if (child_ == 0) ::_exit(serve(user, limit));
  }
  RegisteringProgram(const RegisteringProgram&) = delete;
  RegisteringProgram& operator=(const RegisteringProgram&) = delete;
  ~RegisteringProgram() {
    for (const int fd : {ask_[0], ask_[1], answer_[0], answer_[1]}) ::close(fd);
    ::waitpid(child_, nullptr, 0);
  }

  // Errors of its registrations, one after another.
  std::string with(const RunningService& service) {
    const std::string path = service.path();
    REQUIRE(::write(ask_[1], path.data(), path.size()) == static_cast<ssize_t>(path.size()));
    return read_text(answer_[0]);
  }

 private:
  static std::string read_text(int fd) {
    std::string text(256, '\0');
    const ssize_t n = ::read(fd, text.data(), text.size());
    text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    return text;
  }

  int serve(uid_t user, rlim_t limit) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(ask_[1]);
    const std::string path = read_text(ask_[0]);
    if (path.empty()) return 0;
    const rlimit locked{limit, limit};
    bool good = ::setrlimit(RLIMIT_MEMLOCK, &locked) == 0;
    if (user != ::geteuid()) {
      good = good && ::setgid(user) == 0 && ::setuid(user) == 0 && ::prctl(PR_SET_DUMPABLE, 1) == 0;
    }
    AttachClient client(path);
    good = good && client.connected() && client.open("h0");
    const std::uint32_t pd = client.create_pd();
    std::vector<std::byte> memory(1 << 20);
    std::string said = good ? "" : "? ";
    const auto add = [&](std::size_t bytes) {
      int error = 0;
      const auto region = client.register_region(memory.data(), bytes, pd, 0xF, &error);
      said += error == ENOMEM ? "ENOMEM " : std::to_string(error) + " ";
      return region.handle;
    };
    const std::uint32_t first = add(300'000);
    add(300'000);
    add(200'000);
    client.ask(Operation::deregister_region, attach::HandleBody{first, 0});
    add(300'000);
    return ::write(answer_[1], said.data(), said.size()) < 0 ? 1 : 0;
  }

  std::array<int, 2> ask_{};
  std::array<int, 2> answer_{};
  pid_t child_ = -1;
};

}  // namespace

// Not for the thread sanitizer: its runtime does not survive the process that copies (CLONE_VM).
TEST_CASE("with service.memlock a process registers no more than it could lock", "[may_skip]") {
  const bool root = ::geteuid() == 0;
  const uid_t other = root ? 54'321 : ::geteuid();
  RegisteringProgram unbounded(other, 500'000);
  RegisteringProgram one_at_a_time(other, 500'000);
  RegisteringProgram too_small(other, 300'000);
  RegisteringProgram of_root(::geteuid(), 0);
  service::ServiceSettings settings;
  settings.open = true;
  {
    const RunningService service(settings);
    CHECK(unbounded.with(service) == "0 0 0 0 ");
  }
  settings.memlock = true;
  const RunningService service(settings);
  CHECK(one_at_a_time.with(service) == "0 ENOMEM 0 0 ");
  CHECK(too_small.with(service) == "0 ENOMEM ENOMEM 0 ");
  if (root) {
    CHECK(of_root.with(service) == "0 0 0 0 ");
  } else {
    WARN("skipped: root's programs have no bound");
  }
}

// Mapping takes as long as a program's memory is large.
TEST_CASE("while a large region is mapped, others are served", "[threads]") {
  constexpr std::size_t kLarge = std::size_t{1} << 20U;
  RunningService service;
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const attach::Descriptor ours(ends[0]);
  const attach::Descriptor theirs(ends[1]);
  const int on = 1;
  REQUIRE(::setsockopt(ours.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
  attach::SharedMemory memory;
  REQUIRE(memory.make("bounds", kLarge));
  std::memset(memory.data(), 1, memory.size());
  const int descriptor = memory.descriptor();
  const attach::ShareMemoryRequest share;
  attach::Header header;
  header.operation = Operation::share_memory;
  REQUIRE(attach::send_message(theirs.get(), header, std::as_bytes(std::span(&share, 1)),
                               {&descriptor, 1}) == attach::Transfer::done);

  boost::asio::io_context context;
  service::cm::CmService cm(context, {{}, {}, {}}, {});
  std::optional<service::Session> session;
  const auto ask = [&](Operation operation, auto body, std::optional<attach::Extent> extent,
                       service::Reply& reply) {
    attach::Message request;
    request.header.operation = operation;
    request.sender = ::getpid();
    request.append(body);
    if (extent) request.append(*extent);
    return session->handle(request, reply).error;
  };
  const auto shared_region = [](std::size_t bytes) {
    attach::RegisterRequest r;
    r.address = r.iova = std::uint64_t{1} << 32U;
    r.length = bytes;
    r.access = 1;
    r.extents = 1;
    return r;
  };
  const auto shared_extent = [](std::size_t bytes) {
    attach::Extent extent;
    extent.length = bytes;
    extent.kind = attach::ExtentKind::shared;
    return extent;
  };
  service::Reply sharing;
  service::Reply large;
  std::uint32_t pd = 0;
  service.on_control([&] {
    session.emplace(service.service(), cm,
                    service::Peer{::getpid(), ::geteuid(),
                                  std::make_shared<service::ProgramMemory>(ours.get())});
    service::Reply reply;
    CHECK(ask(Operation::hello, attach::HelloRequest{}, {}, reply) == 0);
    attach::OpenRequest open;
    std::strcpy(open.nic.data(), "h0");
    CHECK(ask(Operation::open_nic, open, {}, reply) == 0);
    service::Reply made;
    CHECK(ask(Operation::create_pd, attach::HandleBody{}, {}, made) == 0);
    attach::HandleBody handle;
    std::memcpy(&handle, made.body.data(), sizeof handle);
    pd = handle.handle;
    CHECK(session->take_memory(ours.get(), sharing).error == 0);
  });
  REQUIRE(sharing.aside);
  sharing.aside();
  service.on_control([&] {
    CHECK(session->resume(sharing).error == 0);
    attach::RegisterRequest r = shared_region(kLarge);
    r.pd = pd;
    CHECK(ask(Operation::register_region, r, shared_extent(kLarge), large) == 0);
  });
  REQUIRE(large.aside);  // not on the control thread
  CHECK(large.body.empty());
  End other(service, "h1");
  CHECK(other.region.handle != 0);

  large.aside();
  service.on_control([&] {
    CHECK(session->resume(large).error == 0);
    CHECK(large.body.size() == sizeof(attach::RegisterReply));
    service::Reply small;
    attach::RegisterRequest r = shared_region(64 << 10);
    r.pd = pd;
    CHECK(ask(Operation::register_region, r, shared_extent(64 << 10), small) == 0);
    CHECK_FALSE(small.aside);
    session.reset();
  });
}

// They may arrive between a glance at the socket and the taking of what is there.
TEST_CASE("descriptors that come at any time are taken by whoever may take them", "[threads]") {
  RunningService service;
  attach::SharedMemory memory;
  REQUIRE(memory.make("bounds", 4096));
  const attach::ShareMemoryRequest share;
  const int descriptor = memory.descriptor();
  attach::Header first;
  first.operation = Operation::query_port;
  attach::Header second;
  second.operation = Operation::share_memory;
  for (int i = 0; i < 3000; ++i) {
    AttachClient a(service.path());
    REQUIRE(a.open("h0"));
    CAPTURE(i);
    REQUIRE(attach::send_message(a.socket(), first, {}, {}) == attach::Transfer::done);
    const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(20 * i);
    while (std::chrono::steady_clock::now() < until) {
    }
    REQUIRE(attach::send_message(a.socket(), second, std::as_bytes(std::span(&share, 1)),
                                 {&descriptor, 1}) == attach::Transfer::done);
    attach::Message reply;
    REQUIRE(attach::receive_message(a.socket(), reply) == attach::Transfer::done);
    REQUIRE(attach::receive_message(a.socket(), reply) == attach::Transfer::done);
    REQUIRE(reply.header.error == 0);
  }
}
