// A service with two emulated hosts, h0 and h1, and raw clients of it.
#pragma once

#include <unistd.h>

#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cc/registry.h"
#include "dataplane/config/testbed/testbed_reader.h"
#include "dataplane/service/nics/make_nic_sets.h"
#include "dataplane/service/sessions/server.h"
#include "dataplane/service/workers/service.h"
#include "tests/support/attach_client.h"

namespace paceline::test {

inline std::vector<std::unique_ptr<service::NicSet>> hosts_from(const char* testbed) {
  const auto read = config::read_testbed_text(testbed, "hosts", "", {cc::algorithms(), {}});
  for (const std::string& error : read.errors) UNSCOPED_INFO(error);
  REQUIRE(read.ok());
  service::MadeNicSets made = service::make_nic_sets(read.value);
  for (const std::string& error : made.errors) UNSCOPED_INFO(error);
  REQUIRE(made.errors.empty());
  return std::move(made.sets);
}

inline std::vector<std::unique_ptr<service::NicSet>> two_hosts() {
  return hosts_from(R"(
schema = 1
[fabric]
hosts = 2
rate = "25Gb/s"
delay = "1us"
[cc]
algorithm = "dcqcn"
)");
}

// Four hosts whose ports a sender that never slows down floods, on links so slow that a machine
// which has other things to do fills them all the same.
inline std::vector<std::unique_ptr<service::NicSet>> floodable_hosts() {
  return hosts_from(R"(
schema = 1
[fabric]
hosts = 4
rate = "50Mb/s"
delay = "1us"
buffer = "100kB"
pfc.enabled = false
[cc]
algorithm = "dcqcn"
params = { min_rate_mbps = 1, additive_increase_mbps = 5, hyper_increase_mbps = 10 }
fallback = "fixed"
)");
}

class RunningService {
 public:
  explicit RunningService(service::ServiceSettings settings = {},
                          std::vector<std::unique_ptr<service::NicSet>> nics = two_hosts())
      : path_("@paceline-test-" + std::to_string(::getpid()) + "-" +
              std::to_string(reinterpret_cast<std::uintptr_t>(this))),
        service_(std::move(settings), std::move(nics)),
        server_(service_) {
    REQUIRE(service_.start().empty());
    REQUIRE(server_.listen(path_).empty());
    thread_ = std::thread([this] { server_.run(); });
  }
  ~RunningService() { stop(); }
  void stop() {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }
  // On the control thread, which the controller and the task queues belong to.
  template <class Work>
  void on_control(Work work) {
    std::promise<void> done;
    boost::asio::post(server_.context(), [&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }
  const std::string& path() const { return path_; }
  service::Service& service() { return service_; }
  service::Server& server() { return server_; }

 private:
  std::string path_;
  service::Service service_;
  service::Server server_;
  std::thread thread_;
};

// One side of a connection: a session with a queue pair, and memory registered by copy.
struct End {
  explicit End(RunningService& service, const std::string& nic, std::size_t bytes = 1 << 16)
      : client(service.path()), memory(bytes) {
    REQUIRE(client.connected());
    REQUIRE(client.open(nic));
    pd = client.create_pd();
    REQUIRE(cq.create(client, 64));
    region = client.register_region(memory.data(), memory.size(), pd);
    REQUIRE(region.handle != 0);
  }
  attach::CreateQpRequest request(attach::PairType type = attach::PairType::rc) const {
    return pair_request(pd, cq, type);
  }
  attach::SharedSegment piece(std::size_t offset, std::uint32_t length) const {
    return {reinterpret_cast<std::uint64_t>(memory.data()) + offset, length, region.local_key};
  }
  int modify(attach::QpValues values) {
    values.handle = pair.reply.handle;
    return client.ask(attach::Operation::modify_qp, values).error;
  }

  AttachClient client;
  std::vector<std::byte> memory;
  std::uint32_t pd = 0;
  ClientQueue cq;
  attach::RegisterReply region{};
  ClientPair pair;
};

// Numbers of the verbs enums, written out: this is what the wire between program and service holds.
namespace qp_bit {
inline constexpr std::uint32_t state = 1U << 0, access = 1U << 3, pkey = 1U << 4, port = 1U << 5,
                               av = 1U << 7, mtu = 1U << 8, timeout = 1U << 9, retry = 1U << 10,
                               rnr_retry = 1U << 11, rq_psn = 1U << 12, max_rd = 1U << 13,
                               rnr_timer = 1U << 15, sq_psn = 1U << 16, max_dest_rd = 1U << 17,
                               dest = 1U << 20;
}

inline attach::QpValues to_init() {
  attach::QpValues v;
  v.mask = qp_bit::state | qp_bit::pkey | qp_bit::port | qp_bit::access;
  v.state = 1;
  v.port = 1;
  v.access = 0xF;
  return v;
}
inline attach::QpValues to_rtr(std::uint32_t remote_qp, std::uint16_t remote_id) {
  attach::QpValues v;
  v.mask = qp_bit::state | qp_bit::av | qp_bit::mtu | qp_bit::dest | qp_bit::rq_psn |
           qp_bit::max_dest_rd | qp_bit::rnr_timer;
  v.state = 2;
  v.path_mtu = 3;
  v.dest_qp = remote_qp;
  v.rq_psn = 100;
  v.max_dest_rd_atomic = 1;
  v.min_rnr_timer = 12;
  v.path.destination_id = remote_id;
  v.path.port = 1;
  return v;
}
inline attach::QpValues to_rts() {
  attach::QpValues v;
  v.mask = qp_bit::state | qp_bit::timeout | qp_bit::retry | qp_bit::rnr_retry | qp_bit::sq_psn |
           qp_bit::max_rd;
  v.state = 3;
  v.timeout = 14;
  v.retry_count = 7;
  v.rnr_retry = 7;
  v.sq_psn = 100;
  v.max_rd_atomic = 1;
  return v;
}

inline void connect(End& a, End& b) {
  for (const auto& [from, to] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    REQUIRE(from->modify(to_init()) == 0);
    REQUIRE(from->modify(to_rtr(to->pair.reply.qp_number, to->client.info().local_id)) == 0);
    REQUIRE(from->modify(to_rts()) == 0);
  }
}

// Two programs of one service, their queue pairs connected.
struct Connection {
  Connection() {
    REQUIRE(a.pair.create(a.client, a.request()) == 0);
    REQUIRE(b.pair.create(b.client, b.request()) == 0);
    connect(a, b);
  }
  RunningService service;
  End a{service, "h0"};
  End b{service, "h1"};
};

inline attach::SendSlot signaled_slot(attach::SendOpcode opcode, std::uint64_t wr_id) {
  attach::SendSlot slot;
  slot.opcode = opcode;
  slot.wr_id = wr_id;
  slot.flags = attach::send_flag::signaled;
  return slot;
}

}  // namespace paceline::test
