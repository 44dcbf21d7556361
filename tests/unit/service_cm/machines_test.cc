// Two connection managers on two machines, with a network between them that loses, repeats and
// overtakes messages; and what an unfriendly one sends.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <functional>
#include <span>

#include "dataplane/base/numbers/random.h"
#include "dataplane/service/cm/manager/connection_manager.h"

namespace paceline::service::cm::machines {

namespace {

constexpr Nanos kStart{1'000'000};
constexpr std::uint16_t kPort = 7174;

wire::IpAddress address(std::size_t machine) {
  return wire::IpAddress::v4(0x0A00'0001 + static_cast<std::uint32_t>(machine));
}
SocketAddress at(std::size_t machine, std::uint16_t port) {
  SocketAddress out;
  out.family = AF_INET;
  out.ip = address(machine);
  out.port = port;
  return out;
}

NicBook one_nic(std::size_t machine) {
  std::vector<attach::NicInfo> nics(1);
  nics[0].guid = machine + 1;
  nics[0].mtu = 1024;
  nics[0].gids[0] = address(machine).bytes;
  nics[0].gid_kinds[0] = attach::GidKind::roce_v2_ipv4;
  return {std::move(nics), [](std::size_t, const wire::IpAddress&) { return true; },
          [](std::size_t, std::uint32_t) { return true; }};
}

// A program with one channel, and what it was told.
struct Machine {
  Machine(std::size_t machine, std::uint64_t seed)
      : manager(one_nic(machine), seed), channel(manager.open_channel({})) {}

  CmId& make(PortSpace space = PortSpace::tcp, IdType type = IdType::rc) {
    std::uint32_t number = 0;
    REQUIRE(manager.create(channel, ++cookie, space, type, number) == 0);
    return id(number);
  }
  CmId& id(std::uint32_t number) {
    CmId* out = nullptr;
    REQUIRE(manager.find(channel, number, out) == 0);
    return *out;
  }
  void listen(std::size_t self, PortSpace space = PortSpace::tcp, IdType type = IdType::rc) {
    CmId& listener = make(space, type);
    REQUIRE(manager.bind(listener, at(self, kPort)) == 0);
    REQUIRE(manager.listen(listener, 8) == 0);
  }
  std::uint32_t routed(std::size_t to, PortSpace space = PortSpace::tcp, IdType type = IdType::rc) {
    CmId& caller = make(space, type);
    REQUIRE(manager.resolve_address(caller, {}, at(to, kPort)) == 0);
    REQUIRE(manager.resolve_route(caller) == 0);
    REQUIRE(event().kind == EventKind::address_resolved);
    REQUIRE(event().kind == EventKind::route_resolved);
    return caller.number();
  }
  Event event() {
    const auto out = manager.next_event(channel);
    REQUIRE(out.has_value());
    return *out;
  }

  ConnectionManager manager;
  std::uint32_t channel;
  std::uint64_t cookie = 0;
};

struct Weather {
  double lost = 0;
  double twice = 0;
  double late = 0;  // behind the one that comes next
};

// What leaves one machine comes to the other at once.
struct Two {
  explicit Two(std::uint64_t seed = 1, Weather weather_ = {})
      : machines{Machine(0, seed), Machine(1, seed + 1000)}, weather(weather_), random(seed) {}

  bool chance(double share) { return random.uniform() < share; }
  void collect(std::size_t from) {
    for (const Parcel& parcel : machines[from].manager.mail().take_leaving()) {
      if (chance(weather.lost)) continue;
      for (int copies = chance(weather.twice) ? 2 : 1; copies > 0; --copies) {
        if (chance(weather.late)) {
          way.push_front(parcel);
        } else {
          way.push_back(parcel);
        }
      }
    }
  }
  // Until nothing is on its way.
  void settle() {
    for (;;) {
      collect(0);
      collect(1);
      if (way.empty()) return;
      Parcel parcel = way.front();
      way.pop_front();
      const std::size_t to = parcel.destination == address(0) ? 0 : 1;
      REQUIRE(parcel.nic == 0);
      machines[to].manager.arrive(now, parcel, parcel.bytes);
    }
  }
  // Until `done`, or a quarter of an hour has passed: false.
  bool run(const std::function<bool()>& done) {
    const std::int64_t limit = now.count + 900'000'000'000;
    for (settle(); !done(); settle()) {
      now.count =
          std::min(machines[0].manager.deadline().count, machines[1].manager.deadline().count);
      if (now.count > limit) return false;
      for (Machine& machine : machines) machine.manager.expire(now);
    }
    return true;
  }
  bool told(std::size_t machine) {
    return machines[machine].manager.has_events(machines[machine].channel);
  }
  Event event(std::size_t machine) {
    REQUIRE(run([&] { return told(machine); }));
    return machines[machine].event();
  }
  // Numbers of the ids: the caller's on machine 0, the called one's on 1.
  void connect() {
    machines[1].listen(1);
    connect_again();
  }
  void connect_again() {
    caller = machines[0].routed(1);
    REQUIRE(machines[0].manager.connect(now, machines[0].id(caller), offer(17)) == 0);
    const Event request = event(1);
    REQUIRE(request.kind == EventKind::connect_request);
    REQUIRE(request.qp_number == 17);
    called = request.id;
    machines[1].id(called).call_it(++machines[1].cookie);
    REQUIRE(machines[1].manager.accept(now, machines[1].id(called), offer(18), 0) == 0);
    const Event response = event(0);
    REQUIRE(response.kind == EventKind::connect_response);
    REQUIRE(response.qp_number == 18);
    REQUIRE(machines[0].manager.accept(now, machines[0].id(caller), std::nullopt, 0) == 0);
    REQUIRE(event(1).kind == EventKind::established);
  }
  static Offer offer(std::uint32_t qp) {
    Offer out;
    out.qp_number = qp;
    return out;
  }
  void destroy(std::size_t machine, std::uint32_t id) {
    std::uint32_t reported = 0;
    REQUIRE(machines[machine].manager.destroy(now, machines[machine].channel, id, reported) == 0);
  }
  const MadCounts& counts(std::size_t machine) { return machines[machine].manager.mail().counts(); }
  // A message that `forged` describes, from machine 0 to machine 1.
  void send(const Mad& forged) {
    const Parcel parcel{0, address(0), address(1), {}};
    machines[1].manager.arrive(now, parcel, build_mad(forged));
  }
  // The only answer of machine 1.
  Mad answer() {
    const auto all = machines[1].manager.mail().take_leaving();
    REQUIRE(all.size() == 1);
    REQUIRE((all[0].source == address(1) && all[0].destination == address(0)));
    return *parse_mad(all[0].bytes);
  }
  bool silent() { return machines[1].manager.mail().take_leaving().empty(); }

  std::array<Machine, 2> machines;
  Weather weather;
  Random random;
  Nanos now = kStart;
  std::deque<Parcel> way;
  std::uint32_t caller = 0;
  std::uint32_t called = 0;
};

}  // namespace

TEST_CASE("programs on two machines connect and part, whatever the network does to messages") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Two two(seed, {0.2, 0.1, 0.1});
    two.connect();
    const std::size_t first = seed % 2;
    const std::uint32_t ids[] = {two.caller, two.called};
    auto& leaver = two.machines[first];
    const bool abruptly = seed % 3 == 0;
    if (abruptly) {
      two.destroy(first, ids[first]);
    } else {
      REQUIRE(leaver.manager.disconnect(two.now, leaver.id(ids[first])) == 0);
    }
    const Event told = two.event(1 - first);
    REQUIRE((told.kind == EventKind::disconnected && told.status == 0));
    auto& other = two.machines[1 - first];
    REQUIRE(other.manager.disconnect(two.now, other.id(ids[1 - first])) == 0);
    if (!abruptly) {
      const Event own = two.event(first);
      REQUIRE((own.kind == EventKind::disconnected && own.status == 0));
    }
    for (std::size_t i = 0; i < 2; ++i) {
      two.machines[i].manager.close_channel(two.now, two.machines[i].channel);
    }
    // Ids without a program go, too, when their peers need them no longer.
    REQUIRE(two.run([&] {
      return two.machines[0].manager.deadline().count == kNeverNanos.count &&
             two.machines[1].manager.deadline().count == kNeverNanos.count;
    }));
  }
}

