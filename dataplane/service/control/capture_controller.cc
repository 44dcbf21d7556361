#include "dataplane/service/control/capture_controller.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>

#include "dataplane/attach/text.h"
#include "dataplane/driver/clock/unix_time.h"

namespace paceline::service {

namespace {

constexpr std::size_t kPageBytes = 4096;
static_assert(sizeof(CaptureReaderPage) <= kPageBytes);

CaptureController::Begun refused(std::string why) {
  CaptureController::Begun begun;
  begun.errors.push_back(std::move(why));
  return begun;
}

}  // namespace

struct CaptureController::Capture {
  ControlClient client;
  NicPlace place;
  std::string name;
  attach::SharedMemory ring;
  attach::SharedMemory page;
  std::optional<CaptureRingWriter> writer;
};

CaptureController::CaptureController(Service& service) : service_(service) {}

CaptureController::~CaptureController() {
  for (Capture& capture : captures_) end(capture);
}

CaptureController::Begun CaptureController::begin(const ControlClient& client,
                                                  const ControlRequest& request) {
  const std::optional<NicPlace> place = service_.find_nic(request.nic);
  if (!place) {
    std::string names;
    for (const NicPlace other : service_.nics()) {
      if (!names.empty()) names += ", ";
      names += attach::text_of(service_.nic_info(other).name);
    }
    return refused(fmt::format("nic: there is no {} here, but {}", request.nic, names));
  }
  for (const Capture& other : captures_) {
    if (other.name != request.nic) continue;
    return refused(fmt::format("nic: {} is captured already, by process {}", request.nic,
                               other.client.process));
  }
  if (captures_.size() >= kMostCaptures) {
    return refused(fmt::format("{} NICs are captured already", captures_.size()));
  }
  Capture& capture = captures_.emplace_back();
  capture.client = client;
  capture.place = *place;
  capture.name = request.nic;
  const std::size_t bytes = kCaptureRecordsAt + std::bit_ceil(request.ring_bytes);
  if (!capture.ring.make("paceline-capture", bytes, attach::SharedWrite::maker_only) ||
      !capture.page.make("paceline-capture-reader", kPageBytes)) {
    const int error = errno;
    captures_.pop_back();
    return refused(fmt::format("memory for a capture: {}", std::strerror(error)));
  }
  // Touches all pages now, so that the worker need not wait for them.
  std::memset(capture.ring.data(), 0, capture.ring.size());
  const auto& page = *new (capture.page.data()) CaptureReaderPage;
  ServiceWorker& worker = service_.worker(place->worker);
  const NicCongestion& facts = worker.nics().nic(place->nic).congestion;
  capture.writer.emplace(capture.ring.bytes(), page,
                         CaptureRingWriter::Settings{request.snap, facts.facts.link_rate});
  std::string wrong = "its worker has ended";
  worker.call(place->nic, [&](Picos now) {
    capture.writer->begin(now, static_cast<std::int64_t>(unix_nanos()));
    wrong = worker.nics().capture(place->nic, &*capture.writer);
  });
  if (!wrong.empty()) {
    captures_.pop_back();
    return refused(fmt::format("nic: {}: {}", request.nic, wrong));
  }
  spdlog::info("process {} captures {}", client.process, request.nic);
  return {{},
          capture.ring.descriptor(),
          capture.page.descriptor(),
          capture.ring.size(),
          capture.page.size()};
}

void CaptureController::end_all_of(const ControlClient& client) {
  for (Capture& capture : captures_) {
    if (capture.client.number == client.number) end(capture);
  }
  std::erase_if(captures_,
                [&](const Capture& capture) { return capture.client.number == client.number; });
}

// Afterwards the worker no longer knows the ring.
void CaptureController::end(Capture& capture) {
  ServiceWorker& worker = service_.worker(capture.place.worker);
  std::uint64_t frames = 0;
  std::uint64_t missed = 0;
  const auto forget = [&](Picos) {
    worker.nics().capture(capture.place.nic, nullptr);
    frames = capture.writer->frames();
    missed = capture.writer->missed();
  };
  if (!worker.call(capture.place.nic, forget)) forget(Picos{0});
  spdlog::info("the capture of {} by process {} is over: {} frames, {} missed", capture.name,
               capture.client.process, frames, missed);
}

}  // namespace paceline::service
