#include "tools/collective/rank/meeting.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

#include "tools/collective/rank/rank_error.h"

namespace paceline::rank {

namespace {

using Json = nlohmann::json;

int connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw RankError(fmt::format("--meet {}: expected at most {} characters", path,
                                sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0 ||
      ::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    if (descriptor >= 0) ::close(descriptor);
    throw RankError(fmt::format("--meet {}: {}", path, std::strerror(error)));
  }
  return descriptor;
}

Json to_json(const LinkAddress& address) {
  return {{"rank", address.rank},
          {"gid", address.gid},
          {"staging", address.staging},
          {"key", address.key},
          {"queue_pair", address.queue_pair},
          {"channel", address.channel}};
}

LinkAddress to_address(const Json& json) {
  return {json.at("rank").get<std::uint32_t>(),       json.at("gid").get<std::string>(),
          json.at("staging").get<std::uint64_t>(),    json.at("key").get<std::uint32_t>(),
          json.at("queue_pair").get<std::uint32_t>(), json.at("channel").get<std::uint64_t>()};
}

}  // namespace

Meeting::Meeting(const std::string& path, std::uint32_t rank, double patience)
    : lines_(connect_to(path)), patience_(patience) {
  send({{"rank", rank}});
}

void Meeting::send(const Json& message) {
  if (!lines_.send(message)) throw RankError("the parent has ended");
}

Json Meeting::next() {
  while (true) {
    if (auto message = lines_.next()) {
      if (message->is_object()) return *message;
      throw RankError("the parent did not send a JSON object");
    }
    pollfd waits{lines_.descriptor(), POLLIN, 0};
    const int limit = std::isinf(patience_) ? -1 : static_cast<int>(patience_ * 1000);
    const int ready = ::poll(&waits, 1, limit);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      throw RankError(fmt::format("the other ranks are not ready for {:g} s", patience_));
    }
    if (!lines_.receive()) throw RankError("the parent has ended");
  }
}

std::vector<LinkAddress> Meeting::exchange(const std::vector<LinkAddress>& own) {
  Json addresses = Json::array();
  for (const LinkAddress& address : own) addresses.push_back(to_json(address));
  send({{"addresses", addresses}});
  std::vector<LinkAddress> peers;
  try {
    const Json answer = next();
    for (const Json& address : answer.at("addresses")) peers.push_back(to_address(address));
  } catch (const Json::exception& error) {
    throw RankError(fmt::format("the addresses of the peers: {}", error.what()));
  }
  return peers;
}

LinkTime Meeting::wait_for_all() {
  const std::uint32_t number = waited_++;
  send({{"wait", number}});
  const Json answer = next();
  if (!answer.contains("go") || answer["go"] != number || !answer.contains("at_ns") ||
      !answer["at_ns"].is_number_integer()) {
    throw RankError(fmt::format("the parent sent {}: expected \"go\" {}", answer.dump(), number));
  }
  return LinkTime(std::chrono::nanoseconds(answer["at_ns"].get<std::int64_t>()));
}

void Meeting::report(const SizeResult& result) {
  send({{"size", result.size},
        {"mean_us", result.mean_us},
        {"wrong", result.data.wrong},
        {"element", result.data.first.element},
        {"expected", result.data.first.expected},
        {"got", result.data.first.got}});
}

void Meeting::report_failure(const std::string& what) { lines_.send({{"failed", what}}); }

}  // namespace paceline::rank
