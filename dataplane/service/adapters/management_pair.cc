#include "dataplane/service/adapters/management_pair.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace paceline::service {

ManagementPair::ManagementPair(Picos now, transport::Engine& engine, std::uint32_t pd, Bell bell)
    : engine_(engine),
      pair_(now, engine, {pd, transport::kManagementQkey, kDatagramBytes, kReceives}),
      bell_(std::move(bell)) {
  engine.serve_management(pair_.number());
  handles_.reserve(kMostHandles);
}

bool ManagementPair::collect(Picos now) {
  bool rung = false;
  const bool any =
      pair_.collect(now, [&](const probing::DatagramPair::Arrival& one) { rung |= pass_on(one); });
  if (rung) {
    const std::uint64_t one = 1;
    // It does not fail: the counter never reaches its maximum of 2^64 - 2.
    [[maybe_unused]] const ssize_t written = ::write(bell_->get(), &one, sizeof one);
  }
  return any;
}

// Only a service or a kernel sends as queue pair 1. So a program on another machine that knows the
// Q_Key cannot pose as its connection manager.
bool ManagementPair::pass_on(const probing::DatagramPair::Arrival& from) {
  Arrival arrival;
  arrival.source = from.source;
  arrival.destination = from.destination;
  std::memcpy(arrival.bytes.data(), from.bytes.data(), kDatagramBytes);
  if (from.whole && from.source_qp_number == transport::kManagementQpNumber &&
      arrivals_.push(arrival)) {
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
  return &handles_.emplace_back(
      Handle{path, engine_.create_address_handle(now, pair_.pd(), path), uses_});
}

bool ManagementPair::send(Picos now, const transport::QpPath& path,
                          std::span<const std::byte, kDatagramBytes> bytes) {
  Handle* const handle = handle_to(now, path);
  if (handle == nullptr) return false;
  handle->used = ++uses_;
  transport::WorkRequest request;
  request.signaled = false;
  request.address_handle = handle->number;
  request.target_qp_number = transport::kManagementQpNumber;
  request.target_qkey = transport::kManagementQkey;
  return pair_.send(now, request, bytes);
}

}  // namespace paceline::service
