#include "tests/verbs/hostile/hostile_session.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace paceline::test {

namespace {

constexpr std::size_t kSharedBytes = 512U << 10U;

}  // namespace

bool HostileSession::make() {
  for (RawEnd& end : ends_) {
    const timeval patience{60, 0};
    if (!end.client.connected()) return false;
    ::setsockopt(end.client.socket(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  const attach::PairType types[] = {attach::PairType::rc, attach::PairType::rc,
                                    attach::PairType::uc, attach::PairType::ud};
  const attach::PairType type = types[w_.odd.below(4)];
  if (!ends_[0].make("h0", type) || !ends_[1].make("h1", type)) return false;
  if (!register_memory(ends_[0]) || !register_memory(ends_[1])) return false;

  attach::CreateSrqRequest srq;
  srq.pd = ends_[0].pd;
  srq.requests = 16;
  srq.segments = 2;
  Answer answer = ends_[0].client.ask(attach::Operation::create_srq, srq);
  if (answer.ok()) {
    const auto reply = answer.message.as<attach::SrqReply>();
    const attach::WorkQueueShape shape{reply.slots, reply.stride};
    shared_receives_ = std::make_unique<attach::SharedMemory>();
    if (!shared_receives_->open(std::move(answer.message.descriptors[0]), shape.bytes(), true)) {
      return false;
    }
    shared_bell_ = reply.doorbell;
    w_.odd.learn(reply.handle);
  }
  const auto psn = static_cast<std::uint32_t>(w_.odd.bits() & 0xFF'FFFF);
  if (w_.odd.one_in(3)) {
    // To the neighbour's queue pairs, from where their real peers are.
    for (std::size_t i = 0; i < 2; ++i) {
      const std::uint16_t id = ends_[1 - i].client.info().local_id;
      if (!ends_[i].connect(w_.neighbour.qp_numbers[1 - i], id, psn)) break;
    }
  } else {
    connect(ends_[0], ends_[1], psn);  // RC and UC; what UD refuses of it does not matter
  }
  for (const RawEnd& end : ends_) {
    w_.odd.learn(end.pair.reply.qp_number);
    w_.odd.learn(end.pair.reply.handle);
    w_.odd.learn(end.cq.handle);
    w_.odd.learn(end.pd);
  }
  return true;
}

bool HostileSession::register_memory(RawEnd& end) {
  int error = 0;
  void* const at = reinterpret_cast<void*>(w_.arena.data() + 65536);
  const auto copied = end.client.register_region(at, 256U << 10U, end.pd, 0xF, &error);
  if (error != 0) return false;
  keys_.push_back(copied.local_key);
  w_.odd.learn(copied.local_key);
  w_.odd.learn(copied.handle);

  memory_.reset(::memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory_ || ::ftruncate(memory_.get(), kSharedBytes) != 0) return false;
  ::fcntl(memory_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL);
  const std::vector<std::byte> pages(kSharedBytes);
  if (::pwrite(memory_.get(), pages.data(), pages.size(), 0) < 0) return false;
  const int descriptors[] = {memory_.get()};
  const Answer shared =
      end.client.ask(attach::Operation::share_memory, attach::ShareMemoryRequest{}, descriptors);
  if (!shared.ok()) return false;
  attach::RegisterRequest r;
  r.address = r.iova = w_.arena.data();
  r.length = kSharedBytes / 2;
  r.access = 0xF;
  r.pd = end.pd;
  r.extents = 2;
  attach::Message m;
  m.append(r);
  m.append(attach::Extent{kSharedBytes / 4, 0, attach::ExtentKind::shared, 0});
  m.append(attach::Extent{kSharedBytes / 4, 0, attach::ExtentKind::by_copy, 0});
  const Answer mixed = end.client.ask_bytes(attach::Operation::register_region, m.body);
  if (!mixed.ok()) return false;
  keys_.push_back(mixed.message.as<attach::RegisterReply>().local_key);
  return true;
}

bool HostileSession::mutate() {
  ++w_.mutations;
  RawEnd& end = one();
  switch (w_.odd.below(16)) {
    case 0:
    case 1:
      spoil_rings(end);
      return true;
    case 2:
      spoil_indices(end);
      return true;
    case 3:
      spoil_waiting(end);
      return true;
    case 4:
      pull_memory();
      return true;
    case 5:
    case 6:
    case 7:
      return ask_lies(end);
    default:
      post_lies(end);
      return true;
  }
}

// Random bytes anywhere in what is shared, and a ring of the bell.
void HostileSession::spoil_rings(RawEnd& end) {
  std::span<std::byte> target;
  switch (w_.odd.below(4)) {
    case 0:
      target = end.cq.memory();
      break;
    case 1:
      target = end.client.bells();
      break;
    case 2:
      if (shared_receives_ != nullptr) target = shared_receives_->bytes();
      break;
    default:
      target = end.pair.memory();
  }
  if (target.empty()) return;
  const std::size_t bytes =
      std::min<std::size_t>(target.size(), std::size_t{1} << w_.odd.below(11));
  w_.odd.scribble(target.subspan(w_.odd.below(target.size() - bytes + 1), bytes));
  end.client.ring(w_.odd.one_in(4) ? static_cast<std::uint32_t>(w_.odd.below(attach::kDoorbells))
                                   : end.pair.reply.doorbell);
}

void HostileSession::spoil_indices(RawEnd& end) {
  const auto value = static_cast<std::uint32_t>(w_.odd.any());
  switch (w_.odd.below(7)) {
    case 0:
      end.pair.set_send_tail(value);
      break;
    case 1:
      end.pair.header(end.pair.reply.receive_offset).tail.value.store(value);
      break;
    case 2:
      end.pair.header(0).taken.value.store(value);
      break;
    case 3:
      end.cq.header().head.value.store(value);
      break;
    case 4:
      end.cq.header().tail.value.store(value);
      break;
    case 5:
      end.cq.header().wanted.value.store(value);
      break;
    default:
      if (shared_receives_ != nullptr) {
        reinterpret_cast<attach::WorkQueueHeader*>(shared_receives_->data())
            ->tail.value.store(value);
        ends_[0].client.ring(shared_bell_);
      }
  }
  end.client.ring(end.pair.reply.doorbell);
}

// Counters that are full, pipes that nobody reads, flags of descriptors that both have.
void HostileSession::spoil_waiting(RawEnd& end) {
  const int wake = end.client.wake_descriptor();
  const int notices = end.client.notices_descriptor();
  const std::uint64_t full = ~std::uint64_t{0} - 1;
  [[maybe_unused]] ssize_t n = 0;
  switch (w_.odd.below(6)) {
    case 0:
      n = ::write(wake, &full, sizeof(full));  // non-blocking
      break;
    case 1: {
      std::uint64_t count = 0;
      n = ::read(wake, &count, sizeof(count));
      break;
    }
    case 2:
      ::fcntl(notices, F_SETFL, w_.odd.one_in(2) ? O_NONBLOCK : 0);
      break;
    case 3:
      ::fcntl(notices, F_SETPIPE_SZ, 4096);
      break;
    case 4: {
      // The page of the worker is the service's alone.
      void* const at = ::mmap(nullptr, Arena::kPage, PROT_READ | PROT_WRITE, MAP_SHARED,
                              end.client.page_descriptor(), 0);
      if (at != MAP_FAILED) w_.wrong = "the page of the worker can be written";
      break;
    }
    default:
      n = ::ftruncate(end.cq.descriptor(), 0);
      if (n == 0) w_.wrong = "the memory of a completion queue can shrink";
  }
}

// A request in a queue that is nearly right.
void HostileSession::post_lies(RawEnd& end) {
  const auto segment = [&] {
    attach::SharedSegment s;
    s.address = w_.odd.one_in(4) ? w_.odd.any() : w_.arena.data() + w_.odd.below(Arena::kBytes);
    s.length = w_.odd.one_in(3) ? static_cast<std::uint32_t>(w_.odd.any())
                                : static_cast<std::uint32_t>(w_.odd.below(9000));
    s.key = w_.odd.one_in(4) ? static_cast<std::uint32_t>(w_.odd.any())
                             : keys_[w_.odd.below(keys_.size())];
    return s;
  };
  const attach::SharedSegment list[] = {segment(), segment()};
  const auto segments = std::span(list).first(w_.odd.below(3));
  if (w_.odd.one_in(3)) {
    end.pair.post_receive(w_.odd.bits(), segments);
    return;
  }
  attach::SendSlot slot;
  slot.wr_id = w_.odd.bits();
  slot.opcode = static_cast<attach::SendOpcode>(w_.odd.below(w_.odd.one_in(8) ? 256 : 9));
  slot.flags = static_cast<std::uint8_t>(w_.odd.below(w_.odd.one_in(8) ? 256 : 8));
  slot.immediate = static_cast<std::uint32_t>(w_.odd.any());
  slot.compare_add = w_.odd.any();
  slot.swap = w_.odd.any();
  slot.address_handle = static_cast<std::uint32_t>(w_.odd.any());
  slot.target_qp = w_.odd.one_in(2) ? w_.neighbour.qp_numbers[w_.odd.below(2)]
                                    : static_cast<std::uint32_t>(w_.odd.any());
  slot.target_qkey = static_cast<std::uint32_t>(w_.odd.any());
  switch (w_.odd.below(3)) {
    case 0:  // the neighbour's memory, whose key is known to all
      slot.remote_key = w_.neighbour.keys[w_.odd.below(2)];
      slot.remote_address = w_.neighbour.addresses[w_.odd.below(2)] + w_.odd.below(4096);
      break;
    case 1:
      slot.remote_key = static_cast<std::uint32_t>(w_.odd.any());
      slot.remote_address = w_.odd.any();
      break;
    default:
      slot.remote_key = keys_[w_.odd.below(keys_.size())];
      slot.remote_address = w_.arena.data() + w_.odd.below(Arena::kBytes);
  }
  end.pair.post_send(slot, segments);
  attach::CompletionEntry entry;
  if (w_.odd.one_in(2)) end.cq.poll(entry);
}

// Memory that is registered and no longer there.
void HostileSession::pull_memory() {
  if (w_.odd.one_in(2)) {
    w_.arena.flip(w_.odd);
    return;
  }
  const auto at = static_cast<off_t>(w_.odd.below(kSharedBytes));
  ::fallocate(memory_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at,
              static_cast<off_t>(1 + w_.odd.below(kSharedBytes)));
}

}  // namespace paceline::test
