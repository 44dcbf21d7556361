#include "control/daemon/service_link/control_message.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "control/experiment/text/json_reader.h"
#include "dataplane/attach/shared_memory.h"
#include "dataplane/service/protocol/control_protocol.h"

namespace paceline::daemon {

using nlohmann::json;

namespace {

constexpr std::size_t kMostDescriptors = 4;
constexpr std::size_t kMostLongBytes = 64 << 20;

// As the kernel wants it aligned.
struct alignas(cmsghdr) DescriptorRoom {
  std::array<std::byte, CMSG_SPACE(kMostDescriptors * sizeof(int))> bytes{};
};

}  // namespace

ControlAnswer unanswered(std::string why) {
  ControlAnswer answer;
  answer.errors.push_back(std::move(why));
  return answer;
}

std::string request_text(std::uint64_t id, std::string_view op, const json& members) {
  json request = members;
  request["schema"] = service::kControlSchema;
  request["id"] = id;
  request["op"] = op;
  return request.dump(-1, ' ', false, json::error_handler_t::replace);
}

ControlAnswer answer_of(std::string_view text, std::uint64_t id) {
  json body = experiment::JsonReader::parse(text);
  if (!body.is_object())
    return unanswered("the service answered with something other than a JSON object");
  const auto whole = [&](const char* name) -> std::uint64_t {
    const auto at = body.find(name);
    return at != body.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
  };
  if (whole("schema") != static_cast<std::uint64_t>(service::kControlSchema)) {
    return unanswered(fmt::format("the service speaks another control protocol than {}",
                                  service::kControlSchema));
  }
  const auto ok = body.find("ok");
  if (whole("id") != id || ok == body.end() || !ok->is_boolean()) {
    return unanswered(fmt::format("the service answered something else than request {}", id));
  }
  ControlAnswer answer;
  answer.kind = ok->get<bool>() ? ControlAnswer::Kind::done : ControlAnswer::Kind::refused;
  if (answer.kind == ControlAnswer::Kind::refused) {
    const auto errors = body.find("errors");
    if (errors != body.end() && errors->is_array()) {
      for (const json& error : *errors) {
        if (error.is_string()) answer.errors.push_back(error.get<std::string>());
      }
    }
    if (answer.errors.empty())
      answer.errors.emplace_back("the service refused and does not say why");
  }
  answer.body = std::move(body);
  return answer;
}

std::optional<json> whole_body(ControlAnswer answer, std::string& error) {
  if (!answer.body.contains("bytes") || answer.descriptors.empty()) return std::move(answer.body);
  const json& bytes = answer.body["bytes"];
  attach::SharedMemory memory;
  if (!bytes.is_number_unsigned() || bytes > kMostLongBytes ||
      !memory.open(std::move(answer.descriptors.front()), bytes.get<std::size_t>(), false)) {
    error = "the service's answer is too long, or cannot be mapped";
    return std::nullopt;
  }
  const std::span<const std::byte> text = memory.bytes();
  json body = experiment::JsonReader::parse(
      std::string_view(reinterpret_cast<const char*>(text.data()), text.size()));
  if (body.is_object()) return body;
  error = "the service answered with something other than a JSON object";
  return std::nullopt;
}

std::optional<service::TrialState> trial_state_of(const nlohmann::json& trial) {
  const auto state = trial.find("state");
  if (state == trial.end() || !state->is_string()) return std::nullopt;
  return enum_value<service::TrialState>(service::kTrialStates,
                                         state->get_ref<const std::string&>());
}

Receipt receive_control(int socket, std::string& text,
                        std::vector<attach::Descriptor>& descriptors) {
  text.resize(service::kMostControlBytes);
  iovec part{text.data(), text.size()};
  DescriptorRoom room;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room.bytes.data();
  message.msg_controllen = room.bytes.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0)
    return errno == EAGAIN || errno == EWOULDBLOCK ? Receipt::nothing_yet : Receipt::closed;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      descriptors.emplace_back(fd);
    }
  }
  if (got == 0) return Receipt::closed;
  text.resize(static_cast<std::size_t>(got));
  return (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ? Receipt::broken : Receipt::message;
}

}  // namespace paceline::daemon
