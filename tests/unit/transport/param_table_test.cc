// Values that engines share: what is equal lies in memory once, what differs is kept apart.
#include "dataplane/transport/core/param_table.h"

#include <catch2/catch.hpp>

namespace paceline::transport {
namespace {

cc::ParamBlock block_of(cc::AlgorithmId id, unsigned char first) {
  cc::ParamBlock block;
  block.id = id;
  block.storage[0] = std::byte{first};
  return block;
}

TEST_CASE("equal values of several engines are one block, other values another") {
  ParamStore store;
  ParamTable a, b;
  const auto fixed = block_of(cc::AlgorithmId::fixed, 1);
  a.put(fixed, &store);
  b.put(fixed, &store);
  const cc::ParamBlock* const shared = &a[cc::AlgorithmId::fixed];
  CHECK(&b[cc::AlgorithmId::fixed] == shared);

  // One engine is given other values: the other keeps what it has.
  b.put(block_of(cc::AlgorithmId::fixed, 2), &store);
  CHECK(&a[cc::AlgorithmId::fixed] == shared);
  CHECK(shared->storage[0] == std::byte{1});
  CHECK(b[cc::AlgorithmId::fixed].storage[0] == std::byte{2});

  // The same bytes of another algorithm are not the same values.
  a.put(block_of(cc::AlgorithmId::dcqcn, 1), &store);
  CHECK(a[cc::AlgorithmId::dcqcn].id == cc::AlgorithmId::dcqcn);
  CHECK(a[cc::AlgorithmId::fixed].id == cc::AlgorithmId::fixed);
}

TEST_CASE("an engine keeps its values when the store has forgotten them, or is gone") {
  ParamTable table;
  {
    ParamStore store;
    table.put(block_of(cc::AlgorithmId::fixed, 200), &store);
    ParamTable other;
    for (unsigned char i = 0; i < 100; ++i) other.put(block_of(cc::AlgorithmId::fixed, i), &store);
  }
  CHECK(table[cc::AlgorithmId::fixed].storage[0] == std::byte{200});
}

TEST_CASE("without a store values are the engine's own; what was never put is a default block") {
  ParamTable a, b;
  CHECK(a[cc::AlgorithmId::dcqcn].id == cc::AlgorithmId::fixed);
  a.put(block_of(cc::AlgorithmId::dcqcn, 3), nullptr);
  b.put(block_of(cc::AlgorithmId::dcqcn, 3), nullptr);
  CHECK(&a[cc::AlgorithmId::dcqcn] != &b[cc::AlgorithmId::dcqcn]);
}

}  // namespace
}  // namespace paceline::transport
