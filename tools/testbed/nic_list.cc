#include "tools/testbed/nic_list.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "dataplane/attach/message_socket.h"
#include "dataplane/attach/text.h"
#include "dataplane/attach/turned_away.h"

namespace paceline::tools {

namespace {

// Sends one request and waits for the reply. Returns an error, or "".
std::string ask(int socket, attach::Operation operation, std::span<const std::byte> body,
                attach::Message& reply, int& code) {
  attach::Header header;
  header.operation = operation;
  const bool sent = attach::send_message(socket, header, body) == attach::Transfer::done;
  switch (sent ? attach::receive_message(socket, reply) : attach::Transfer::closed) {
    case attach::Transfer::done:
      break;
    case attach::Transfer::closed:
      if (attach::turned_away(socket, reply)) break;
      return "the service closed the connection";
    case attach::Transfer::again:
      code = ETIMEDOUT;
      return std::strerror(code);
    case attach::Transfer::broken:
      return "the service speaks another protocol or another version of it";
    case attach::Transfer::failed:
      return std::strerror(errno);
  }
  code = reply.header.error;
  if (code != 0) return std::strerror(code);
  return {};
}

std::vector<std::string> counters_of(int socket, const attach::NicInfo& nic) {
  attach::OpenRequest request;
  request.nic = nic.name;
  attach::Message reply;
  int code = 0;
  std::vector<std::string> out;
  if (!ask(socket, attach::Operation::port_counters, std::as_bytes(std::span(&request, 1)), reply,
           code)
           .empty()) {
    return out;
  }
  const std::span<const std::byte> bytes = reply.beyond<attach::CounterList>();
  const std::size_t count = std::min<std::size_t>(reply.as<attach::CounterList>().count,
                                                  bytes.size() / sizeof(attach::PortCounter));
  for (std::size_t i = 0; i < count; ++i) {
    attach::PortCounter one;
    std::memcpy(&one, bytes.data() + i * sizeof(one), sizeof(one));
    // A file is made by that name.
    const std::string name = attach::text_of(one.name);
    if (name.starts_with("counters/") || name.starts_with("hw_counters/")) out.push_back(name);
  }
  return out;
}

}  // namespace

NicListing list_nics(const std::string& socket) {
  const attach::Descriptor connection = attach::connect_socket(socket);
  if (connection.get() < 0) return {{}, std::strerror(errno), errno};
  for (const int limit : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    ::setsockopt(connection.get(), SOL_SOCKET, limit, &attach::kConnectPatience,
                 sizeof(attach::kConnectPatience));
  }
  attach::HelloRequest hello;
  hello.pid = static_cast<std::uint32_t>(::getpid());
  std::strncpy(hello.program.data(), "paceline", hello.program.size() - 1);
  attach::Message reply;
  int code = 0;
  std::string error = ask(connection.get(), attach::Operation::hello,
                          std::as_bytes(std::span(&hello, 1)), reply, code);
  const std::string version = attach::text_of(reply.as<attach::HelloReply>().version);
  reply = {};
  if (error.empty()) error = ask(connection.get(), attach::Operation::list_nics, {}, reply, code);
  if (!error.empty()) return {{}, error, code};
  const std::span<const std::byte> bytes = reply.beyond<attach::NicList>();
  const std::size_t count =
      std::min<std::size_t>({reply.as<attach::NicList>().count,
                             bytes.size() / sizeof(attach::NicInfo), attach::kMaxNics});
  NicListing listing;
  listing.nics.resize(count);
  if (count != 0) std::memcpy(listing.nics.data(), bytes.data(), count * sizeof(attach::NicInfo));
  listing.version = version;
  const auto there = std::find_if(listing.nics.begin(), listing.nics.end(),
                                  [](const attach::NicInfo& nic) { return nic.gone == 0; });
  if (there != listing.nics.end()) listing.counters = counters_of(connection.get(), *there);
  return listing;
}

}  // namespace paceline::tools
