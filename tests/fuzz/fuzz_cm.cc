// libFuzzer target for the connection manager: bytes that arrive as a management datagram or as a
// probe, commands as a program writes them, and messages of another machine among the calls of a
// program, several in a row. The first byte of the input chooses which. It promises that a message
// that is read is written as it was read, that afterwards every id goes with its channel, and that
// nothing is kept for a peer for ever.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "dataplane/probing/probe_message.h"
#include "dataplane/service/cm/abi/ucm_commands.h"
#include "dataplane/service/cm/mad/mad.h"

namespace {

using namespace paceline;
using namespace paceline::service::cm;

void check_probe(std::span<const std::byte> input) {
  const auto probe = probing::read_probe(input);
  if (probe && probing::read_probe(probing::write_probe(*probe)) != probe) std::abort();
}

void check_message(std::span<const std::byte> input) {
  check_probe(input);
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
          [](std::size_t, std::uint32_t) { return true; }};
}

void check_end(ConnectionManager& manager, Nanos now, std::span<const std::uint32_t> channels) {
  for (const std::uint32_t channel : channels) {
    manager.close_channel(now, channel);
    if (manager.has_events(channel) || manager.holdings_of(channel).ids != 0) std::abort();
  }
  // Ids without a program wait for their peers, but not for ever.
  for (int i = 0; i < 4096 && manager.deadline().count != kNeverNanos.count; ++i) {
    now = manager.deadline();
    manager.expire(now);
    manager.mail().take_leaving();
  }
  if (manager.deadline().count != kNeverNanos.count) std::abort();
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
  check_end(manager, now, channels);
}

// What a peer sends is one of each attribute as it should be, with bytes of the input over it, and
// the numbers that this end has told.
void check_messages(std::span<const std::byte> input) {
  ConnectionManager manager(two_hosts(), 1);
  const std::uint32_t channels[] = {manager.open_channel({})};
  Nanos now{0};
  std::uint64_t cookie = 0;
  std::uint32_t told_id = 0;    // of this end's last message
  std::uint32_t last_made = 0;  // id of the last request
  SocketAddress own;
  own.family = AF_INET;
  own.ip = wire::IpAddress::v4(0x0A00'0001);
  own.port = 7;
  for (const IdType type : {IdType::rc, IdType::ud}) {
    std::uint32_t number = 0;
    CmId* id = nullptr;
    const PortSpace space = type == IdType::ud ? PortSpace::udp : PortSpace::tcp;
    if (manager.create(channels[0], ++cookie, space, type, number) != 0 ||
        manager.find(channels[0], number, id) != 0 || manager.bind(*id, own) != 0 ||
        manager.listen(*id, 4) != 0) {
      std::abort();
    }
  }
  const wire::IpAddress peer = wire::IpAddress::v4(0x0A00'0009);
  while (input.size() >= 2) {
    const auto what = static_cast<unsigned>(input[0]);
    const std::size_t size =
        std::min<std::size_t>(static_cast<unsigned>(input[1]), input.size() - 2);
    const auto bytes = input.subspan(2, size);
    input = input.subspan(2 + size);
    CmId* id = nullptr;
    const bool there = manager.find(channels[0], last_made, id) == 0;
    std::uint32_t reported = 0;
    switch (what >> 4U) {
      case 0:
        if (there) manager.accept(now, *id, Offer{}, 0);
        break;
      case 1:
        if (there) manager.disconnect(now, *id);
        break;
      case 2:
        if (there) manager.reject(now, *id, 28, bytes.first(std::min<std::size_t>(size, 148)));
        break;
      case 3:
        manager.destroy(now, channels[0], last_made, reported);
        break;
      case 4:
        now.count = std::min(manager.deadline().count, now.count + 1'000'000'000);
        manager.expire(now);
        break;
      default: {
        Mad mad;
        mad.attribute = static_cast<Attribute>(0x10 + what % 9);
        mad.local_id = 5;
        mad.remote_id = told_id;
        if (mad.attribute == Attribute::sidr_rep) mad.local_id = told_id;
        const bool datagram = mad.attribute == Attribute::sidr_req;
        mad.service_id = service_id(datagram ? PortSpace::udp : PortSpace::tcp, 7);
        put_ip_header(mad.private_data.data(), {peer, own.ip, 1, true});
        MadBytes message = build_mad(mad);
        for (std::size_t i = 0; i + 1 < size; i += 2)
          message[static_cast<std::size_t>(bytes[i])] = bytes[i + 1];
        manager.arrive(now, {0, peer, own.ip, {}},
                       std::span(message).first(what >> 4U == 15 ? size : kMadBytes));
      }
    }
    for (const Parcel& parcel : manager.mail().take_leaving()) {
      if (parcel.nic != 0 || parcel.destination != peer) std::abort();
      told_id = parse_mad(parcel.bytes)->local_id;
    }
    while (const auto event = manager.next_event(channels[0])) {
      if (event->kind != EventKind::connect_request) continue;
      last_made = event->id;
      if (manager.find(channels[0], last_made, id) == 0) id->call_it(++cookie);
    }
  }
  check_end(manager, now, channels);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto input = std::as_bytes(std::span(data + 1, size - 1));
  if (data[0] == 'm') {
    check_messages(input);
  } else if (data[0] % 2 == 0) {
    check_message(input);
  } else {
    check_commands(input);
  }
  return 0;
}
