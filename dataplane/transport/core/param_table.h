// Values in force of the algorithms that an engine runs. There are many algorithms, and an engine
// runs one or two: a block for each would be most of an idle host's memory. Hosts of one world
// mostly have the same values, which then are in memory, and in the caches, only once.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "cc/param_block.h"

namespace paceline::transport {

// Blocks that several engines share. One thread at a time may add values; another thread may read a
// block that it has. Must outlive the engines.
class ParamStore {
 public:
  // A block equal to `values`, byte for byte: an existing one, or a new one.
  std::shared_ptr<const cc::ParamBlock> intern(const cc::ParamBlock& values) {
    const auto same = [&values](const auto& block) {
      return block->id == values.id &&
             std::memcmp(block->storage, values.storage, sizeof values.storage) == 0;
    };
    // Search the newest first: hosts are built or changed one after the other.
    const auto found = std::find_if(blocks_.rbegin(), blocks_.rend(), same);
    if (found != blocks_.rend()) return *found;
    if (blocks_.size() == kMost) blocks_.erase(blocks_.begin());
    return blocks_.emplace_back(std::make_shared<const cc::ParamBlock>(values));
  }

 private:
  // Values that differ from host to host cannot be shared, and searching many of them costs time.
  static constexpr std::size_t kMost = 16;

  std::vector<std::shared_ptr<const cc::ParamBlock>> blocks_;
};

class ParamTable {
 public:
  // Values that were never put: a default block.
  const cc::ParamBlock& operator[](cc::AlgorithmId id) const {
    const cc::ParamBlock* const block = blocks_[static_cast<std::size_t>(id)].get();
    return block != nullptr ? *block : kNone;
  }
  // The values of an entry, which contexts read with every event.
  const cc::ParamBlock& at(cc::AlgorithmId id) const {
    assert(blocks_[static_cast<std::size_t>(id)] != nullptr);
    return *blocks_[static_cast<std::size_t>(id)];
  }
  // Allocates. `store` may be null.
  void put(const cc::ParamBlock& values, ParamStore* store) {
    blocks_[static_cast<std::size_t>(values.id)] =
        store != nullptr ? store->intern(values) : std::make_shared<const cc::ParamBlock>(values);
  }

 private:
  static inline const cc::ParamBlock kNone{};

  std::array<std::shared_ptr<const cc::ParamBlock>, cc::kAlgorithms + cc::kMaxPlugins> blocks_;
};

}  // namespace paceline::transport
