#include "dataplane/base/sha256.h"

#include <catch2/catch.hpp>

namespace paceline {
namespace {

// FIPS 180-4's examples, and lengths at which the padding takes a block of its own.
TEST_CASE("SHA-256 of known texts") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256(std::string(1'000'000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  CHECK(sha256(std::string(55, 'b')) ==
        "eb2c86e932179f4ba13fe8715a26124b77d6bad290b9b4c1cc140cf633300c19");
  CHECK(sha256(std::string(56, 'b')) ==
        "a5fc6e203a4c2b657d0d153885932414b2ffc6a93f0f8bf8b3183315e5a7212c");
  CHECK(sha256(std::string(63, 'b')) ==
        "94e419fabac7f930810f9636354042f8c1426d2f834d4ab65c93dc1e69326b13");
  CHECK(sha256(std::string(64, 'b')) ==
        "a0fab1377f49a759b57f63318262ebe89fabfc990e8e93ceac2984561482b9d4");
  CHECK(sha256(std::string(65, 'b')) ==
        "74b128f30cf83de43ddf4aafc40c7b50a7443d3c73a89a7cfca17e15e43d51ab");
}

}  // namespace
}  // namespace paceline
