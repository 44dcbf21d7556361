#include "tests/verbs/hostile/good_tenant.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace paceline::test {

namespace {

constexpr std::byte kGuardByte{0xA5};
constexpr std::size_t kMapped = GoodTenant::kBytes + 2 * GoodTenant::kGuard;
// Far more than an operation takes on a machine that does something else as well.
constexpr int kPatienceMillis = 60'000;

std::byte byte_of(std::uint64_t seed, std::size_t i) {
  return static_cast<std::byte>(mix64(seed + i / 8) >> (i % 8 * 8));
}

}  // namespace

GoodTenant::GoodTenant(const std::string& socket, std::uint64_t seed)
    : random_(seed, 1), sides_{Side(socket), Side(socket)} {}

GoodTenant::~GoodTenant() {
  for (Side& side : sides_) {
    if (side.mapped != nullptr) ::munmap(side.mapped, kMapped);
  }
}

bool GoodTenant::fail(std::string why) {
  wrong_ = std::move(why);
  return false;
}

bool GoodTenant::register_by_copy(Side& side) {
  void* const at =
      ::mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return false;
  side.mapped = static_cast<std::byte*>(at);
  side.key = side.end.client.register_region(side.data().data(), kBytes, side.end.pd).local_key;
  return side.key != 0;
}

bool GoodTenant::register_shared(Side& side) {
  attach::Descriptor memory(::memfd_create("good-tenant", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory || ::ftruncate(memory.get(), kMapped) != 0 ||
      ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    return false;
  }
  void* const at = ::mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (at == MAP_FAILED) return false;
  side.mapped = static_cast<std::byte*>(at);
  std::fill_n(side.mapped, kMapped, kGuardByte);  // what was never written is not registered
  const int descriptors[] = {memory.get()};
  AttachClient& client = side.end.client;
  if (!client.ask(attach::Operation::share_memory, attach::ShareMemoryRequest{}, descriptors)
           .ok()) {
    return false;
  }
  attach::RegisterRequest r;
  r.address = r.iova = reinterpret_cast<std::uint64_t>(side.data().data());
  r.length = kBytes;
  r.access = 0xF;
  r.pd = side.end.pd;
  r.extents = 1;
  attach::Extent extent;
  extent.length = kBytes;
  extent.offset = kGuard;
  extent.kind = attach::ExtentKind::shared;
  attach::Message m;
  m.append(r);
  m.append(extent);
  const Answer answer = client.ask_bytes(attach::Operation::register_region, m.body);
  side.key = answer.message.as<attach::RegisterReply>().local_key;
  return answer.ok() && side.key != 0;
}

bool GoodTenant::start() {
  if (!sides_[0].end.make("h0") || !sides_[1].end.make("h1")) return fail("it is not let in");
  if (!register_by_copy(sides_[0]) || !register_shared(sides_[1])) {
    return fail("its memory is not registered");
  }
  for (const Side& side : sides_) std::fill_n(side.mapped, kMapped, kGuardByte);
  const auto psn = static_cast<std::uint32_t>(random_.next() & 0xFF'FFFF);
  return connect(sides_[0].end, sides_[1].end, psn) || fail("its queue pairs are not connected");
}

KnownToAll GoodTenant::known() const {
  KnownToAll out;
  for (std::size_t i = 0; i < 2; ++i) {
    out.qp_numbers[i] = sides_[i].end.pair.reply.qp_number;
    out.keys[i] = sides_[i].key;
    out.addresses[i] = reinterpret_cast<std::uint64_t>(sides_[i].data().data());
  }
  return out;
}

bool GoodTenant::guards_hold(const Side& side) {
  const auto holds = [](const std::byte* from) {
    return std::all_of(from, from + kGuard, [](std::byte b) { return b == kGuardByte; });
  };
  return (holds(side.mapped) && holds(side.mapped + kGuard + kBytes)) ||
         fail("a byte outside its region has changed");
}

bool GoodTenant::complete(Side& side, attach::EntryOpcode opcode, std::uint64_t wr_id) {
  attach::CompletionEntry entry;
  if (!side.end.cq.wait(entry, kPatienceMillis)) return fail("an operation does not complete");
  if (entry.status != attach::EntryStatus::success) {
    return fail("an operation failed, status " + std::to_string(static_cast<int>(entry.status)));
  }
  return (entry.opcode == opcode && entry.wr_id == wr_id) || fail("a completion of something else");
}

bool GoodTenant::round() {
  Side& here = sides_[random_.next() % 2];
  Side& there = &here == &sides_[0] ? sides_[1] : sides_[0];
  const std::size_t length = 1 + random_.next() % 8192;
  const std::size_t from = random_.next() % (kBytes - length);
  const std::size_t to = random_.next() % (kBytes - length);
  const std::uint64_t pattern = random_.next();
  const std::uint64_t kind = random_.next() % 3;
  const std::uint64_t id = ++rounds_;
  const bool reads = kind == 2;
  const std::span<std::byte> source = (reads ? there : here).data().subspan(from, length);
  const std::span<std::byte> sink = (reads ? here : there).data().subspan(to, length);
  for (std::size_t i = 0; i < length; ++i) source[i] = byte_of(pattern, i);
  std::fill(sink.begin(), sink.end(), ~byte_of(pattern, 0));

  const auto piece = [&](const Side& side, std::span<std::byte> bytes) {
    return attach::SharedSegment{reinterpret_cast<std::uint64_t>(bytes.data()),
                                 static_cast<std::uint32_t>(length), side.key};
  };
  attach::SendSlot slot;
  slot.wr_id = id;
  slot.flags = attach::send_flag::signaled;
  auto opcode = attach::EntryOpcode::write;
  if (kind == 0) {
    const attach::SharedSegment room[] = {piece(there, sink)};
    there.end.pair.post_receive(id, room);
    slot.opcode = attach::SendOpcode::send;
    opcode = attach::EntryOpcode::send;
  } else {
    const std::span<std::byte> remote = reads ? source : sink;
    slot.opcode = reads ? attach::SendOpcode::read : attach::SendOpcode::write;
    if (reads) opcode = attach::EntryOpcode::read;
    slot.remote_address = reinterpret_cast<std::uint64_t>(remote.data());
    slot.remote_key = there.key;
  }
  const attach::SharedSegment local[] = {piece(here, reads ? sink : source)};
  here.end.pair.post_send(slot, local);
  if (!complete(here, opcode, id)) return false;
  if (kind == 0 && !complete(there, attach::EntryOpcode::receive, id)) return false;
  for (std::size_t i = 0; i < length; ++i) {
    if (sink[i] != byte_of(pattern, i)) return fail("a wrong byte has arrived");
  }
  return guards_hold(here) && guards_hold(there);
}

}  // namespace paceline::test
