#include "dataplane/service/adapters/management_pair.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace paceline::service {

namespace {

// In RTS. 0: there are no more queue pairs.
std::uint32_t open_pair(Picos now, transport::Engine& engine, const transport::QpConfig& config) {
  using namespace transport;
  const std::uint32_t number = engine.create_qp(config);
  if (number == 0) return 0;
  QpAttributes a;
  a.qkey = kManagementQkey;
  for (const QpState to : {QpState::init, QpState::rtr, QpState::rts}) {
    a.state = to;
    const std::uint32_t needed =
        transition_rule(QpType::ud, engine.view().state_of(number), to).required;
    [[maybe_unused]] const ModifyResult result =
        engine.modify_qp(now, number, a, needed | qp_attribute::state);
    assert(result.ok());
  }
  engine.serve_management(number);
  return number;
}

}  // namespace

ManagementPair::ManagementPair(Picos now, transport::Engine& engine, std::uint32_t pd, Bell bell)
    : engine_(engine),
      pd_(pd),
      bell_(std::move(bell)),
      now_(now),
      memory_(kReceives * kSlotBytes),
      key_(engine.regions().add_plain(reinterpret_cast<std::uint64_t>(memory_.data()), memory_,
                                      transport::access::local_write, pd)) {
  transport::QpConfig config;
  config.type = transport::QpType::ud;
  config.pd = pd_;
  config.access = 0;
  config.max_inline = kDatagramBytes;
  config.send_cq = &sent_;
  config.receive_cq = &received_;
  config.receive_queue = &receives_;
  number_ = open_pair(now, engine_, config);
  for (std::uint64_t i = 0; i < kReceives; ++i) post(now, i);
  handles_.reserve(kMostHandles);
}

ManagementPair::~ManagementPair() {
  engine_.destroy_qp(now_, number_);
  engine_.regions().remove(key_);
}

void ManagementPair::post(Picos now, std::uint64_t index) {
  transport::ReceiveRequest request;
  request.wr_id = index;
  request.address = reinterpret_cast<std::uint64_t>(slot(index));
  request.length = kSlotBytes;
  request.local_key = key_;
  engine_.post_receive(now, number_, request);
}

bool ManagementPair::collect(Picos now) {
  now_ = now;
  if (received_.empty()) return false;
  std::array<transport::Completion, 16> batch;
  bool rung = false;
  std::size_t count = 0;
  do {
    count = received_.poll(batch);
    for (const transport::Completion& one : std::span(batch).first(count)) {
      if (one.status != transport::CompletionStatus::success) continue;
      rung |= pass_on(one);
      post(now, one.wr_id);
    }
  } while (count == batch.size());
  if (rung) {
    const std::uint64_t one = 1;
    // It does not fail: the counter never reaches its maximum of 2^64 - 2.
    [[maybe_unused]] const ssize_t written = ::write(bell_->get(), &one, sizeof one);
  }
  return true;
}

// Only a service or a kernel sends as queue pair 1: a program on another machine that knows the
// Q_Key does not pass for its connection manager.
bool ManagementPair::pass_on(const transport::Completion& completion) {
  const std::byte* const at = slot(completion.wr_id);
  Arrival arrival;
  if (completion.ipv6) {
    arrival.source = wire::IpAddress::load_v6(at + 8);
    arrival.destination = wire::IpAddress::load_v6(at + 24);
  } else {
    arrival.source = wire::IpAddress::load_v4(at + 32);
    arrival.destination = wire::IpAddress::load_v4(at + 36);
  }
  std::memcpy(arrival.bytes.data(), at + transport::kGrhBytes, kDatagramBytes);
  if (completion.bytes == kSlotBytes &&
      completion.source_qp_number == transport::kManagementQpNumber && arrivals_.push(arrival)) {
    return true;
  }
  lost_.store(lost_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return false;
}

ManagementPair::Handle* ManagementPair::handle_to(Picos now, const transport::QpPath& path) {
  for (Handle& handle : handles_) {
    if (handle.path.ip == path.ip) return &handle;
  }
  if (handles_.size() == kMostHandles) {
    std::sort(handles_.begin(), handles_.end(),
              [](const Handle& a, const Handle& b) { return a.used > b.used; });
    const auto at = std::find_if(handles_.rbegin(), handles_.rend(), [&](const Handle& handle) {
      return engine_.destroy_address_handle(now, handle.number);
    });
    if (at == handles_.rend()) return nullptr;
    handles_.erase(std::next(at).base());
  }
  return &handles_.emplace_back(Handle{path, engine_.create_address_handle(now, pd_, path), uses_});
}

bool ManagementPair::send(Picos now, const transport::QpPath& path,
                          std::span<const std::byte, kDatagramBytes> bytes) {
  now_ = now;
  Handle* const handle = handle_to(now, path);
  if (handle == nullptr) return false;
  handle->used = ++uses_;
  transport::WorkRequest request;
  request.opcode = transport::WorkOpcode::send;
  request.length = kDatagramBytes;
  request.inline_bytes = bytes.data();
  request.signaled = false;
  request.address_handle = handle->number;
  request.target_qp_number = transport::kManagementQpNumber;
  request.target_qkey = transport::kManagementQkey;
  return engine_.post_send(now, number_, request) == transport::PostResult::ok;
}

}  // namespace paceline::service
