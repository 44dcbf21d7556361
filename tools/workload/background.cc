#include "tools/workload/background.h"

#include <algorithm>

namespace paceline::workload {

namespace {

std::uint64_t messages_of_rank(const config::BackgroundConfig& background) {
  return (background.bytes + background.message_bytes - 1) / background.message_bytes;
}

}  // namespace

std::uint64_t background_messages(const config::BackgroundConfig& background, std::uint32_t ranks) {
  return background.kind == "none" ? 0 : ranks * messages_of_rank(background);
}

void add_background(const config::BackgroundConfig& background, std::uint32_t ranks,
                    MessagePlan& plan) {
  if (background.kind == "none") return;
  const auto collective = static_cast<std::uint32_t>(plan.collectives.size());
  plan.collectives.push_back({background.kind});
  const bool write = background.kind == "checkpoint";
  const std::uint64_t count = messages_of_rank(background);
  // A message waits for the message of the same pair that is this far ahead of it.
  const std::uint64_t ahead = std::uint64_t{background.outstanding} * background.storage_nics;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::size_t first = plan.messages.size();
    for (std::uint64_t i = 0; i < count; ++i) {
      PlannedMessage m;
      const auto turn = static_cast<std::uint32_t>((rank + i) % background.storage_nics);
      const std::uint32_t storage = ranks + turn;
      m.src = write ? rank : storage;
      m.dst = write ? storage : rank;
      m.bytes = std::min(background.message_bytes, background.bytes - i * background.message_bytes);
      m.start = background.start;
      if (i >= ahead) m.after = static_cast<std::uint32_t>(first + i - ahead);
      m.traffic_class = static_cast<std::uint8_t>(background.traffic_class);
      m.job = kBackgroundTag;
      m.collective = collective;
      plan.messages.push_back(m);
    }
  }
}

}  // namespace paceline::workload
