#include "tests/interop/peer/verbs_backend.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace paceline::interop {

namespace {

constexpr int kQueueDepth = 128;
constexpr int kCompletions = 512;
constexpr std::uint8_t kPort = 1;
constexpr std::uint8_t kEct0 = 2;  // RFC 3168, in the traffic class

void require(bool good, const char* what) {
  if (!good) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

// As a GID: IPv4 mapped into IPv6.
ibv_gid gid_of(const std::string& ip) {
  ibv_gid gid{};
  if (ip.find(':') != std::string::npos) {
    if (inet_pton(AF_INET6, ip.c_str(), gid.raw) != 1) throw std::runtime_error("address " + ip);
    return gid;
  }
  gid.raw[10] = gid.raw[11] = 0xFF;
  if (inet_pton(AF_INET, ip.c_str(), gid.raw + 12) != 1) throw std::runtime_error("address " + ip);
  return gid;
}

ibv_mtu mtu_of(std::uint32_t bytes) {
  for (const ibv_mtu mtu : {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096}) {
    if (bytes == 128U << mtu) return mtu;
  }
  throw std::runtime_error("no such MTU");
}

std::string status_text(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return "success";
    case IBV_WC_LOC_LEN_ERR:
      return "local length error";
    case IBV_WC_LOC_PROT_ERR:
      return "local protection error";
    case IBV_WC_BAD_RESP_ERR:
      return "bad response";
    case IBV_WC_REM_INV_REQ_ERR:
      return "remote invalid request";
    case IBV_WC_REM_ACCESS_ERR:
      return "remote access error";
    case IBV_WC_REM_OP_ERR:
      return "remote operational error";
    case IBV_WC_RETRY_EXC_ERR:
      return "transport retry limit exceeded";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "receiver-not-ready retry limit exceeded";
    case IBV_WC_WR_FLUSH_ERR:
      return "flushed";
    default:
      return ibv_wc_status_str(status);
  }
}

std::string operation_text(ibv_wc_opcode opcode) {
  switch (opcode) {
    case IBV_WC_SEND:
      return "send";
    case IBV_WC_RDMA_WRITE:
      return "write";
    case IBV_WC_RDMA_READ:
      return "read";
    case IBV_WC_FETCH_ADD:
      return "fetch_add";
    case IBV_WC_COMP_SWAP:
      return "compare_swap";
    case IBV_WC_RECV:
      return "receive";
    case IBV_WC_RECV_RDMA_WITH_IMM:
      return "receive_write_imm";
    default:
      return "other";
  }
}

constexpr std::array kOpcodes = {IBV_WR_SEND,
                                 IBV_WR_SEND_WITH_IMM,
                                 IBV_WR_RDMA_WRITE,
                                 IBV_WR_RDMA_WRITE_WITH_IMM,
                                 IBV_WR_RDMA_READ,
                                 IBV_WR_ATOMIC_FETCH_AND_ADD,
                                 IBV_WR_ATOMIC_CMP_AND_SWP};

}  // namespace

VerbsBackend::VerbsBackend() {
  int count = 0;
  ibv_device** const devices = ibv_get_device_list(&count);
  require(devices != nullptr && count > 0, "no RDMA device");
  context_ = ibv_open_device(devices[0]);
  ibv_free_device_list(devices);
  require(context_ != nullptr, "ibv_open_device");
  pd_ = ibv_alloc_pd(context_);
  require(pd_ != nullptr, "ibv_alloc_pd");
}

VerbsBackend::~VerbsBackend() {
  while (!queue_pairs_.empty()) destroy(queue_pairs_.begin()->first);
  for (Memory& memory : memory_) ibv_dereg_mr(memory.region);
  ibv_dealloc_pd(pd_);
  ibv_close_device(context_);
}

Registered VerbsBackend::add_region(std::uint64_t bytes, bool remote) {
  constexpr std::size_t kPage = 4096;
  const std::size_t room = (bytes + kPage - 1) / kPage * kPage;
  std::unique_ptr<std::byte[], void (*)(void*)> memory(
      static_cast<std::byte*>(std::aligned_alloc(kPage, room)), std::free);
  require(memory != nullptr, "memory");
  std::memset(memory.get(), 0, room);
  int access = IBV_ACCESS_LOCAL_WRITE;
  if (remote) {
    access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  }
  ibv_mr* const region = ibv_reg_mr(pd_, memory.get(), bytes, access);
  require(region != nullptr, "ibv_reg_mr");
  Registered registered{memory.get(), reinterpret_cast<std::uintptr_t>(memory.get()), bytes,
                        region->lkey, region->rkey};
  memory_.push_back({region, std::move(memory)});
  return registered;
}

VerbsBackend::QueuePair& VerbsBackend::find(unsigned id) {
  const auto found = queue_pairs_.find(id);
  if (found == queue_pairs_.end()) throw std::runtime_error("no such queue pair");
  return found->second;
}

