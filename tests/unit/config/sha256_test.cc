#include "dataplane/config/sha256.h"

#include <catch2/catch.hpp>

namespace paceline {
namespace {

// FIPS 180-4's own examples.
TEST_CASE("sha256: known digests", "[sha256]") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace paceline
