#include "tools/collective/rank/program/verbs_link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>

#include "tools/collective/rank/rank_error.h"

namespace paceline::rank {

namespace {

// A work request's number: whether it is a receive, the connection, the word that was sent.
constexpr std::uint64_t kReceive = std::uint64_t{1} << 63;
constexpr unsigned kConnectionShift = 32;

constexpr int kBatch = 32;
// Empty polls before the process sleeps.
constexpr int kPolls = 20;

constexpr std::uint8_t kPort = 1;
constexpr int kGidIndex = 0;
constexpr std::uint32_t kFirstPsn = 0;

std::string hex_of(const union ibv_gid& gid) {
  std::string text;
  for (const std::uint8_t byte : gid.raw) text += fmt::format("{:02x}", byte);
  return text;
}

bool gid_of(const std::string& hex, union ibv_gid& gid) {
  if (hex.size() != 2 * sizeof gid.raw) return false;
  for (std::size_t i = 0; i < sizeof gid.raw; ++i) {
    const std::string byte = hex.substr(2 * i, 2);
    if (byte.find_first_not_of("0123456789abcdef") != std::string::npos) return false;
    gid.raw[i] = static_cast<std::uint8_t>(std::stoul(byte, nullptr, 16));
  }
  return true;
}

}  // namespace

VerbsLink::VerbsLink(std::uint64_t staging_bytes, const std::vector<PeerTraffic>& traffic) {
  open_device();
  register_memory(staging_bytes);
  make_queues(traffic);
}

// The process ends with it, and so do objects that were not made by then.
VerbsLink::~VerbsLink() {
  for (const Connection& connection : connections_) {
    if (connection.queue_pair != nullptr) ibv_destroy_qp(connection.queue_pair);
  }
  if (completions_ != nullptr) {
    ibv_ack_cq_events(completions_, unacknowledged_);
    ibv_destroy_cq(completions_);
  }
  if (channel_ != nullptr) ibv_destroy_comp_channel(channel_);
  if (region_ != nullptr) ibv_dereg_mr(region_);
  if (memory_ != nullptr) ::munmap(memory_, memory_bytes_);
  if (domain_ != nullptr) ibv_dealloc_pd(domain_);
  if (device_ != nullptr) ibv_close_device(device_);
}

void VerbsLink::fail(const std::string& what, int error) const {
  throw RankError(fmt::format("{}: {}", what, std::strerror(error)));
}

void VerbsLink::open_device() {
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  if (list == nullptr || count != 1) {
    if (list != nullptr) ibv_free_device_list(list);
    throw RankError(fmt::format("{} RDMA devices: expected one; paceline exec --nic chooses it",
                                list == nullptr ? 0 : count));
  }
  device_ = ibv_open_device(list[0]);
  const int error = errno;
  ibv_free_device_list(list);
  if (device_ == nullptr) fail("ibv_open_device", error);
  if (ibv_query_gid(device_, kPort, kGidIndex, &gid_) != 0) fail("ibv_query_gid", errno);
  domain_ = ibv_alloc_pd(device_);
  if (domain_ == nullptr) fail("ibv_alloc_pd", errno);
}

void VerbsLink::register_memory(std::uint64_t bytes) {
  memory_bytes_ = std::max<std::uint64_t>(bytes, 1);
  void* const memory = ::mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) fail(fmt::format("{} bytes of staging memory", bytes), errno);
  memory_ = static_cast<std::byte*>(memory);
  region_ =
      ibv_reg_mr(domain_, memory_, memory_bytes_, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (region_ == nullptr) fail(fmt::format("ibv_reg_mr of {} bytes", bytes), errno);
}

void VerbsLink::make_queues(const std::vector<PeerTraffic>& traffic) {
  std::uint64_t entries = 1;
  for (const PeerTraffic& t : traffic) entries += t.sent + t.received;
  ibv_device_attr limits{};
  if (const int error = ibv_query_device(device_, &limits); error != 0) {
    fail("ibv_query_device", error);
  }
  if (entries > static_cast<std::uint64_t>(limits.max_cqe)) {
    throw RankError(
        fmt::format("{} messages under way: the device allows {}; a smaller window "
                    "makes fewer",
                    entries, limits.max_cqe));
  }
  channel_ = ibv_create_comp_channel(device_);
  if (channel_ == nullptr) fail("ibv_create_comp_channel", errno);
  const int flags = ::fcntl(channel_->fd, F_GETFL);
  if (::fcntl(channel_->fd, F_SETFL, flags | O_NONBLOCK) != 0) fail("completion channel", errno);
  completions_ = ibv_create_cq(device_, static_cast<int>(entries), nullptr, channel_, 0);
  if (completions_ == nullptr) fail("ibv_create_cq", errno);
  for (const PeerTraffic& t : traffic) make_queue_pair(t);
}

void VerbsLink::make_queue_pair(const PeerTraffic& traffic) {
  ibv_qp_init_attr init{};
  init.send_cq = completions_;
  init.recv_cq = completions_;
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = 1;
  init.cap.max_send_wr = std::max(1U, traffic.sent);
  init.cap.max_recv_wr = std::max(1U, traffic.received);
  init.cap.max_send_sge = 1;
  init.cap.max_recv_sge = 1;
  const auto number = static_cast<std::uint32_t>(connections_.size());
  numbers_[{traffic.peer, traffic.channel}] = number;
  Connection& made = connections_.emplace_back();
  made.peer = traffic.peer;
  made.channel = traffic.channel;
  made.service_level = traffic.service_level;
  made.queue_pair = ibv_create_qp(domain_, &init);
  if (made.queue_pair == nullptr) {
    fail(fmt::format("ibv_create_qp for rank {} ({} sends, {} receives)", traffic.peer,
                     traffic.sent, traffic.received),
         errno);
  }
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = kPort;
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  const int error = ibv_modify_qp(
      made.queue_pair, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error != 0) fail("ibv_modify_qp to INIT", error);
  for (std::uint32_t i = 0; i < traffic.received; ++i) post_receive(number);
}

std::vector<LinkAddress> VerbsLink::addresses() const {
  std::vector<LinkAddress> all;
  for (const Connection& one : connections_) {
    all.push_back({one.peer, hex_of(gid_), reinterpret_cast<std::uint64_t>(memory_), region_->rkey,
                   one.queue_pair->qp_num, one.channel});
  }
  return all;
}

void VerbsLink::connect(const std::vector<LinkAddress>& peers) {
  for (const LinkAddress& address : peers) {
    const auto number = numbers_.find({address.rank, address.channel});
    if (number == numbers_.end()) {
      throw RankError(fmt::format("the address of rank {} for channel {}: no message goes there",
                                  address.rank, address.channel));
    }
    connections_[number->second].address = address;
    connect_one(connections_[number->second]);
  }
}

void VerbsLink::connect_one(Connection& connection) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_4096;
  attr.dest_qp_num = connection.address.queue_pair;
  attr.rq_psn = kFirstPsn;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 1;
  attr.ah_attr.is_global = 1;
  if (!gid_of(connection.address.gid, attr.ah_attr.grh.dgid)) {
    throw RankError(fmt::format("the address of rank {}: \"{}\" is not a GID",
                                connection.address.rank, connection.address.gid));
  }
  attr.ah_attr.grh.sgid_index = kGidIndex;
  attr.ah_attr.grh.hop_limit = 64;
  attr.ah_attr.port_num = kPort;
  attr.ah_attr.sl = connection.service_level;
  int error = ibv_modify_qp(connection.queue_pair, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error != 0) fail(fmt::format("the connection to rank {}", connection.address.rank), error);
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;  // for ever; the receiver has a request for every message
  attr.sq_psn = kFirstPsn;
  attr.max_rd_atomic = 1;
  error = ibv_modify_qp(connection.queue_pair, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  if (error != 0) fail(fmt::format("the connection to rank {}", connection.address.rank), error);
}

void VerbsLink::give_up(double seconds, int descriptor) {
  patience_ = seconds;
  watched_ = descriptor;
}

std::uint32_t VerbsLink::number_of(const LinkRoute& route) const {
  return numbers_.at({route.peer, route.channel});
}

void VerbsLink::post_receive(std::uint32_t number) {
  ibv_recv_wr request{};
  request.wr_id = kReceive | std::uint64_t{number} << kConnectionShift;
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(connections_[number].queue_pair, &request, &bad);
  if (error != 0) fail(fmt::format("a receive from rank {}", connections_[number].peer), error);
}

void VerbsLink::post_send(std::uint32_t number, ibv_send_wr& request, std::uint32_t word) {
  request.wr_id = std::uint64_t{number} << kConnectionShift | word;
  request.imm_data = htonl(word);
  request.send_flags = IBV_SEND_SOLICITED;
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(connections_[number].queue_pair, &request, &bad);
  if (error != 0) fail(fmt::format("a message to rank {}", connections_[number].peer), error);
}

void VerbsLink::write(const LinkRoute& to, std::uint64_t own_offset, std::uint64_t peer_offset,
                      std::uint64_t bytes, std::uint32_t word) {
  const std::uint32_t number = number_of(to);
  ibv_sge segment{};
  segment.addr = reinterpret_cast<std::uint64_t>(memory_) + own_offset;
  segment.length = static_cast<std::uint32_t>(bytes);
  segment.lkey = region_->lkey;
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.sg_list = &segment;
  request.num_sge = bytes == 0 ? 0 : 1;
  request.wr.rdma.remote_addr = connections_[number].address.staging + peer_offset;
  request.wr.rdma.rkey = connections_[number].address.key;
  post_send(number, request, word);
}

void VerbsLink::tell(const LinkRoute& to, std::uint32_t word) {
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND_WITH_IMM;
  post_send(number_of(to), request, word);
}

LinkEvent VerbsLink::event_of(const ibv_wc& completion) {
  const auto number =
      static_cast<std::uint32_t>((completion.wr_id & ~kReceive) >> kConnectionShift);
  const std::uint32_t peer = connections_[number].peer;
  const bool arrived = (completion.wr_id & kReceive) != 0;
  if (completion.status != IBV_WC_SUCCESS) {
    throw RankError(fmt::format("a message {} rank {}: {}", arrived ? "from" : "to", peer,
                                ibv_wc_status_str(completion.status)));
  }
  if (!arrived) return {false, peer, static_cast<std::uint32_t>(completion.wr_id), 0};
  post_receive(number);
  return {true, peer, ntohl(completion.imm_data), completion.byte_len};
}

bool VerbsLink::poll(std::vector<LinkEvent>& events) {
  ibv_wc completions[kBatch];
  const int n = ibv_poll_cq(completions_, kBatch, completions);
  if (n < 0) fail("ibv_poll_cq", -n);
  for (int i = 0; i < n; ++i) events.push_back(event_of(completions[i]));
  return n > 0;
}

void VerbsLink::wait(std::vector<LinkEvent>& events, LinkWake wake, LinkTime until) {
  events.clear();
  for (int i = 0; i < kPolls; ++i) {
    if (poll(events)) return;
  }
  const bool patient = until == LinkTime::max();
  const LinkTime limit =
      patient ? std::chrono::steady_clock::now() + std::chrono::duration_cast<LinkTime::duration>(
                                                       std::chrono::duration<double>(patience_))
              : until;
  while (true) {
    if (const int error = ibv_req_notify_cq(completions_, wake == LinkWake::arrival); error != 0) {
      fail("ibv_req_notify_cq", error);
    }
    if (poll(events)) return;
    const bool in_time = sleep_until(limit);
    if (poll(events)) return;
    if (in_time) continue;
    if (!patient) return;
    throw RankError(fmt::format("nothing has happened for {:g} s", patience_));
  }
}

// Until the channel has an event; false: the limit has passed before.
bool VerbsLink::sleep_until(LinkTime limit) {
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
      limit - std::chrono::steady_clock::now());
  if (left.count() <= 0) return false;
  pollfd waits[2] = {{channel_->fd, POLLIN, 0}, {watched_, POLLIN, 0}};
  const timespec time{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
  const int ready = ::ppoll(waits, 2, &time, nullptr);
  if (ready < 0 && errno != EINTR) fail("ppoll", errno);
  if (ready <= 0) return true;
  if (waits[1].revents != 0) throw RankError("the parent has ended");
  ibv_cq* from = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(channel_, &from, &context) == 0) ++unacknowledged_;
  return true;
}

}  // namespace paceline::rank
