#include "tools/nic_list.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "dataplane/attach/message_socket.h"

namespace paceline::tools {

namespace {

constexpr timeval kPatience{5, 0};

// The reply to one request, or why there is none.
std::string ask(int socket, attach::Operation operation, std::span<const std::byte> body,
                attach::Message& reply) {
  attach::Header header;
  header.operation = operation;
  if (attach::send_message(socket, header, body) != attach::Transfer::done) {
    return "it closed the connection";
  }
  switch (attach::receive_message(socket, reply)) {
    case attach::Transfer::done:
      break;
    case attach::Transfer::closed:
      return "it closed the connection";
    case attach::Transfer::again:
      return "it does not answer";
    case attach::Transfer::broken:
      return "it speaks another protocol, or another version of ours";
    case attach::Transfer::failed:
      return std::strerror(errno);
  }
  if (reply.header.error != 0) return std::strerror(reply.header.error);
  return {};
}

}  // namespace

NicListing list_nics(const std::string& socket) {
  const attach::Descriptor connection = attach::connect_socket(socket);
  if (connection.get() < 0) return {{}, std::strerror(errno)};
  ::setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
  ::setsockopt(connection.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
  attach::HelloRequest hello;
  hello.pid = static_cast<std::uint32_t>(::getpid());
  std::strncpy(hello.program.data(), "paceline", hello.program.size() - 1);
  attach::Message reply;
  std::string error =
      ask(connection.get(), attach::Operation::hello, std::as_bytes(std::span(&hello, 1)), reply);
  reply = {};
  if (error.empty()) error = ask(connection.get(), attach::Operation::list_nics, {}, reply);
  if (!error.empty()) return {{}, error};
  const std::span<const std::byte> bytes = reply.beyond<attach::NicList>();
  const std::size_t count =
      std::min<std::size_t>({reply.as<attach::NicList>().count,
                             bytes.size() / sizeof(attach::NicInfo), attach::kMaxNics});
  NicListing listing;
  listing.nics.resize(count);
  if (count != 0) std::memcpy(listing.nics.data(), bytes.data(), count * sizeof(attach::NicInfo));
  return listing;
}

}  // namespace paceline::tools
