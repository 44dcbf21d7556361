// The attach protocol: what a program asks of the service, over a Unix socket of type SEQPACKET.
// One request, one reply, in turn, each one packet: a header and the body that its operation has.
// File descriptors travel beside the bytes (SCM_RIGHTS), in the order that the body says.
//
// A connection is a session: one opened device (ibv_context) of one NIC instance. Everything in the
// session ends with the connection. Handles belong to the service, per session and kind, and are
// never 0. Everything is checked. A request that makes no sense gets EPROTO, and the connection is
// closed; a request that is refused gets its errno and changes nothing.
//
// Numbers are in the machine's byte order. A new minor version appends fields to the end of bodies
// (a receiver of a shorter body assumes zeroes, of a longer one ignores the rest); a major version
// may change everything.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "dataplane/attach/queues.h"

namespace paceline::attach {

inline constexpr std::uint32_t kMagic = 0x4C43'4150;  // "PACL"
inline constexpr std::uint16_t kMajor = 1;
// 1: memory windows; 2: rdma_cm; 3: counters of a port, resizing of shared receive queues; 4: XRC;
// 5: devices of several ports
inline constexpr std::uint16_t kMinor = 5;
inline constexpr std::size_t kMaxMessage = 64U << 10U;          // bytes, header included
inline constexpr std::size_t kMaxDescriptors = 4;               // of one message
inline constexpr std::size_t kNameBytes = 32;                   // with the closing zero
inline constexpr std::size_t kMaxNics = 256;                    // of one service, in one listing
inline constexpr std::size_t kGids = 4;                         // of a port
inline constexpr std::size_t kMaxPorts = 8;                     // of a NIC
inline constexpr const char* kDefaultSocket = "paceline.sock";  // of runtime_folder.h

enum class Operation : std::uint16_t {
  hello = 1,      // of every connection the first
  list_nics = 2,  // -> NicList; allowed without a session
  open_nic = 3,   // makes the connection a session
  query_port = 4,
  status = 5,         // -> JSON text; allowed without a session
  port_counters = 6,  // of the NIC that OpenRequest names -> CounterList; likewise
  create_pd = 10,
  destroy_pd = 11,
  share_memory = 12,  // the program's own sealed memory, once
  register_region = 13,
  reregister_region = 14,
  deregister_region = 15,
  allocate_window = 16,
  free_window = 17,
  create_channel = 20,
  destroy_channel = 21,
  create_cq = 22,
  resize_cq = 23,
  destroy_cq = 24,
  create_srq = 30,
  modify_srq = 31,
  query_srq = 32,
  destroy_srq = 33,
  create_qp = 40,
  modify_qp = 41,
  query_qp = 42,
  destroy_qp = 43,
  limit_rate = 44,
  attach_multicast = 45,
  detach_multicast = 46,
  open_domain = 47,
  close_domain = 48,
  open_qp = 49,
  create_ah = 50,
  destroy_ah = 51,
  open_cm = 60,  // makes the connection one of rdma_cm, of the NIC that OpenRequest names or of all
  cm_channel = 61,
  cm_command = 62,
};

struct Header {
  std::uint32_t magic = kMagic;
  Operation operation = Operation::hello;
  std::uint16_t major = kMajor;
  std::uint32_t sequence = 0;  // the reply repeats it
  // In a reply: 0, or the errno of the refusal; a refusal may have a Complaint as its body.
  std::int32_t error = 0;
};
static_assert(sizeof(Header) == 16);

// The reason, for the library's log: text with a closing zero.
struct Complaint {
  std::array<char, 256> text{};
};

struct HandleBody {  // of requests that name an object, and of replies that made one
  std::uint32_t handle = 0;
  std::uint32_t reserved = 0;
};

// --- hello ---
struct HelloRequest {
  std::uint16_t minor = kMinor;
  std::uint16_t reserved = 0;
  std::uint32_t pid = 0;  // as the program sees itself; the service uses the peer's credentials
  std::array<char, kNameBytes> program{};
};
struct HelloReply {
  std::uint16_t minor = kMinor;
  std::uint16_t reserved = 0;
  std::uint32_t service_pid = 0;
  std::array<char, kNameBytes> version{};
};

// --- NIC instances ---
enum class GidKind : std::uint8_t { none, roce_v2_ipv4, roce_v2_ipv6 };

struct NicLimits {
  std::uint32_t queue_pairs = 0;
  std::uint32_t completion_queues = 0;
  std::uint32_t shared_receive_queues = 0;
  std::uint32_t regions = 0;
  std::uint32_t protection_domains = 0;
  std::uint32_t address_handles = 0;
  std::uint32_t requests = 0;      // of a work queue
  std::uint32_t segments = 0;      // of a request
  std::uint32_t inline_bytes = 0;  // likewise
  std::uint32_t entries = 0;       // of a completion queue
  std::uint32_t rd_atomic = 0;     // of a queue pair, either direction
  std::uint32_t reserved = 0;
  std::uint64_t region_bytes = 0;      // of one region
  std::uint64_t registered_bytes = 0;  // of all regions of the tenant
};

struct NicInfo {
  std::array<char, kNameBytes> name{};
  std::uint64_t guid = 0;       // network order
  std::uint64_t rate_mbps = 0;  // 0: unlimited
  std::array<std::array<std::byte, 16>, kGids> gids{};
  std::array<GidKind, kGids> gid_kinds{};
  std::array<std::byte, 6> mac{};
  std::uint16_t mtu = 0;        // payload bytes of a full packet: 256 .. 4096
  std::uint16_t local_id = 0;   // names the instance among those of its service; never 0
  std::uint8_t up = 0;          // bit p - 1: port p has a link
  std::uint8_t gone = 0;        // it was taken away, and cannot be opened
  std::uint8_t more_ports = 0;  // beyond port 1; `gids` and `local_id` are those of port 1
  std::uint8_t reserved[3] = {};
  NicLimits limits{};
  std::uint64_t clock_khz = 0;  // of timestamps: 1,000,000
};
inline std::uint32_t ports_of(const NicInfo& nic) {
  return std::min<std::uint32_t>(nic.more_ports + 1U, kMaxPorts);
}
inline bool has_port(const NicInfo& nic, std::uint32_t port) {
  return port >= 1 && port <= ports_of(nic);
}
inline bool is_up(const NicInfo& nic, std::uint32_t port) {
  return (nic.up >> (port - 1) & 1) != 0;
}
// Each port has its own subnet, bytes 12 and 13 of its GIDs: that of port p, counted from 1, is p -
// 1 more than that of port 1.
inline std::array<std::byte, 16> gid_of(const NicInfo& nic, std::uint32_t port, std::size_t index) {
  std::array<std::byte, 16> gid = nic.gids[index];
  if (nic.gid_kinds[index] == GidKind::none) return gid;
  const std::uint32_t subnet =
      (std::to_integer<std::uint32_t>(gid[12]) << 8 | std::to_integer<std::uint32_t>(gid[13])) +
      port - 1;
  gid[12] = static_cast<std::byte>(subnet >> 8);
  gid[13] = static_cast<std::byte>(subnet);
  return gid;
}
// Calls use(port, index, GID) for each of a NIC, port after port.
template <class Use>
void each_gid(const NicInfo& nic, Use use) {
  for (std::uint32_t port = 1; port <= ports_of(nic); ++port) {
    for (std::uint32_t i = 0; i < kGids; ++i) {
      if (nic.gid_kinds[i] != GidKind::none) use(port, i, gid_of(nic, port, i));
    }
  }
}
inline std::uint16_t local_id_of(const NicInfo& nic, std::uint32_t port) {
  return static_cast<std::uint16_t>(nic.local_id + (port - 1) * kMaxNics);
}
struct NicList {  // `count` NicInfos follow
  std::uint32_t count = 0;
  std::uint32_t reserved = 0;
};

// A file below ports/1 of a device in sysfs, and the number in it.
struct PortCounter {
  std::array<char, 56> name{};  // "hw_counters/out_of_sequence"
  std::uint64_t value = 0;
};
struct CounterList {  // `count` PortCounters follow
  std::uint32_t count = 0;
  std::uint32_t reserved = 0;
};

// The body of a status reply is a text of at most kMaxStatusBody bytes. A longer text comes as
// descriptor 0, a sealed memfd of its size, with an empty body. docs/service.md describes the text.
inline constexpr std::size_t kMaxStatusBody = 60U << 10U;

struct OpenRequest {
  std::array<char, kNameBytes> nic{};
};
// Descriptors: 0 the DoorbellPage (read and write), 1 the WorkerPage (read), 2 the eventfd that
// wakes the worker, 3 the reading end of the pipe of AsyncNotices.
struct OpenReply {
  NicInfo nic{};
  std::uint32_t session = 0;
  std::uint32_t reserved = 0;
};

// --- memory (dataplane/service/memory, dataplane/verbs/memory) ---

// Descriptor 0: memory of the program, sealed against shrinking and against unsealing. Reply:
// descriptor 0, if any: an open /dev/userfaultfd.
struct ShareMemoryRequest {
  std::uint64_t reserved = 0;
};

enum class ExtentKind : std::uint32_t {
  by_copy,  // reached through the program's address space, by the tenant's copy thread
  shared,   // at `offset` of the shared memory
};
struct Extent {
  std::uint64_t length = 0;
  std::uint64_t offset = 0;               // shared: in the descriptor, a multiple of the page size
  ExtentKind kind = ExtentKind::by_copy;  // then `offset` and `reserved`: injection/order_window.h
  std::uint32_t reserved = 0;
};
inline constexpr std::size_t kMaxExtents = 2048;

namespace region_access {  // numbers of enum ibv_access_flags
inline constexpr std::uint32_t local_write = 1U << 0;
inline constexpr std::uint32_t remote_write = 1U << 1;
inline constexpr std::uint32_t remote_read = 1U << 2;
inline constexpr std::uint32_t remote_atomic = 1U << 3;
inline constexpr std::uint32_t window_bind = 1U << 4;
}  // namespace region_access

// Followed by `extents` Extents, which cover [address, address + length) in order.
struct RegisterRequest {
  std::uint64_t address = 0;  // in the program
  std::uint64_t length = 0;
  std::uint64_t iova = 0;  // what work requests and peers call its first byte
  std::uint32_t access = 0;
  std::uint32_t pd = 0;
  std::uint32_t extents = 0;
  std::uint32_t handle = 0;  // reregister_region: of the region that is replaced
  std::uint32_t change = 0;  // reregister_region: numbers of enum ibv_rereg_mr_flags
  std::uint32_t reserved = 0;
};
struct RegisterReply {
  std::uint32_t handle = 0;
  std::uint32_t local_key = 0;
  std::uint32_t remote_key = 0;
  std::uint32_t reserved = 0;
};

// A request of a send queue (SendOpcode::bind_window) binds a window. A window counts as a region.
// A region with bound windows can be neither deregistered nor changed: EBUSY.
struct AllocateWindowRequest {
  std::uint32_t pd = 0;
  std::uint32_t type = 0;  // numbers of enum ibv_mw_type
};
struct WindowReply {
  std::uint32_t handle = 0;
  std::uint32_t key = 0;  // its upper 24 bits stay
};

// --- completion ---

// create_channel replies HandleBody and descriptor 0, the reading end of its pipe.

struct CreateCqRequest {
  std::uint32_t entries = 0;
  std::uint32_t channel = 0;  // 0: none
  std::uint64_t cookie = 0;
};
// Descriptor 0: memory of CompletionQueueShape{slots}. resize_cq: a new one; the entries that wait
// are in it, its indices continue.
struct CqReply {
  std::uint32_t handle = 0;
  std::uint32_t slots = 0;
};
struct ResizeCqRequest {
  std::uint32_t handle = 0;
  std::uint32_t entries = 0;
};

// --- shared receive queues ---
struct CreateSrqRequest {
  std::uint32_t pd = 0;
  std::uint32_t requests = 0;
  std::uint32_t segments = 0;
  std::uint32_t limit = 0;
  // XRC only: its messages complete to `cq`, and peers name it by SrqReply::number.
  std::uint32_t domain = 0;  // 0: queue pairs of the session share it
  std::uint32_t cq = 0;
};
// Descriptor 0: memory of WorkQueueShape{slots, stride}.
struct SrqReply {
  std::uint32_t handle = 0;
  std::uint32_t doorbell = 0;
  std::uint32_t slots = 0;
  std::uint32_t stride = 0;
  std::uint32_t requests = 0;  // as many may be outstanding
  std::uint32_t segments = 0;
  std::uint32_t limit = 0;
  std::uint32_t number = 0;
};
// With IBV_SRQ_MAX_WR the reply is an SrqReply, with new memory as descriptor 0. Its indices
// continue, and it holds nothing that was posted before.
struct ModifySrqRequest {
  std::uint32_t handle = 0;
  std::uint32_t change = 0;  // numbers of enum ibv_srq_attr_mask
  std::uint32_t requests = 0;
  std::uint32_t limit = 0;
};

// --- XRC domains ---
namespace domain_flag {
inline constexpr std::uint32_t file = 1U << 0;       // it is a file's, for all of this user
                                                     // who open it on this NIC
inline constexpr std::uint32_t create = 1U << 1;     // if there is none
inline constexpr std::uint32_t exclusive = 1U << 2;  // only if there is none
}  // namespace domain_flag
struct OpenDomainRequest {   // -> HandleBody
  std::uint64_t device = 0;  // of the file, as fstat() says
  std::uint64_t inode = 0;
  std::uint32_t flags = 0;  // of domain_flag
  std::uint32_t reserved = 0;
};

// --- queue pairs ---
enum class PairType : std::uint8_t {  // numbers of enum ibv_qp_type
  rc = 2,
  uc = 3,
  ud = 4,
  xrc_send = 9,
  xrc_receive = 10,
};

struct CreateQpRequest {
  std::uint32_t pd = 0;
  std::uint32_t send_cq = 0;
  std::uint32_t receive_cq = 0;
  std::uint32_t srq = 0;  // 0: it has a receive queue of its own
  std::uint32_t send_requests = 0;
  std::uint32_t receive_requests = 0;
  std::uint32_t send_segments = 0;
  std::uint32_t receive_segments = 0;
  std::uint32_t inline_bytes = 0;
  PairType type = PairType::rc;
  std::uint8_t reserved[3] = {};
  std::uint32_t domain = 0;  // xrc_receive, which uses no other of these fields
};
struct OpenQpRequest {  // a queue pair of type xrc_receive that has been made in the domain
  std::uint32_t domain = 0;
  std::uint32_t qp_number = 0;
};
// Descriptor 0: memory of both queues: the send queue at 0, the receive queue at receive_offset
// (0: none). None for xrc_receive, which has no queues.
struct CreateQpReply {
  std::uint32_t handle = 0;
  std::uint32_t qp_number = 0;
  std::uint32_t doorbell = 0;  // of both queues
  std::uint32_t send_slots = 0;
  std::uint32_t send_stride = 0;
  std::uint32_t receive_slots = 0;
  std::uint32_t receive_stride = 0;
  std::uint32_t receive_offset = 0;
  // The number of outstanding requests granted; at least the number asked for.
  std::uint32_t send_requests = 0;
  std::uint32_t receive_requests = 0;
  std::uint32_t send_segments = 0;
  std::uint32_t receive_segments = 0;
  std::uint32_t inline_bytes = 0;
  std::uint32_t reserved = 0;
};

// An address vector, as in ibv_ah_attr.
struct AddressVector {
  std::array<std::byte, 16> destination{};  // GID; with `global`
  std::uint32_t flow_label = 0;
  std::uint16_t destination_id = 0;  // NicInfo::local_id of the other end; without `global`
  std::uint8_t global = 0;
  std::uint8_t source_gid = 0;  // index
  std::uint8_t hop_limit = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t service_level = 0;
  std::uint8_t static_rate = 0;  // numbers of enum ibv_rate
  std::uint8_t port = 0;
  std::uint8_t reserved[3] = {};
};
static_assert(sizeof(AddressVector) == 32);

// As in ibv_qp_attr, with its mask; query_qp returns all values. Numbers are those of the verbs
// enums.
struct QpValues {
  std::uint32_t handle = 0;
  std::uint32_t mask = 0;  // enum ibv_qp_attr_mask
  std::uint32_t state = 0;
  std::uint32_t current_state = 0;
  std::uint32_t path_mtu = 0;  // enum ibv_mtu
  std::uint32_t qkey = 0;
  std::uint32_t rq_psn = 0;
  std::uint32_t sq_psn = 0;
  std::uint32_t dest_qp = 0;
  std::uint32_t access = 0;
  std::uint32_t rate_limit_kbps = 0;
  std::uint16_t pkey_index = 0;
  std::uint8_t drain_notify = 0;
  std::uint8_t draining = 0;
  std::uint8_t max_rd_atomic = 0;
  std::uint8_t max_dest_rd_atomic = 0;
  std::uint8_t min_rnr_timer = 0;
  std::uint8_t port = 0;
  std::uint8_t timeout = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry = 0;
  std::uint8_t path_migration = 0;  // enum ibv_mig_state
  AddressVector path{};
};

struct RateRequest {  // limit_rate; ibv_modify_qp_rate_limit
  std::uint32_t handle = 0;
  std::uint32_t kbps = 0;  // 0: no limit
  std::uint32_t burst_bytes = 0;
  std::uint32_t typical_packet_bytes = 0;
};

struct CreateAhRequest {
  std::uint32_t pd = 0;
  std::uint32_t reserved = 0;
  AddressVector path{};
};

struct MulticastRequest {
  std::uint32_t handle = 0;  // of the queue pair
  std::uint16_t local_id = 0;
  std::uint16_t reserved = 0;
  std::array<std::byte, 16> group{};
};

// --- rdma_cm (dataplane/service/cm) ---

// cm_channel replies HandleBody and descriptor 0, in place of /dev/infiniband/rdma_cm: readable,
// one byte, while an event waits. The channel ends when it is closed.

// Followed by `body_bytes` bytes of a command of <rdma/rdma_user_cm.h>, behind its header, and by
// `option_bytes` bytes of the value of an option.
struct CmRequest {
  std::uint32_t channel = 0;
  std::uint32_t command = 0;  // RDMA_USER_CM_CMD_*
  std::uint32_t body_bytes = 0;
  std::uint32_t option_bytes = 0;
  std::uint32_t room = 0;  // for the response
  // MIGRATE_ID: the channel whose descriptor the command names; 0: none.
  std::uint32_t other_channel = 0;
};
// Followed by the response. The error of the command itself is here, not in the header, so that it
// may come with `drained`: the byte must be read from this channel, or from the other.
struct CmReply {
  std::int32_t error = 0;
  std::uint8_t drained = 0;
  std::uint8_t other_drained = 0;
  std::uint8_t reserved[2] = {};
};
inline constexpr std::size_t kMaxCmBytes = 1024;  // of a body, of an option, of a response

}  // namespace paceline::attach
