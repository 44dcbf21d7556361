// rdma_cm as the attach protocol carries it: what is out of turn, whose channels are whose, and
// what is left of a program that is gone.
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

#include "tests/unit/service/service_support.h"

using namespace paceline;
using namespace paceline::test;
using attach::Operation;

namespace {

struct CmProgram {
  explicit CmProgram(RunningService& service) : client(service.path()) {
    REQUIRE(client.greet());
    REQUIRE(client.ask(Operation::open_cm, attach::OpenRequest{}).ok());
  }
  std::uint32_t open() {
    Answer answer = client.ask(Operation::cm_channel);
    REQUIRE(answer.ok());
    REQUIRE(answer.message.descriptors.size() == 1);
    end = std::move(answer.message.descriptors.front());
    return answer.message.as<attach::HandleBody>().handle;
  }
  // As it is in the reply's CmReply; -1: the protocol refused it.
  template <class Body>
  int command(std::uint32_t channel, std::uint32_t number, const Body& body, std::size_t room = 0) {
    struct {
      attach::CmRequest request{};
      Body body{};
    } all;
    static_assert(sizeof all == sizeof(attach::CmRequest) + sizeof(Body));
    all.request.channel = channel;
    all.request.command = number;
    all.request.body_bytes = sizeof(Body);
    all.request.room = static_cast<std::uint32_t>(room);
    all.body = body;
    last = client.ask(Operation::cm_command, all);
    return last.ok() ? last.message.as<attach::CmReply>().error : -1;
  }
  std::uint32_t create(std::uint32_t channel) {
    rdma_ucm_create_id create{};
    create.uid = 1;
    create.ps = RDMA_PS_TCP;
    REQUIRE(command(channel, RDMA_USER_CM_CMD_CREATE_ID, create, 4) == 0);
    std::uint32_t id = 0;
    const auto response = last.message.beyond<attach::CmReply>();
    REQUIRE(response.size() == 4);
    std::memcpy(&id, response.data(), 4);
    return id;
  }

  AttachClient client;
  attach::Descriptor end;
  Answer last;
};

bool readable(int file) {
  pollfd entry{file, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

}  // namespace

TEST_CASE("a connection is for a device or for rdma_cm", "[threads]") {
  RunningService service;
  AttachClient stranger(service.path());
  REQUIRE(stranger.ask(Operation::open_cm, attach::OpenRequest{}).error == EPROTO);
  AttachClient other(service.path());
  REQUIRE(other.greet());
  attach::OpenRequest request;
  std::strcpy(request.nic.data(), "h9");
  REQUIRE(other.ask(Operation::open_cm, request).error == ENODEV);
  REQUIRE(other.ask(Operation::cm_channel).error == EPROTO);
  CmProgram program(service);
  REQUIRE(program.client.ask(Operation::create_pd).error == EPROTO);
  AttachClient device(service.path());
  REQUIRE(device.open("h0"));
  REQUIRE(device.ask(Operation::open_cm, attach::OpenRequest{}).error == EPROTO);
}

TEST_CASE("a command's bytes are as many as it says, and its channel is its program's",
          "[threads]") {
  RunningService service;
  CmProgram program(service);
  CmProgram other(service);
  const std::uint32_t channel = program.open();
  const std::uint32_t id = program.create(channel);
  REQUIRE(other.command(channel, RDMA_USER_CM_CMD_LISTEN, rdma_ucm_listen{id, 1}) == EACCES);
  REQUIRE(program.command(channel + 1, RDMA_USER_CM_CMD_LISTEN, rdma_ucm_listen{id, 1}) == EACCES);
  REQUIRE(program.command(channel, RDMA_USER_CM_CMD_LISTEN, rdma_ucm_listen{id, 1}) == EINVAL);
  attach::CmRequest wrong;
  wrong.channel = channel;
  wrong.body_bytes = 8;
  REQUIRE(program.client.ask(Operation::cm_command, wrong).error == EPROTO);
}

TEST_CASE("a channel is readable while an event waits, and its reply says when it is no more",
          "[threads]") {
  RunningService service;
  CmProgram program(service);
  const std::uint32_t channel = program.open();
  const std::uint32_t id = program.create(channel);
  REQUIRE_FALSE(readable(program.end.get()));
  rdma_ucm_resolve_ip resolve{};
  resolve.id = id;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(1);
  const attach::NicInfo h1 = service.service().nic_info(*service.service().find_nic("h1"));
  std::memcpy(&to.sin_addr, h1.gids[0].data() + 12, 4);
  std::memcpy(&resolve.dst_addr, &to, sizeof to);
  REQUIRE(program.command(channel, RDMA_USER_CM_CMD_RESOLVE_IP, resolve) == 0);
  REQUIRE(readable(program.end.get()));
  REQUIRE(program.command(channel, RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{},
                          sizeof(rdma_ucm_event_resp)) == 0);
  REQUIRE(program.last.message.as<attach::CmReply>().drained == 1);
  REQUIRE(program.command(channel, RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{},
                          sizeof(rdma_ucm_event_resp)) == EAGAIN);
  REQUIRE(program.last.message.as<attach::CmReply>().drained == 0);
}

TEST_CASE("closing a channel's last descriptor ends its ids", "[threads]") {
  RunningService service;
  CmProgram program(service);
  const std::uint32_t channel = program.open();
  const std::uint32_t id = program.create(channel);
  program.end.reset();
  // The service is told by its socket, which its control thread looks at between requests.
  int error = 0;
  for (int i = 0; i < 5000 && error != EACCES; ++i) {
    error = program.command(channel, RDMA_USER_CM_CMD_LISTEN, rdma_ucm_listen{id, 1});
    ::usleep(1000);
  }
  REQUIRE(error == EACCES);
}
