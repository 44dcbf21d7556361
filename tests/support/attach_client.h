// A program that speaks the attach protocol by hand: for tests of the service, and of what it does
// with programs that do not keep to it.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/attach/doorbell.h"
#include "dataplane/attach/message_socket.h"
#include "dataplane/attach/protocol.h"
#include "dataplane/attach/queues.h"
#include "dataplane/attach/shared_memory.h"

namespace paceline::test {

struct Answer {
  attach::Transfer transfer = attach::Transfer::failed;
  int error = 0;  // errno of a refusal
  attach::Message message;

  bool ok() const { return transfer == attach::Transfer::done && error == 0; }
  std::string complaint() const { return message.as<attach::Complaint>().text.data(); }
};

class AttachClient {
 public:
  explicit AttachClient(attach::Descriptor socket) : socket_(std::move(socket)) {}
  explicit AttachClient(const std::string& path) : socket_(attach::connect_socket(path)) {}

  bool connected() const { return static_cast<bool>(socket_); }
  int socket() const { return socket_.get(); }
  void close() { socket_.reset(); }

  Answer ask_bytes(attach::Operation operation, std::span<const std::byte> body,
                   std::span<const int> descriptors = {}) {
    Answer answer;
    attach::Header header;
    header.operation = operation;
    header.sequence = ++sequence_;
    answer.transfer = attach::send_message(socket_.get(), header, body, descriptors);
    if (answer.transfer != attach::Transfer::done) return answer;
    answer.transfer = attach::receive_message(socket_.get(), answer.message);
    answer.error = answer.message.header.error;
    return answer;
  }
  template <class Body>
  Answer ask(attach::Operation operation, const Body& body, std::span<const int> descriptors = {}) {
    return ask_bytes(operation, std::as_bytes(std::span(&body, 1)), descriptors);
  }
  Answer ask(attach::Operation operation) { return ask_bytes(operation, {}); }
  template <class Reply, class Body>
  Reply get(attach::Operation operation, const Body& body) {
    return ask(operation, body).message.template as<Reply>();
  }

  // hello and open_nic; false when refused.
  bool open(const std::string& nic) { return greet() && open_nic(nic); }
  bool greet() {
    attach::HelloRequest hello;
    std::strcpy(hello.program.data(), "attach_client");
    return ask(attach::Operation::hello, hello).ok();
  }
  bool open_nic(const std::string& nic) {
    attach::OpenRequest request;
    nic.copy(request.nic.data(), request.nic.size() - 1);
    Answer answer = ask(attach::Operation::open_nic, request);
    if (!answer.ok() || answer.message.descriptors.size() != 4) return false;
    info_ = answer.message.as<attach::OpenReply>().nic;
    auto& fds = answer.message.descriptors;
    wake_ = std::move(fds[2]);
    notices_ = std::move(fds[3]);
    return bells_.open(std::move(fds[0]), sizeof(attach::DoorbellPage), true) &&
           worker_.open(std::move(fds[1]), sizeof(attach::WorkerPage), false);
  }
  const attach::NicInfo& info() const { return info_; }

  void ring(std::uint32_t bell) {
    attach::ring(*reinterpret_cast<attach::DoorbellPage*>(bells_.data()), bell);
    const auto& page = *reinterpret_cast<const attach::WorkerPage*>(worker_.data());
    if (page.asleep.load(std::memory_order_seq_cst) == 0) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof(one));
  }
  std::span<std::byte> bells() { return bells_.bytes(); }
  int wake_descriptor() const { return wake_.get(); }
  int notices_descriptor() const { return notices_.get(); }
  int page_descriptor() const { return worker_.descriptor(); }

  // The next asynchronous event; event 0xFFFFFFFF when none comes within `millis`.
  attach::AsyncNotice notice(int millis = 5000) {
    attach::AsyncNotice out{0xFFFF'FFFF, 0};
    pollfd fd{notices_.get(), POLLIN, 0};
    if (::poll(&fd, 1, millis) != 1) return out;
    if (::read(notices_.get(), &out, sizeof(out)) != sizeof(out)) out.event = 0xFFFF'FFFF;
    return out;
  }

  std::uint32_t create_pd() {
    return ask(attach::Operation::create_pd).message.as<attach::HandleBody>().handle;
  }
  // All of it by copy.
  attach::RegisterReply register_region(void* at, std::size_t bytes, std::uint32_t pd,
                                        std::uint32_t access = 0xF, int* error = nullptr) {
    attach::RegisterRequest r;
    r.address = r.iova = reinterpret_cast<std::uint64_t>(at);
    r.length = bytes;
    r.access = access;
    r.pd = pd;
    r.extents = 1;
    attach::Extent extent;
    extent.length = bytes;
    attach::Message m;
    m.append(r);
    m.append(extent);
    const Answer answer = ask_bytes(attach::Operation::register_region, m.body);
    if (error != nullptr) *error = answer.error;
    return answer.message.as<attach::RegisterReply>();
  }

 private:
  attach::Descriptor socket_;
  attach::Descriptor wake_;
  attach::Descriptor notices_;
  attach::SharedMemory bells_;
  attach::SharedMemory worker_;
  attach::NicInfo info_{};
  std::uint32_t sequence_ = 0;
};

// A completion queue as a program sees it.
class ClientQueue {
 public:
  bool create(AttachClient& client, std::uint32_t entries, std::uint32_t channel = 0,
              std::uint64_t cookie = 0) {
    attach::CreateCqRequest r;
    r.entries = entries;
    r.channel = channel;
    r.cookie = cookie;
    return take(client.ask(attach::Operation::create_cq, r));
  }
  bool resize(AttachClient& client, std::uint32_t entries) {
    return take(client.ask(attach::Operation::resize_cq, attach::ResizeCqRequest{handle, entries}));
  }
  attach::CompletionQueueHeader& header() {
    return *reinterpret_cast<attach::CompletionQueueHeader*>(memory_.data());
  }
  bool poll(attach::CompletionEntry& out) {
    const std::uint32_t head = header().head.value.load(std::memory_order_relaxed);
    if (head == header().tail.value.load(std::memory_order_acquire)) return false;
    const auto* const entries = reinterpret_cast<attach::CompletionEntry*>(
        memory_.data() + sizeof(attach::CompletionQueueHeader));
    out = entries[head & (slots - 1)];
    header().head.value.store(head + 1, std::memory_order_release);
    return true;
  }
  // As poll, but waits; for tests that have given the service something to do.
  bool wait(attach::CompletionEntry& out, int millis = 10'000) {
    for (int i = 0; i < millis * 10; ++i) {
      if (poll(out)) return true;
      ::usleep(100);
    }
    return false;
  }