void VerbsBackend::modify(ibv_qp* qp, ibv_qp_attr& attributes, int mask, const char* what) const {
  errno = ibv_modify_qp(qp, &attributes, mask);
  require(errno == 0, what);
}

std::uint32_t VerbsBackend::make_qp(unsigned id, const QueuePairSpec& spec) {
  if (queue_pairs_.contains(id)) throw std::runtime_error("this queue pair exists");
  QueuePair made;
  made.spec = spec;
  made.send_cq = ibv_create_cq(context_, kCompletions, nullptr, nullptr, 0);
  made.receive_cq = ibv_create_cq(context_, kCompletions, nullptr, nullptr, 0);
  require(made.send_cq != nullptr && made.receive_cq != nullptr, "ibv_create_cq");
  ibv_qp_init_attr init{};
  init.send_cq = made.send_cq;
  init.recv_cq = made.receive_cq;
  init.cap.max_send_wr = kQueueDepth;
  init.cap.max_recv_wr = kQueueDepth;
  init.cap.max_send_sge = 1;
  init.cap.max_recv_sge = 1;
  init.qp_type = spec.datagram ? IBV_QPT_UD : IBV_QPT_RC;
  init.sq_sig_all = 1;
  made.qp = ibv_create_qp(pd_, &init);
  require(made.qp != nullptr, "ibv_create_qp");
  queue_pairs_[id] = made;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = kPort;
  attributes.qkey = spec.qkey;
  attributes.qp_access_flags =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  modify(made.qp, attributes,
         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
             (spec.datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS),
         "to INIT");
  if (spec.datagram) {
    attributes.qp_state = IBV_QPS_RTR;
    modify(made.qp, attributes, IBV_QP_STATE, "to RTR");
    attributes.qp_state = IBV_QPS_RTS;
    attributes.sq_psn = spec.first_psn;
    modify(made.qp, attributes, IBV_QP_STATE | IBV_QP_SQ_PSN, "to RTS");
  }
  return made.qp->qp_num;
}

// The entry of our GID table that is of the destination's family: an interface has one address of
// each, beside the link-local one.
std::uint8_t VerbsBackend::gid_index_towards(const std::string& ip) const {
  const bool v6 = ip.find(':') != std::string::npos;
  for (int i = 0; i < 16; ++i) {
    ibv_gid gid{};
    if (ibv_query_gid(context_, kPort, i, &gid) != 0) continue;
    const bool link_local = gid.raw[0] == 0xFE && gid.raw[1] == 0x80;
    const bool mapped = gid.raw[10] == 0xFF && gid.raw[11] == 0xFF && gid.raw[0] == 0;
    const bool none = gid.global.interface_id == 0 && gid.global.subnet_prefix == 0;
    if (!link_local && !none && mapped != v6) return static_cast<std::uint8_t>(i);
  }
  throw std::runtime_error("no GID towards " + ip);
}

ibv_ah_attr VerbsBackend::way_to(const std::string& ip) const {
  ibv_ah_attr way{};
  way.is_global = 1;
  way.port_num = kPort;
  way.grh.dgid = gid_of(ip);
  way.grh.sgid_index = gid_index_towards(ip);
  way.grh.hop_limit = 64;
  return way;
}

void VerbsBackend::connect(unsigned id, const Remote& remote) {
  const QueuePair& pair = find(id);
  const auto depth = static_cast<std::uint8_t>(pair.spec.depth);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = mtu_of(pair.spec.mtu);
  attributes.dest_qp_num = remote.number;
  attributes.rq_psn = remote.first_psn;
  attributes.max_dest_rd_atomic = depth;
  attributes.min_rnr_timer = static_cast<std::uint8_t>(pair.spec.rnr_timer);
  attributes.ah_attr = way_to(remote.ip);
  if (pair.spec.ecn) attributes.ah_attr.grh.traffic_class = kEct0;
  modify(pair.qp, attributes,
         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
         "to RTR");
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = static_cast<std::uint8_t>(pair.spec.timeout);
  attributes.retry_cnt = static_cast<std::uint8_t>(pair.spec.retries);
  attributes.rnr_retry = static_cast<std::uint8_t>(pair.spec.rnr_retries);
  attributes.sq_psn = pair.spec.first_psn;
  attributes.max_rd_atomic = depth;
  modify(pair.qp, attributes,
         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC,
         "to RTS");
}

