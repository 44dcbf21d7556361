// libFuzzer target for the connection manager: bytes that arrive as a management datagram, and
// commands as a program writes them, several in a row. The first byte of the input chooses which.
// It promises that a message that is read is written as it was read, and that afterwards every id
// goes with its channel.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "dataplane/service/cm/abi/ucm_commands.h"
#include "dataplane/service/cm/mad/mad.h"

namespace {

using namespace paceline;
using namespace paceline::service::cm;

void check_message(std::span<const std::byte> input) {
  const auto mad = parse_mad(input);
  if (!mad) return;
  const MadBytes bytes = build_mad(*mad);
  if (parse_mad(bytes) != mad) std::abort();
}

NicBook two_hosts() {
  std::vector<attach::NicInfo> nics(2);
  for (std::uint32_t i = 0; i < 2; ++i) {
    nics[i].guid = i + 1;
    nics[i].mtu = 4096;
    nics[i].gids[0] = wire::IpAddress::v4(0x0A00'0001 + i).bytes;
    nics[i].gid_kinds[0] = attach::GidKind::roce_v2_ipv4;
  }
  return {std::move(nics), [](std::size_t, const wire::IpAddress&) { return true; },
          [](std::size_t) { return true; }};
}

// Each command: its number, the room for the response in 8 bytes, how many bytes of body; the body.
void check_commands(std::span<const std::byte> input) {
  ConnectionManager manager(two_hosts(), 1);
  UcmCommands commands(manager);
  const std::uint32_t channels[] = {manager.open_channel({}), manager.open_channel(1)};
  Nanos now{0};
  while (input.size() >= 3) {
    const auto number = static_cast<std::uint32_t>(input[0]);
    UcmRequest request;
    request.channel = channels[number >> 7U];
    request.other_channel = channels[0];
    request.command = number & 0x7FU;
    request.room = std::size_t{static_cast<std::uint8_t>(input[1])} * 8;
    const auto size = static_cast<std::size_t>(static_cast<std::uint8_t>(input[2])) * 2;
    input = input.subspan(3);
    request.body = input.first(std::min(size, input.size()));
    request.option = request.body.first(std::min<std::size_t>(4, request.body.size()));
    input = input.subspan(request.body.size());
    const UcmResult result = commands.run(now, request);
    if (result.response.size() > request.room) std::abort();
    now.count += 1'000'000'000;
    manager.expire(now);
  }
  for (const std::uint32_t channel : channels) {
    manager.close_channel(now, channel);
    if (manager.has_events(channel) || manager.ids_of(channel) != 0) std::abort();
  }
  if (manager.deadline().count != kNeverNanos.count) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto input = std::as_bytes(std::span(data + 1, size - 1));
  if (data[0] % 2 == 0) {
    check_message(input);
  } else {
    check_commands(input);
  }
  return 0;
}
