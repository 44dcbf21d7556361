// XRC domains of a service: which of them belong to a file, and the queue pairs that programs may
// open in them. A domain, or such a queue pair, lives as long as a session has it. For the control
// thread.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "dataplane/service/adapters/pair_adapter.h"

namespace paceline::service {

struct Domain {
  std::uint32_t number = 0;                                     // as the engine knows it; not 0
  std::map<std::uint32_t, std::weak_ptr<PairAdapter>> targets;  // by number of the queue pair
};

class DomainBook {
 public:
  // The file by which programs share a domain. They name the file themselves, so it only counts
  // among programs of one user.
  struct File {
    uid_t user = 0;
    std::size_t worker = 0;  // NIC
    std::size_t nic = 0;
    std::uint64_t device = 0;
    std::uint64_t inode = 0;

    friend auto operator<=>(const File&, const File&) = default;
  };

  // A domain that nobody else finds.
  std::shared_ptr<Domain> make() {
    auto domain = std::make_shared<Domain>();
    domain->number = ++last_;
    return domain;
  }
  std::shared_ptr<Domain> make(const File& file) {
    std::erase_if(by_file_, [](const auto& entry) { return entry.second.expired(); });
    auto domain = make();
    by_file_[file] = domain;
    return domain;
  }
  // nullptr when there is none.
  std::shared_ptr<Domain> find(const File& file) const {
    const auto at = by_file_.find(file);
    return at == by_file_.end() ? nullptr : at->second.lock();
  }

 private:
  std::map<File, std::weak_ptr<Domain>> by_file_;
  std::uint32_t last_ = 0;
};

}  // namespace paceline::service
