#include "tests/verbs/hostile/campaigns.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <list>

namespace paceline::test {

namespace {

using attach::Operation;

attach::Descriptor memory_file(std::size_t bytes, int seals) {
  attach::Descriptor fd(::memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd && ::ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0 && seals != 0) {
    ::fcntl(fd.get(), F_ADD_SEALS, seals);
  }
  return fd;
}

// The steps of a session, each on what those before it have made.
std::vector<std::function<void(RawEnd&)>> steps_of(HostileWorld& world) {
  const auto ask = [](Operation operation) {
    return [operation](RawEnd& end) { end.client.ask(operation); };
  };
  return {
      [](RawEnd& end) { end.client.greet(); },
      [](RawEnd& end) { end.client.open_nic("h0"); },
      [](RawEnd& end) { end.pd = end.client.create_pd(); },
      [](RawEnd& end) {
        const attach::Descriptor memory = memory_file(1U << 20U, F_SEAL_SHRINK | F_SEAL_SEAL);
        const int fds[] = {memory.get()};
        end.client.ask(Operation::share_memory, attach::ShareMemoryRequest{}, fds);
      },
      [&world](RawEnd& end) {
        end.client.register_region(reinterpret_cast<void*>(world.arena.data()), 65536, end.pd);
      },
      ask(Operation::create_channel),
      [](RawEnd& end) { end.cq.create(end.client, 16, 1); },
      [](RawEnd& end) {
        end.client.ask(Operation::create_srq, attach::CreateSrqRequest{end.pd, 16, 2, 0});
      },
      [](RawEnd& end) { end.pair.create(end.client, end.wish(attach::PairType::rc)); },
      [&world](RawEnd& end) { end.connect(world.neighbour.qp_numbers[1], 2, 77); },
      [](RawEnd& end) { end.cq.resize(end.client, 128); },
      [](RawEnd& end) {
        if (end.pair.memory().empty()) return;
        end.pair.post_send({}, {});
      },
      ask(Operation::status),
  };
}

}  // namespace

void collect_descriptors(HostileWorld& world) {
  for (const char* path : {"/dev/null", "/dev/zero", "/proc/self/mem", "/", "/dev/full"}) {
    world.keep(attach::Descriptor(::open(path, O_RDONLY | O_CLOEXEC)));
  }
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
    world.keep(attach::Descriptor(pair[0]));
    world.keep(attach::Descriptor(pair[1]));
  }
  if (::pipe2(pair, O_CLOEXEC) == 0) {
    world.keep(attach::Descriptor(pair[0]));
    world.keep(attach::Descriptor(pair[1]));
  }
  world.keep(attach::Descriptor(::eventfd(0, EFD_CLOEXEC)));
  world.keep(attach::Descriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)));
  world.keep(memory_file(1U << 20U, 0));
  world.keep(memory_file(1U << 20U, F_SEAL_SHRINK));
  world.keep(memory_file(100, F_SEAL_SHRINK | F_SEAL_SEAL));
  world.keep(memory_file(0, F_SEAL_SHRINK | F_SEAL_SEAL));
  world.keep(memory_file(1U << 20U, F_SEAL_SHRINK | F_SEAL_SEAL | F_SEAL_WRITE));
}

void work_sessions(HostileWorld& world, std::uint64_t mutations) {
  const std::uint64_t last = world.mutations + mutations;
  while (world.mutations < last && world.wrong.empty()) {
    const auto session = std::make_unique<HostileSession>(world);
    if (!session->make()) {
      // The sessions before it may not be gone yet; a service that is would not let anybody in.
      if (!attach::connect_socket(world.socket)) world.wrong = "the service is gone";
      ++world.mutations;
      continue;
    }
    for (int i = 0; i < 500 && world.mutations < last && session->mutate(); ++i) {
    }
  }
}

void leave_at_every_step(HostileWorld& world, bool abruptly) {
  const auto steps = steps_of(world);
  for (std::size_t last = 0; last <= steps.size(); ++last) {
    RawEnd end(world.socket);
    for (std::size_t i = 0; i < last && end.client.connected(); ++i) steps[i](end);
    if (abruptly) {
      attach::Header header;
      header.operation = last < 2 ? Operation::hello : Operation::create_pd;
      attach::send_message(end.client.socket(), header, {});
      if (last % 2 == 0) ::shutdown(end.client.socket(), SHUT_RD);
    }
    ++world.mutations;
  }
}

void come_in_crowds(HostileWorld& world) {
  std::list<AttachClient> crowd;
  for (int i = 0; i < 48; ++i) {
    AttachClient& client = crowd.emplace_back(world.socket);
    if (!client.connected()) world.wrong = "the service does not accept";
    client.open(i % 2 == 0 ? "h0" : "h1");
    ++world.mutations;
  }
}

void never_read(HostileWorld& world) {
  RawEnd end(world.socket);
  if (!end.make("h0")) return;
  attach::Header header;
  header.operation = Operation::status;
  for (int i = 0; i < 64; ++i) {
    iovec part{&header, sizeof(header)};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (::sendmsg(end.client.socket(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) break;
    ++world.mutations;
  }
}

void pass_wrong_descriptors(HostileWorld& world) {
  for (const attach::Descriptor& fd : world.old) {
    RawEnd end(world.socket);
    if (!end.make("h1")) return;
    const int fds[] = {fd.get()};
    const Answer answer =
        end.client.ask(Operation::share_memory, attach::ShareMemoryRequest{}, fds);
    ++world.mutations;
    if (!answer.ok()) continue;
    // Taken: more than it has is refused.
    struct stat file {};
    if (::fstat(fd.get(), &file) != 0) continue;
    attach::RegisterRequest r;
    r.address = r.iova = world.arena.data();
    r.length = (static_cast<std::uint64_t>(file.st_size) / Arena::kPage + 1) * Arena::kPage;
    r.access = 0xF;
    r.pd = end.pd;
    r.extents = 1;
    attach::Message m;
    m.append(r);
    m.append(attach::Extent{r.length, 0, attach::ExtentKind::shared, 0});
    if (end.client.ask_bytes(Operation::register_region, m.body).ok()) {
      world.wrong = "memory beyond the end of a file is registered";
    }
  }
}

}  // namespace paceline::test