TEST_CASE("what was sent again is counted, and what came") {
  Two two(1, {1, 0, 0});
  two.machines[1].listen(1);
  const std::uint32_t id = two.machines[0].routed(1);
  REQUIRE(two.machines[0].manager.connect(two.now, two.machines[0].id(id), {}) == 0);
  REQUIRE(two.run([&] { return two.told(0); }));
  const Event told = two.machines[0].event();
  REQUIRE((told.kind == EventKind::unreachable && told.status == -ETIMEDOUT));
  // The last one says that nobody waits any more.
  REQUIRE(two.counts(0).repeated == Connection::kMostRetries);
  REQUIRE(two.counts(0).sent == Connection::kMostRetries + 2);
  REQUIRE(two.counts(0).rejected == 1);
  REQUIRE(two.counts(1).received == 0);
}

TEST_CASE("the passive end waits and tries as the REQ says") {
  Two two;
  two.machines[1].listen(1);
  Mad req;
  const std::uint32_t caller = two.machines[0].routed(1);
  REQUIRE(two.machines[0].manager.connect(two.now, two.machines[0].id(caller), {}) == 0);
  req = *parse_mad(two.machines[0].manager.mail().take_leaving().at(0).bytes);
  req.local_response_timeout = 10;
  req.most_retries = 2;
  two.send(req);
  const std::uint32_t id = two.machines[1].event().id;
  two.machines[1].id(id).call_it(5);
  REQUIRE(two.machines[1].manager.accept(two.now, two.machines[1].id(id), Offer{}, 0) == 0);
  ConnectionManager& manager = two.machines[1].manager;
  REQUIRE(manager.deadline().count == two.now.count + (4096 << 10));
  std::size_t reps = 0;
  while (!manager.has_events(two.machines[1].channel)) {
    for (const Parcel& parcel : manager.mail().take_leaving()) {
      reps += parse_mad(parcel.bytes)->attribute == Attribute::rep ? 1 : 0;
    }
    manager.expire(manager.deadline());
  }
  REQUIRE(reps == 3);
  REQUIRE(two.machines[1].event().kind == EventKind::unreachable);
}