void VerbsBackend::post(unsigned id, const Work& work) {
  QueuePair& pair = find(id);
  ibv_sge piece{work.address, static_cast<std::uint32_t>(work.length), work.key};
  ibv_send_wr request{};
  request.wr_id = work.id;
  request.sg_list = &piece;
  request.num_sge = work.length == 0 ? 0 : 1;
  request.opcode = kOpcodes[static_cast<std::size_t>(work.operation)];
  request.send_flags = IBV_SEND_SIGNALED;
  request.imm_data = htonl(work.immediate);
  if (pair.spec.datagram) {
    ibv_ah*& handle = pair.handles[work.ip];
    if (handle == nullptr) {
      ibv_ah_attr way = way_to(work.ip);
      handle = ibv_create_ah(pd_, &way);
      require(handle != nullptr, "ibv_create_ah");
    }
    request.wr.ud.ah = handle;
    request.wr.ud.remote_qpn = work.number;
    request.wr.ud.remote_qkey = work.qkey;
  } else if (work.operation >= Operation::fetch_add) {
    request.wr.atomic.remote_addr = work.remote_address;
    request.wr.atomic.rkey = work.remote_key;
    const bool add = work.operation == Operation::fetch_add;
    request.wr.atomic.compare_add = add ? work.swap_add : work.compare;
    request.wr.atomic.swap = work.swap_add;
  } else {
    request.wr.rdma.remote_addr = work.remote_address;
    request.wr.rdma.rkey = work.remote_key;
  }
  ibv_send_wr* bad = nullptr;
  errno = ibv_post_send(pair.qp, &request, &bad);
  require(errno == 0, "ibv_post_send");
}

void VerbsBackend::receive(unsigned id, const Work& work) {
  ibv_sge piece{work.address, static_cast<std::uint32_t>(work.length), work.key};
  ibv_recv_wr request{};
  request.wr_id = work.id;
  request.sg_list = &piece;
  request.num_sge = work.length == 0 ? 0 : 1;
  ibv_recv_wr* bad = nullptr;
  errno = ibv_post_recv(find(id).qp, &request, &bad);
  require(errno == 0, "ibv_post_recv");
}

std::vector<Done> VerbsBackend::completed(unsigned id, bool receives) {
  const QueuePair& pair = find(id);
  std::vector<Done> done;
  ibv_wc wc{};
  while (ibv_poll_cq(receives ? pair.receive_cq : pair.send_cq, 1, &wc) > 0) {
    Done one;
    one.id = wc.wr_id;
    one.status = status_text(wc.status);
    // An error's other fields say nothing (ibv_poll_cq(3)).
    if (wc.status == IBV_WC_SUCCESS) {
      one.operation = operation_text(wc.opcode);
      one.bytes = receives ? wc.byte_len : 0;
      if ((wc.wc_flags & IBV_WC_WITH_IMM) != 0) one.immediate = ntohl(wc.imm_data);
      one.grh = (wc.wc_flags & IBV_WC_GRH) != 0;
      if (pair.spec.datagram && receives) one.source = wc.src_qp;
    } else {
      one.operation = "-";
    }
    done.push_back(one);
  }
  return done;
}

std::string VerbsBackend::state(unsigned id) {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  errno = ibv_query_qp(find(id).qp, &attributes, IBV_QP_STATE, &init);
  require(errno == 0, "ibv_query_qp");
  constexpr std::array kNames = {"reset", "init", "rtr", "rts", "sqd", "sqe", "error"};
  const auto index = static_cast<std::size_t>(attributes.qp_state);
  return index < kNames.size() ? kNames[index] : "unknown";
}

void VerbsBackend::destroy(unsigned id) {
  const QueuePair pair = find(id);
  for (const auto& [ip, handle] : pair.handles) ibv_destroy_ah(handle);
  ibv_destroy_qp(pair.qp);
  ibv_destroy_cq(pair.send_cq);
  ibv_destroy_cq(pair.receive_cq);
  queue_pairs_.erase(id);
}

std::string VerbsBackend::address() {
  std::string text;
  for (int i = 0; i < 16; ++i) {
    ibv_gid gid{};
    if (ibv_query_gid(context_, kPort, i, &gid) != 0) continue;
    if (gid.global.interface_id == 0 && gid.global.subnet_prefix == 0) continue;
    std::array<char, INET6_ADDRSTRLEN> name;
    text += std::to_string(i) + '=' + inet_ntop(AF_INET6, gid.raw, name.data(), name.size()) + ' ';
  }
  return text;
}

void VerbsBackend::turn(int fd) {
  pollfd entry{fd, POLLIN, 0};
  poll(&entry, fd < 0 ? 0 : 1, 1);
}

std::optional<std::string> VerbsBackend::other(std::span<const std::string> words) {
  if (words[0] != "shell") return std::nullopt;
  std::string line;
  for (const std::string& word : words.subspan(1)) line += word + ' ';
  FILE* const pipe = popen((line + "2>&1").c_str(), "r");
  require(pipe != nullptr, "popen");
  std::string output;
  std::array<char, 512> chunk;
  while (std::fgets(chunk.data(), chunk.size(), pipe) != nullptr) {
    output += std::string("out ") + chunk.data();
    if (output.back() != '\n') output += '\n';
  }
  const int status = pclose(pipe);
  return output + "ok " + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : 255);
}

}  // namespace paceline::interop
