#include "tools/service_link/service_request.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include "dataplane/attach/turned_away.h"

namespace paceline::tools {

namespace {

constexpr std::size_t kLongestStatus = 64U << 20U;

}  // namespace

std::string read_long_answer(int file) {
  std::string text;
  std::array<char, 65536> part;
  for (;;) {
    const ssize_t n = ::pread(file, part.data(), part.size(), static_cast<off_t>(text.size()));
    if (n <= 0 || text.size() > kLongestStatus) return text;
    text.append(part.data(), static_cast<std::size_t>(n));
  }
}

ServicePeer service_peer(const std::string& socket, timeval patience) {
  const attach::Descriptor connection = attach::connect_socket(socket, patience);
  if (!connection) return {0, std::strerror(errno), errno};
  ucred credentials{};
  socklen_t length = sizeof(credentials);
  if (::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return {0, std::strerror(errno), errno};
  }
  return {credentials.pid, {}, 0};
}

ServiceStatus service_status(const std::string& socket) {
  const attach::Descriptor connection = attach::connect_socket(socket);
  if (!connection) return {{}, std::strerror(errno), errno};
  ::setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &attach::kConnectPatience,
               sizeof(attach::kConnectPatience));
  attach::HelloRequest hello;
  hello.pid = static_cast<std::uint32_t>(::getpid());
  std::strncpy(hello.program.data(), "paceline", hello.program.size() - 1);
  const std::span<const std::byte> greeting = std::as_bytes(std::span(&hello, 1));
  attach::Message reply;
  for (const attach::Operation operation : {attach::Operation::hello, attach::Operation::status}) {
    attach::Header header;
    header.operation = operation;
    const bool first = operation == attach::Operation::hello;
    reply = {};
    const bool sent = attach::send_message(connection.get(), header,
                                           first ? greeting : std::span<const std::byte>{}) ==
                      attach::Transfer::done;
    const attach::Transfer got =
        sent ? attach::receive_message(connection.get(), reply) : attach::Transfer::closed;
    const bool refused =
        got == attach::Transfer::closed && attach::turned_away(connection.get(), reply);
    if (got == attach::Transfer::again) return {{}, std::strerror(ETIMEDOUT), ETIMEDOUT};
    if (got != attach::Transfer::done && !refused) {
      return {{}, "it does not answer; perhaps it is of another version"};
    }
    if (reply.header.error != 0) {
      return {{}, std::strerror(reply.header.error), reply.header.error};
    }
  }
  if (!reply.descriptors.empty()) return {read_long_answer(reply.descriptors.front().get()), {}, 0};
  return {std::string(reinterpret_cast<const char*>(reply.body.data()), reply.body.size()), {}, 0};
}

}  // namespace paceline::tools
