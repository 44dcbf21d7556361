// Shared receive queues of XRC domains (InfiniBand vol. 1, annex A14). A request names a queue by
// its number. The queue determines where the message goes, by whose rights, and who gets the
// completion.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "dataplane/transport/interface/completion_queue.h"
#include "dataplane/transport/interface/receive_queue.h"

namespace paceline::transport {

struct DomainQueue {
  ReceiveQueue* receives = nullptr;
  CompletionQueue* completions = nullptr;
  std::uint32_t pd = 0;
  std::uint32_t domain = 0;  // not 0
};

class DomainQueues {
 public:
  static constexpr std::uint32_t kMostNumber = 0xFF'FFFF;

  // Returns its number, which is used again only after all others. 0: the numbers have run out.
  std::uint32_t add(const DomainQueue& queue) {
    if (queues_.size() == kMostNumber) return 0;
    do {
      last_ = last_ == kMostNumber ? 1 : last_ + 1;
    } while (queues_.contains(last_));
    queues_.emplace(last_, queue);
    return last_;
  }
  void remove(std::uint32_t number) { queues_.erase(number); }
  // nullptr when there is none.
  const DomainQueue* find(std::uint32_t number) const {
    const auto at = queues_.find(number);
    return at == queues_.end() ? nullptr : &at->second;
  }

 private:
  std::unordered_map<std::uint32_t, DomainQueue> queues_;
  std::uint32_t last_ = 0;
};

}  // namespace paceline::transport