TEST_CASE("a repeated request is answered as before, by a program that has rejected it, too") {
  Two two;
  const bool datagrams = GENERATE(false, true);
  const PortSpace space = datagrams ? PortSpace::udp : PortSpace::tcp;
  const IdType type = datagrams ? IdType::ud : IdType::rc;
  const bool accepts = GENERATE(false, true);
  Machine& server = two.machines[1];
  server.listen(1, space, type);
  Machine& client = two.machines[0];
  CmId& caller = client.id(client.routed(1, space, type));
  REQUIRE(client.manager.connect(two.now, caller, {}) == 0);
  const Mad request = *parse_mad(client.manager.mail().take_leaving().at(0).bytes);
  two.send(request);
  const std::uint32_t id = server.event().id;
  server.id(id).call_it(5);
  if (accepts) {
    REQUIRE(server.manager.accept(two.now, server.id(id), Offer{}, 0) == 0);
  } else {
    REQUIRE(server.manager.reject(two.now, server.id(id), 28, {}) == 0);
  }
  const Mad answer = two.answer();
  two.send(request);
  REQUIRE(two.answer() == answer);
  REQUIRE_FALSE(server.manager.has_events(server.channel));
  REQUIRE(two.counts(1).repeated == 1);
  REQUIRE(two.counts(1).rejected == (accepts ? 0 : 2));
  // Another request with the number of that one is of a peer that began afresh.
  Mad other = request;
  ++other.transaction;
  two.send(other);
  REQUIRE(server.event().id != id);
}

