#include "tests/unit/verbs/fake_service.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

namespace paceline::verbs_test {

using attach::Message;
using attach::Operation;

namespace {

void require(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

template <class T>
void write_whole(int fd, const T& value) {
  require(::write(fd, &value, sizeof(value)) == sizeof(value), "pipe");
}

std::pair<attach::Descriptor, attach::Descriptor> make_pipe() {
  int ends[2];
  require(::pipe2(ends, O_CLOEXEC) == 0, "pipe2");
  return {attach::Descriptor(ends[0]), attach::Descriptor(ends[1])};
}

}  // namespace

attach::NicInfo fake_nic(const char* name, std::uint16_t local_id) {
  attach::NicInfo nic;
  std::strncpy(nic.name.data(), name, nic.name.size() - 1);
  nic.guid = 0x1122334455667788 + local_id;
  nic.rate_mbps = 25'000;
  for (std::size_t i = 0; i < 2; ++i) {
    nic.gids[i][10] = nic.gids[i][11] = std::byte{0xff};
    nic.gids[i][15] = std::byte(local_id);
    nic.gids[i][0] = std::byte(i);
    nic.gid_kinds[i] = i == 0 ? attach::GidKind::roce_v2_ipv4 : attach::GidKind::roce_v2_ipv6;
  }
  nic.mtu = 1024;
  nic.local_id = local_id;
  nic.up = 1;
  nic.limits = {64, 64, 8, 64, 8, 64, 1024, 4, 128, 4096, 16, 0, 1ULL << 30U, 1ULL << 32U};
  nic.clock_khz = 1'000'000;
  return nic;
}

FakeService::FakeService() {
  path_ = "@paceline-verbs-test-" + std::to_string(::getpid());
  listener_ = attach::listen_socket(path_, 0600);
  stop_ = attach::Descriptor(::eventfd(0, EFD_CLOEXEC));
  require(listener_ && stop_, "socket");
  ::setenv("PACELINE_SOCKET", path_.c_str(), 1);
  ::unsetenv("PACELINE_NIC");
  require(bells_.make("bells", sizeof(attach::DoorbellPage)) &&
              worker_.make("worker", sizeof(attach::WorkerPage), attach::SharedWrite::maker_only),
          "memfd");
  new (bells_.data()) attach::DoorbellPage;
  new (worker_.data()) attach::WorkerPage;
  wake_ = attach::Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  thread_ = std::thread([this] { serve(); });
}

FakeService::~FakeService() { die(); }

void FakeService::die() {
  if (!thread_.joinable()) return;
  write_whole(stop_.get(), std::uint64_t{1});
  thread_.join();
  listener_.reset();
  sockets_.clear();
  channels_.clear();
  notices_.reset();
}

void FakeService::refuse(Operation operation, int error) {
  const std::lock_guard hold(mutex_);
  refusals_[operation] = error;
}

std::size_t FakeService::requests(Operation operation) {
  const std::lock_guard hold(mutex_);
  return counts_[operation];
}

Message FakeService::last(Operation operation) {
  const std::lock_guard hold(mutex_);
  Message message;
  message.body = bodies_[operation];
  return message;
}

std::uint64_t FakeService::wakes() {
  std::uint64_t count = 0;
  return ::read(wake_.get(), &count, sizeof(count)) == sizeof(count) ? count : 0;
}

void FakeService::serve() {
  for (;;) {
    std::vector<pollfd> entries{{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const auto& s : sockets_) entries.push_back({s.get(), POLLIN, 0});
    if (::poll(entries.data(), entries.size(), -1) < 0) continue;
    if (entries[0].revents != 0) return;
    for (std::size_t i = 2; i < entries.size(); ++i) {
      if (entries[i].revents != 0 && !answer(entries[i].fd)) sockets_[i - 2].reset();
    }
    std::erase_if(sockets_, [](const attach::Descriptor& s) { return !s; });
    if (entries[1].revents != 0) {
      sockets_.emplace_back(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    }
  }
}

bool FakeService::answer(int socket) {
  Message request;
  if (attach::receive_message(socket, request) != attach::Transfer::done) return false;
  Message reply;
  std::vector<int> descriptors;
  const std::lock_guard hold(mutex_);
  const Operation operation = request.header.operation;
  ++counts_[operation];
  bodies_[operation] = request.body;
  reply.header = request.header;
  const auto refusal = refusals_.find(operation);
  reply.header.error = refusal != refusals_.end() ? refusal->second : 0;
  if (reply.header.error == 0) reply.header.error = act(request, reply, descriptors);
  const auto sent = attach::send_message(socket, reply.header, reply.body, descriptors);
  given_.clear();
  return sent == attach::Transfer::done;
}

int FakeService::act(const Message& request, Message& reply, std::vector<int>& descriptors) {
  const std::uint32_t handle = request.as<attach::HandleBody>().handle;
  switch (request.header.operation) {
    case Operation::hello:
      reply.append(attach::HelloReply{});
      return 0;
    case Operation::list_nics:
      reply.append(attach::NicList{2, 0});
      reply.append(fake_nic("h0", 1));
      reply.append(fake_nic("h1", 2));
      return 0;
    case Operation::query_port:
      reply.append(fake_nic("h0", 1));
      return 0;
    case Operation::open_nic: {
      reply.append(attach::OpenReply{fake_nic("h0", 1), 1, 0});
      auto [reading, writing] = make_pipe();
      notices_ = std::move(writing);
      descriptors = {bells_.descriptor(), worker_.descriptor(), wake_.get(), reading.get()};
      given_.push_back(std::move(reading));
      return 0;
    }
    case Operation::create_channel: {
      auto [reading, writing] = make_pipe();
      reply.append(attach::HandleBody{next_handle_, 0});
      channels_[next_handle_++] = std::move(writing);
      descriptors = {reading.get()};
      given_.push_back(std::move(reading));
      return 0;
    }
    case Operation::create_cq:
    case Operation::resize_cq: {
      const bool made = request.header.operation == Operation::create_cq;
      const auto r = request.as<attach::CreateCqRequest>();
      const std::uint32_t entries =
          made ? r.entries : request.as<attach::ResizeCqRequest>().entries;
      auto queue = std::make_unique<FakeQueue>();
      queue->slots = attach::power_of_two_from(entries);
      const attach::CompletionQueueShape shape{queue->slots};
      require(queue->memory.make("cq", shape.bytes()), "memfd");
      new (queue->memory.data()) attach::CompletionQueueHeader;
      const std::uint32_t at = made ? next_handle_++ : handle;
      if (made) {
        queue->channel = r.channel;
        queue->cookie = r.cookie;
      } else {
        FakeQueue& old = *queues_.at(handle);
        queue->channel = old.channel;
        queue->cookie = old.cookie;
        auto* const from = reinterpret_cast<attach::CompletionEntry*>(
            old.memory.data() + sizeof(attach::CompletionQueueHeader));
        auto* const to = reinterpret_cast<attach::CompletionEntry*>(
            queue->memory.data() + sizeof(attach::CompletionQueueHeader));
        const std::uint32_t tail = old.header().tail.value.load();
        for (std::uint32_t i = old.header().head.value.load(); i != tail; ++i) {
          to[i & (queue->slots - 1)] = from[i & (old.slots - 1)];
        }
        queue->header().tail.value.store(tail);
        queue->header().wanted.value.store(old.header().wanted.value.load());
      }
      descriptors = {queue->memory.descriptor()};
      reply.append(attach::CqReply{at, queue->slots});
      queues_[at] = std::move(queue);
      return 0;
    }
    case Operation::create_srq: {
      const auto r = request.as<attach::CreateSrqRequest>();
      const auto shape = attach::receive_queue_shape(r.requests, r.segments);
      auto memory = std::make_unique<attach::SharedMemory>();
      require(memory->make("srq", shape.bytes()), "memfd");
      new (memory->data()) attach::WorkQueueHeader;
      descriptors = {memory->descriptor()};
      reply.append(attach::SrqReply{next_handle_, next_bell_++, shape.slots, shape.stride,
                                    r.requests, r.segments, 0, 77});
      srqs_[next_handle_++] = std::move(memory);
      return 0;
    }
    case Operation::create_qp: {
      const auto r = request.as<attach::CreateQpRequest>();
      auto pair = std::make_unique<FakePair>();
      pair->number = 0x100 + next_handle_;
      pair->send = attach::send_queue_shape(r.send_requests, r.send_segments, r.inline_bytes);
      pair->receive = attach::receive_queue_shape(r.receive_requests, r.receive_segments);
      pair->receive_offset = static_cast<std::uint32_t>(pair->send.bytes());
      require(pair->memory.make("qp", pair->send.bytes() + pair->receive.bytes()), "memfd");
      new (pair->memory.data()) attach::WorkQueueHeader;
      new (pair->memory.data() + pair->receive_offset) attach::WorkQueueHeader;
      pair->doorbell = next_bell_++;
      attach::CreateQpReply made;
      made.handle = next_handle_;
      made.qp_number = pair->number;
      made.doorbell = pair->doorbell;
      made.send_slots = pair->send.slots;
      made.send_stride = pair->send.stride;
      made.receive_slots = pair->receive.slots;
      made.receive_stride = pair->receive.stride;
      made.receive_offset = r.srq != 0 ? 0 : pair->receive_offset;
      made.send_requests = r.send_requests;
      made.receive_requests = r.receive_requests;
      made.send_segments = r.send_segments;
      made.receive_segments = r.receive_segments;
      made.inline_bytes = r.inline_bytes;
      descriptors = {pair->memory.descriptor()};
      reply.append(made);
      pairs_[next_handle_++] = std::move(pair);
      return 0;
    }
    case Operation::modify_qp: {
      const auto values = request.as<attach::QpValues>();
      pairs_.at(values.handle)->values = values;
      return 0;
    }
    case Operation::query_qp:
      reply.append(pairs_.at(handle)->values);
      return 0;
    case Operation::register_region:
      reply.append(
          attach::RegisterReply{next_handle_, 0xabc00 + next_handle_, 0xdef00 + next_handle_, 0});
      ++next_handle_;
      return 0;
    case Operation::reregister_region: {
      const auto r = request.as<attach::RegisterRequest>();
      reply.append(attach::RegisterReply{r.handle, 0x111, 0x222, 0});
      return 0;
    }
    case Operation::create_pd:
    case Operation::create_ah:
      reply.append(attach::HandleBody{next_handle_++, 0});
      return 0;
    default:
      return 0;
  }
}

void FakeService::complete(std::uint32_t handle, const attach::CompletionEntry& entry) {
  const std::lock_guard hold(mutex_);
  FakeQueue& queue = *queues_.at(handle);
  attach::CompletionQueueHeader& header = queue.header();
  auto* const entries = reinterpret_cast<attach::CompletionEntry*>(
      queue.memory.data() + sizeof(attach::CompletionQueueHeader));
  const std::uint32_t tail = header.tail.value.load();
  entries[tail & (queue.slots - 1)] = entry;
  header.tail.value.store(tail + 1, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::uint32_t wanted = header.wanted.value.exchange(0);
  const bool asks = (entry.flags & attach::entry_flag::solicited) != 0;
  if ((wanted & attach::completion_wanted::event) != 0 ||
      ((wanted & attach::completion_wanted::solicited) != 0 && asks)) {
    write_whole(channels_.at(queue.channel).get(), attach::ChannelEvent{queue.cookie});
  } else if ((wanted & attach::completion_wanted::solicited) != 0) {
    header.wanted.value.fetch_or(attach::completion_wanted::solicited);
  }
  if ((wanted & attach::completion_wanted::sleeper) != 0) {
    ::syscall(SYS_futex, &header.tail.value, FUTEX_WAKE, 1 << 30, nullptr, nullptr, 0);
  }
}

void FakeService::notice(std::uint32_t event, std::uint32_t handle) {
  write_whole(notices_.get(), attach::AsyncNotice{event, handle});
}

}  // namespace paceline::verbs_test
