// Requests that are more or less right.
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

#include "tests/verbs/hostile/hostile_session.h"

namespace paceline::test {

namespace {

using attach::Operation;

constexpr Operation kOperations[] = {Operation::hello,
                                     Operation::list_nics,
                                     Operation::port_counters,
                                     Operation::open_nic,
                                     Operation::query_port,
                                     Operation::status,
                                     Operation::create_pd,
                                     Operation::destroy_pd,
                                     Operation::share_memory,
                                     Operation::register_region,
                                     Operation::register_region,
                                     Operation::reregister_region,
                                     Operation::deregister_region,
                                     Operation::create_channel,
                                     Operation::destroy_channel,
                                     Operation::create_cq,
                                     Operation::resize_cq,
                                     Operation::destroy_cq,
                                     Operation::open_domain,
                                     Operation::close_domain,
                                     Operation::create_srq,
                                     Operation::modify_srq,
                                     Operation::query_srq,
                                     Operation::destroy_srq,
                                     Operation::create_qp,
                                     Operation::open_qp,
                                     Operation::modify_qp,
                                     Operation::modify_qp,
                                     Operation::query_qp,
                                     Operation::destroy_qp,
                                     Operation::limit_rate,
                                     Operation::attach_multicast,
                                     Operation::create_ah,
                                     Operation::destroy_ah};

template <class T>
std::vector<std::byte> bytes_of(const T& part) {
  attach::Message m;
  m.append(part);
  return std::move(m.body);
}

}  // namespace

// A body that would be accepted, or nearly.
std::vector<std::byte> HostileSession::body_of(Operation operation, RawEnd& end) {
  switch (operation) {
    case Operation::hello:
      return bytes_of(attach::HelloRequest{});
    case Operation::open_nic:
    case Operation::port_counters:
      return bytes_of(attach::OpenRequest{});
    case Operation::share_memory:
      return bytes_of(attach::ShareMemoryRequest{});
    case Operation::register_region:
    case Operation::reregister_region: {
      attach::RegisterRequest r;
      r.address = r.iova = w_.arena.data() + w_.odd.below(Arena::kBytes / 2);
      r.access = static_cast<std::uint32_t>(w_.odd.below(16));
      r.pd = end.pd;
      r.handle = static_cast<std::uint32_t>(1 + w_.odd.below(3));
      r.change = static_cast<std::uint32_t>(w_.odd.below(8));
      r.extents = static_cast<std::uint32_t>(1 + w_.odd.below(w_.odd.one_in(16) ? 2048 : 6));
      attach::Message m;
      std::vector<attach::Extent> extents(r.extents);
      for (attach::Extent& e : extents) {
        e.length = 1 + w_.odd.below(16384);
        e.kind = static_cast<attach::ExtentKind>(w_.odd.below(2));
        e.offset = (r.address + r.length) % Arena::kPage + w_.odd.below(16) * Arena::kPage;
        r.length += e.length;
      }
      m.append(r);
      for (const attach::Extent& e : extents) m.append(e);
      return std::move(m.body);
    }
    case Operation::create_cq: {
      attach::CreateCqRequest r;
      r.entries = static_cast<std::uint32_t>(1 + w_.odd.below(64));
      r.channel = static_cast<std::uint32_t>(w_.odd.below(3));
      return bytes_of(r);
    }
    case Operation::resize_cq:
      return bytes_of(attach::ResizeCqRequest{end.cq.handle,
                                              static_cast<std::uint32_t>(1 + w_.odd.below(256))});
    case Operation::create_srq: {
      attach::CreateSrqRequest r;
      r.pd = end.pd;
      r.requests = static_cast<std::uint32_t>(1 + w_.odd.below(64));
      if (w_.odd.one_in(2)) r.domain = static_cast<std::uint32_t>(1 + w_.odd.below(3));
      r.cq = end.cq.handle;
      return bytes_of(r);
    }
    case Operation::open_domain: {
      attach::OpenDomainRequest r;
      r.inode = w_.odd.below(3);
      r.flags = static_cast<std::uint32_t>(w_.odd.below(8));
      return bytes_of(r);
    }
    case Operation::open_qp:
      return bytes_of(attach::OpenQpRequest{static_cast<std::uint32_t>(1 + w_.odd.below(3)),
                                            static_cast<std::uint32_t>(w_.odd.any())});
    case Operation::modify_srq:
      return bytes_of(attach::ModifySrqRequest{1, static_cast<std::uint32_t>(w_.odd.below(4)),
                                               static_cast<std::uint32_t>(w_.odd.below(100)),
                                               static_cast<std::uint32_t>(w_.odd.below(20))});
    case Operation::create_qp: {
      const std::uint64_t type = w_.odd.one_in(3) ? 9 + w_.odd.below(2) : 2 + w_.odd.below(3);
      attach::CreateQpRequest r = end.wish(static_cast<attach::PairType>(type));
      r.domain = static_cast<std::uint32_t>(1 + w_.odd.below(3));
      if (w_.odd.one_in(3)) r.srq = 1;
      return bytes_of(r);
    }
    case Operation::modify_qp: {
      attach::QpValues v;
      v.handle = end.pair.reply.handle;
      v.state = static_cast<std::uint32_t>(w_.odd.below(7));
      v.mask = w_.odd.one_in(2) ? 1U : static_cast<std::uint32_t>(w_.odd.below(1U << 26U));
      v.port = v.path.port = 1;
      v.path_mtu = static_cast<std::uint32_t>(1 + w_.odd.below(5));
      v.dest_qp = w_.neighbour.qp_numbers[w_.odd.below(2)];
      v.path.destination_id = static_cast<std::uint16_t>(1 + w_.odd.below(2));
      return bytes_of(v);
    }
    case Operation::limit_rate:
      return bytes_of(attach::RateRequest{end.pair.reply.handle,
                                          static_cast<std::uint32_t>(w_.odd.any()), 0, 0});
    case Operation::create_ah: {
      attach::CreateAhRequest r;
      r.pd = end.pd;
      r.path.port = 1;
      r.path.destination_id = static_cast<std::uint16_t>(1 + w_.odd.below(2));
      return bytes_of(r);
    }
    default:
      return bytes_of(attach::HandleBody{static_cast<std::uint32_t>(w_.odd.any()), 0});
  }
}

bool HostileSession::harmless(const std::vector<std::byte>& body) const {
  std::uint64_t address = 0;
  std::memcpy(&address, body.data(), std::min(body.size(), sizeof(address)));
  return w_.arena.harmless(address);
}

std::vector<int> HostileSession::wrong_descriptors() {
  std::vector<int> out;
  if (w_.old.empty()) return out;
  const std::size_t count = 1 + w_.odd.below(w_.odd.one_in(4) ? 40 : 4);
  for (std::size_t i = 0; i < count; ++i) out.push_back(w_.old[w_.odd.below(w_.old.size())].get());
  return out;
}

// Whatever it is, it is answered or ends the session.
bool HostileSession::answered(RawEnd& end) {
  attach::Message message;
  const attach::Transfer transfer = attach::receive_message(end.client.socket(), message);
  if (transfer == attach::Transfer::again) w_.wrong = "a request is not answered";
  if (transfer != attach::Transfer::done) return false;
  if (message.header.error == 0) w_.odd.learn(message.as<attach::HandleBody>().handle);
  for (attach::Descriptor& fd : message.descriptors) w_.keep(std::move(fd));
  return message.header.error != EPROTO;
}

// A packet of the protocol whose header, length or descriptors need not fit.
bool HostileSession::send_raw(RawEnd& end, Operation operation, std::vector<std::byte> body) {
  attach::Header header;
  header.operation = operation;
  header.sequence = static_cast<std::uint32_t>(w_.odd.bits());
  std::span<std::byte> head = std::as_writable_bytes(std::span(&header, 1));
  if (w_.odd.one_in(40)) w_.odd.spoil(head);
  if (w_.odd.one_in(40)) head = head.first(w_.odd.below(head.size() + 1));
  if (w_.odd.one_in(40)) body.resize(w_.odd.below(attach::kMaxMessage + 4096));
  iovec parts[] = {{head.data(), head.size()}, {body.data(), body.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  alignas(cmsghdr) char room[CMSG_SPACE(64 * sizeof(int))];
  std::vector<int> descriptors;
  if (operation == Operation::share_memory || w_.odd.one_in(20)) descriptors = wrong_descriptors();
  if (!descriptors.empty()) {
    const std::size_t bytes = descriptors.size() * sizeof(int);
    std::memset(room, 0, sizeof(room));
    message.msg_control = room;
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(c), descriptors.data(), bytes);
  }
  if (::sendmsg(end.client.socket(), &message, MSG_NOSIGNAL) < 0) {
    // The kernel does not carry it.
    return errno == EMSGSIZE || errno == ETOOMANYREFS || errno == EPERM;
  }
  return answered(end);
}

bool HostileSession::ask_lies(RawEnd& end) {
  Operation operation = kOperations[w_.odd.below(std::size(kOperations))];
  if (w_.odd.one_in(100)) operation = static_cast<Operation>(w_.odd.below(70));
  std::vector<std::byte> body = body_of(operation, end);
  for (std::uint64_t n = w_.odd.below(4); n != 0; --n) w_.odd.spoil(body);
  if (w_.odd.one_in(12)) body.resize(w_.odd.below(body.size() + 64));
  const bool registers =
      operation == Operation::register_region || operation == Operation::reregister_region;
  if (registers && !harmless(body)) return true;
  // What has an answer that ends the session is seldom asked: the rest of it shall be tried as
  // well.
  const bool ends = operation == Operation::hello || operation == Operation::open_nic ||
                    operation == Operation::share_memory;
  if (ends && !w_.odd.one_in(8)) return true;
  return send_raw(end, operation, std::move(body));
}

}  // namespace paceline::test