TEST_CASE("a request is refused with the reason, and the program is not asked") {
  Two two;
  two.machines[1].listen(1);
  const std::uint32_t caller = two.machines[0].routed(1);
  REQUIRE(two.machines[0].manager.connect(two.now, two.machines[0].id(caller), {}) == 0);
  const Mad good = *parse_mad(two.machines[0].manager.mail().take_leaving().at(0).bytes);
  const auto reason_of = [&](const std::function<void(Mad&)>& change) {
    Mad request = good;
    change(request);
    two.send(request);
    const Mad rej = two.answer();
    REQUIRE((rej.attribute == Attribute::rej && rej.about == About::req));
    REQUIRE((rej.remote_id == good.local_id && rej.transaction == good.transaction));
    return rej.reason;
  };
  REQUIRE(reason_of([](Mad& m) { ++m.service_id; }) == reject_reason::invalid_service_id);
  REQUIRE(reason_of([](Mad& m) { m.service_id = ~0ULL; }) == reject_reason::invalid_service_id);
  // The header of IP addresses says who speaks to whom, and must not lie.
  REQUIRE(reason_of([](Mad& m) { m.private_data[19] ^= std::byte{1}; }) ==
          reject_reason::invalid_service_id);
  REQUIRE(reason_of([](Mad& m) { m.private_data[0] = std::byte{9}; }) ==
          reject_reason::invalid_service_id);
  REQUIRE(reason_of([](Mad& m) { m.service_type = 1; }) == reject_reason::invalid_service_type);
  REQUIRE_FALSE(two.told(1));
  REQUIRE(two.counts(1).rejected == 5);
}

TEST_CASE(
    "what is for nobody is counted, answered where the other end waits, and changes nothing") {
  Two two;
  two.connect();
  const Connection& connection = *two.machines[1].id(two.called).connection();
  two.machines[1].manager.mail().take_leaving();
  Mad mad;
  mad.transaction = 77;
  mad.local_id = 0x1111;
  mad.remote_id = 0x2222;
  const auto sent = [&](Attribute attribute) {
    mad.attribute = attribute;
    two.send(mad);
  };
  sent(Attribute::dreq);
  const Mad drep = two.answer();
  REQUIRE(
      (drep.attribute == Attribute::drep && drep.remote_id == 0x1111 && drep.local_id == 0x2222));
  sent(Attribute::rep);
  const Mad rej = two.answer();
  REQUIRE((rej.attribute == Attribute::rej && rej.about == About::rep));
  REQUIRE((rej.reason == reject_reason::invalid_communication_id && rej.transaction == 77));
  for (const Attribute attribute :
       {Attribute::mra, Attribute::rej, Attribute::rtu, Attribute::drep, Attribute::sidr_rep}) {
    sent(attribute);
    REQUIRE(two.silent());
  }
  REQUIRE(two.counts(1).unknown == 7);
  // The right number here, but not the peer's.
  mad.remote_id = connection.local_id();
  sent(Attribute::rej);
  sent(Attribute::dreq);
  two.answer();
  REQUIRE(two.counts(1).unknown == 9);
  // The right numbers, but from elsewhere.
  mad.local_id = connection.remote_id();
  two.machines[1].manager.arrive(two.now, {0, address(7), address(1), {}}, build_mad(mad));
  REQUIRE(two.counts(1).unknown == 10);
  REQUIRE_FALSE(two.told(1));
  REQUIRE(connection.state() == Connection::State::established);
}