  std::span<std::byte> memory() { return memory_.bytes(); }
  int descriptor() const { return memory_.descriptor(); }

  std::uint32_t handle = 0;
  std::uint32_t slots = 0;

 private:
  bool take(Answer answer) {
    if (!answer.ok() || answer.message.descriptors.size() != 1) return false;
    const auto reply = answer.message.as<attach::CqReply>();
    attach::SharedMemory memory;
    const attach::CompletionQueueShape shape{reply.slots};
    if (!memory.open(std::move(answer.message.descriptors[0]), shape.bytes(), true)) return false;
    memory_ = std::move(memory);
    handle = reply.handle;
    slots = reply.slots;
    return true;
  }
  attach::SharedMemory memory_;
};

// A queue pair whose completions all come to `cq`, of a size that most tests need.
inline attach::CreateQpRequest pair_request(std::uint32_t pd, const ClientQueue& cq,
                                            attach::PairType type) {
  attach::CreateQpRequest r;
  r.pd = pd;
  r.send_cq = r.receive_cq = cq.handle;
  r.send_requests = r.receive_requests = 16;
  r.send_segments = r.receive_segments = 4;
  r.inline_bytes = 128;
  r.type = type;
  return r;
}

// A queue pair as a program sees it.
class ClientPair {
 public:
  int create(AttachClient& client, const attach::CreateQpRequest& request) {
    Answer answer = client.ask(attach::Operation::create_qp, request);
    if (answer.transfer != attach::Transfer::done) return EIO;
    if (answer.error != 0) return answer.error;
    reply = answer.message.as<attach::CreateQpReply>();
    client_ = &client;
    send_ = {reply.send_slots, reply.send_stride};
    receive_ = {reply.receive_slots, reply.receive_stride};
    const std::size_t bytes = send_.bytes() + (reply.receive_offset == 0 ? 0 : receive_.bytes());
    return memory_.open(std::move(answer.message.descriptors.at(0)), bytes, true) ? 0 : EIO;
  }

  void post_send(attach::SendSlot slot, std::span<const attach::SharedSegment> segments,
                 std::span<const std::byte> inline_bytes = {}) {
    std::byte* const at = memory_.data() + send_.offset(send_tail_);
    slot.segments = static_cast<std::uint8_t>(segments.size());
    if (!inline_bytes.empty()) {
      slot.flags |= attach::send_flag::inlined;
      slot.inline_bytes = static_cast<std::uint32_t>(inline_bytes.size());
      std::memcpy(at + sizeof(slot), inline_bytes.data(), inline_bytes.size());
    } else if (!segments.empty()) {
      std::memcpy(at + sizeof(slot), segments.data(), segments.size_bytes());
    }
    std::memcpy(at, &slot, sizeof(slot));
    set_send_tail(send_tail_ + 1);
  }
  void post_receive(std::uint64_t wr_id, std::span<const attach::SharedSegment> segments) {
    std::byte* const at = memory_.data() + reply.receive_offset + receive_.offset(receive_tail_);
    const attach::ReceiveSlot slot{wr_id, static_cast<std::uint32_t>(segments.size()), 0};
    std::memcpy(at, &slot, sizeof(slot));
    if (!segments.empty()) {
      std::memcpy(at + sizeof(slot), segments.data(), segments.size_bytes());
    }
    ++receive_tail_;
    header(reply.receive_offset).tail.value.store(receive_tail_, std::memory_order_release);
    client_->ring(reply.doorbell);
  }
  // Also to what makes no sense.
  void set_send_tail(std::uint32_t tail) {
    send_tail_ = tail;
    header(0).tail.value.store(tail, std::memory_order_release);
    client_->ring(reply.doorbell);
  }
  attach::WorkQueueHeader& header(std::size_t offset) {
    return *reinterpret_cast<attach::WorkQueueHeader*>(memory_.data() + offset);
  }
  std::span<std::byte> memory() { return memory_.bytes(); }

  attach::CreateQpReply reply{};

 private:
  AttachClient* client_ = nullptr;
  attach::SharedMemory memory_;
  attach::WorkQueueShape send_{};
  attach::WorkQueueShape receive_{};
  std::uint32_t send_tail_ = 0;
  std::uint32_t receive_tail_ = 0;
};

}  // namespace paceline::test
