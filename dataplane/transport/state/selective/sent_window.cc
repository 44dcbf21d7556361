#include "dataplane/transport/state/selective/sent_window.h"

#include <algorithm>

namespace paceline::transport {

void SentWindow::start(Psn next) {
  std::fill(slots_.begin(), slots_.end(), SentPacket{});
  peer_expected_ = highest_ = lost_from_ = flying_from_ = answers_to_ = next;
  lost_ = missing_ = 0;
}

void SentWindow::send(Psn psn, const SentPacket& packet) {
  SentPacket& slot = slot_of(psn);
  const std::uint8_t known = slot.flags;
  if (slot.has(sent_flag::lost)) --lost_;
  slot = packet;
  slot.set(known | sent_flag::in_flight);
  slot.clear(sent_flag::lost);
  if (packet.has(sent_flag::request)) slot_of(psn + (packet.extent - 1)).set(sent_flag::ends);
  if (before(psn, flying_from_)) flying_from_ = psn;
}

std::uint8_t SentWindow::retire(SendPosition& position) {
  std::uint8_t answered = 0;
  Psn oldest = position.oldest();
  for (; before(oldest, peer_expected_) && at(oldest).has(sent_flag::delivered); ++oldest) {
    if (at(oldest).has(sent_flag::ends)) ++answered;
    slot_of(oldest) = SentPacket{};
  }
  position.acknowledge(oldest);
  for (Psn* mark : {&lost_from_, &flying_from_, &answers_to_}) {
    if (before(*mark, oldest)) *mark = oldest;
  }
  return answered;
}

bool SentWindow::expect_answers(Psn end, Picos now) {
  const std::uint32_t missing = missing_;
  for (; before(answers_to_, end); ++answers_to_) {
    SentPacket& slot = slot_of(answers_to_);
    if (slot.has(sent_flag::delivered | sent_flag::late)) continue;
    slot.set(sent_flag::late);
    ++missing_;
    if (!slot.has(sent_flag::asked | sent_flag::in_flight)) slot.sent_at = now;
  }
  return missing_ != missing;
}

bool SentWindow::adds_up() const {
  const auto count = [this](std::uint8_t flag) {
    return std::count_if(slots_.begin(), slots_.end(),
                         [flag](const SentPacket& slot) { return slot.has(flag); });
  };
  return count(sent_flag::lost) == lost_ && count(sent_flag::late) == missing_;
}

}  // namespace paceline::transport
