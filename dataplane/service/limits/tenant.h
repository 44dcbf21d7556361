// A tenant: one user id, whatever programs it runs. For the control thread, except for the message
// budgets, each of which belongs to its worker.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "dataplane/service/limits/message_budget.h"
#include "dataplane/service/limits/service_settings.h"

namespace paceline::service {

// A resource of which there is a limited amount.
struct Allowance {
  std::uint64_t used = 0;
  std::uint64_t most = 0;

  bool take(std::uint64_t amount = 1) {
    if (amount > most - used) return false;
    used += amount;
    return true;
  }
  void give(std::uint64_t amount = 1) { used -= amount; }
};

// A part of an allowance; its last holder gives it back.
class Held {
 public:
  Held() = default;
  Held(Held&& other) noexcept { *this = std::move(other); }
  Held& operator=(Held&& other) noexcept {
    std::swap(of_, other.of_);
    std::swap(amount_, other.amount_);
    return *this;
  }
  ~Held() {
    if (of_ != nullptr) of_->give(amount_);
  }
  // Once.
  bool take(Allowance& of, std::uint64_t amount) {
    if (!of.take(amount)) return false;
    of_ = &of;
    amount_ = amount;
    return true;
  }

 private:
  Allowance* of_ = nullptr;
  std::uint64_t amount_ = 0;
};

struct Tenant {
  Tenant(uid_t user_, const TenantQuota& quota, std::size_t workers)
      : user(user_),
        sessions{0, quota.sessions},
        queue_pairs{0, quota.queue_pairs},
        completion_queues{0, quota.completion_queues},
        shared_receive_queues{0, quota.shared_receive_queues},
        regions{0, quota.regions},
        protection_domains{0, quota.protection_domains},
        address_handles{0, quota.address_handles},
        registered_bytes{0, quota.registered_bytes},
        queue_bytes{0, quota.queue_bytes},
        descriptors{0, quota.descriptors},
        mappings{0, quota.mappings} {
    for (std::size_t i = 0; i < workers; ++i) {
      budgets.push_back(std::make_unique<MessageBudget>(quota.message_rate, quota.message_burst));
    }
  }

  // Sessions that have ended, but not completely: a close or a copy waits for the program. They are
  // released on any thread.
  std::shared_ptr<const void> remains() {
    left->fetch_add(1, std::memory_order_relaxed);
    return {left.get(), [of = left](const void*) { of->fetch_sub(1, std::memory_order_relaxed); }};
  }
  // There are fewer of them than a user may have sessions.
  bool tidy() const { return left->load(std::memory_order_relaxed) < sessions.most; }

  uid_t user;
  std::shared_ptr<std::atomic<std::uint64_t>> left =
      std::make_shared<std::atomic<std::uint64_t>>(0);
  Allowance sessions;
  Allowance queue_pairs;
  Allowance completion_queues;
  Allowance shared_receive_queues;
  Allowance regions;
  Allowance protection_domains;
  Allowance address_handles;
  Allowance registered_bytes;
  std::map<pid_t, std::uint64_t> process_bytes;  // of these, by process
  // Resources that the service uses for the tenant: memory of queues, open descriptors, mappings of
  // regions.
  Allowance queue_bytes;
  Allowance descriptors;
  Allowance mappings;
  std::map<int, std::uint64_t> refused;                 // requests, by errno; EDQUOT: by quota
  std::vector<std::unique_ptr<MessageBudget>> budgets;  // by worker
};

}  // namespace paceline::service