TEST_CASE("what is no message of this class, or not for this address, is counted and dropped") {
  Two two;
  two.machines[1].listen(1);
  const std::uint32_t caller = two.machines[0].routed(1);
  REQUIRE(two.machines[0].manager.connect(two.now, two.machines[0].id(caller), {}) == 0);
  const Parcel good = two.machines[0].manager.mail().take_leaving().at(0);
  ConnectionManager& manager = two.machines[1].manager;
  std::uint64_t refused = 0;
  const auto refuses = [&](const Parcel& parcel, std::span<const std::byte> bytes) {
    manager.arrive(two.now, parcel, bytes);
    REQUIRE(two.counts(1).refused == ++refused);
    REQUIRE(two.silent());
    REQUIRE_FALSE(two.told(1));
  };
  refuses(good, std::span(good.bytes).first(255));
  refuses(good, {});
  for (const std::size_t place : {0U, 1U, 2U, 3U, 17U}) {
    MadBytes wrong = good.bytes;
    wrong[place] = std::byte{0x55};
    refuses(good, wrong);
  }
  Parcel elsewhere = good;
  elsewhere.destination = address(5);
  refuses(elsewhere, good.bytes);
  Parcel itself = good;
  itself.source = address(1);
  refuses(itself, good.bytes);
  manager.arrive(two.now, good, good.bytes);
  REQUIRE(two.machines[1].event().kind == EventKind::connect_request);
  REQUIRE(two.counts(1).received == refused + 1);
}

TEST_CASE("a MRA gives the other end time, as much as there is sense in") {
  Two two;
  two.machines[1].listen(1);
  const std::uint32_t caller = two.machines[0].routed(1);
  ConnectionManager& manager = two.machines[0].manager;
  REQUIRE(manager.connect(two.now, two.machines[0].id(caller), {}) == 0);
  const Mad request = *parse_mad(manager.mail().take_leaving().at(0).bytes);
  Mad mra;
  mra.attribute = Attribute::mra;
  mra.local_id = 9;
  mra.remote_id = request.local_id;
  mra.about = About::rep;  // it has sent none
  mra.service_timeout = 31;
  const std::int64_t before = manager.deadline().count;
  const Parcel parcel{0, address(1), address(0), {}};
  manager.arrive(two.now, parcel, build_mad(mra));
  REQUIRE(manager.deadline().count == before);
  mra.about = About::req;
  manager.arrive(two.now, parcel, build_mad(mra));
  REQUIRE(manager.deadline().count ==
          two.now.count + (std::int64_t{4096} << Connection::kLongestTimeout));
}

TEST_CASE("an id whose program is gone stays for its peer, and then goes") {
  Two two;
  two.connect();
  Machine& machine = two.machines[1];
  Mad rtu;
  rtu.attribute = Attribute::rtu;
  rtu.local_id = machine.id(two.called).connection()->remote_id();
  rtu.remote_id = machine.id(two.called).connection()->local_id();
  two.destroy(1, two.called);
  CmId* found = nullptr;
  REQUIRE(machine.manager.find(machine.channel, two.called, found) == ENOENT);
  REQUIRE(machine.manager.holdings_of(machine.channel).ids == 1);  // the listener
  two.send(rtu);
  REQUIRE(two.counts(1).unknown == 0);
  REQUIRE(two.event(0).kind == EventKind::disconnected);
  REQUIRE(two.machines[0].manager.disconnect(two.now, two.machines[0].id(two.caller)) == 0);
  REQUIRE(two.run([&] { return machine.manager.deadline().count == kNeverNanos.count; }));
  two.send(rtu);
  REQUIRE(two.counts(1).unknown == 1);
}

TEST_CASE("so many ids stay without a program, and no more") {
  Two two;
  Machine& machine = two.machines[1];
  machine.listen(1);
  for (std::size_t i = 0; i <= ConnectionManager::kMostLeft; ++i) {
    two.connect_again();
    Mad rtu;
    rtu.attribute = Attribute::rtu;
    rtu.local_id = machine.id(two.called).connection()->remote_id();
    rtu.remote_id = machine.id(two.called).connection()->local_id();
    two.destroy(1, two.called);
    machine.manager.mail().take_leaving();  // lost
    two.send(rtu);
    if (two.counts(1).unknown != (i < ConnectionManager::kMostLeft ? 0 : 1)) FAIL(i);
  }
}

}  // namespace paceline::service::cm::machines
