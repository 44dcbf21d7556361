#include "dataplane/base/hash.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace paceline {
namespace {

TEST_CASE("text hashes to the published FNV-1a values") {
  CHECK(ContentHash().value() == 0xCBF29CE484222325U);
  CHECK(ContentHash().text("a").value() == 0xAF63DC4C8601EC8CU);
  CHECK(ContentHash().text("foobar").value() == 0x85944171F73967E8U);
}

TEST_CASE("content may arrive in pieces") {
  CHECK(ContentHash().text("foo").text("bar").value() == ContentHash().text("foobar").value());
  const std::array<std::byte, 3> foo = {std::byte{'f'}, std::byte{'o'}, std::byte{'o'}};
  CHECK(ContentHash().bytes(foo).text("bar").value() == ContentHash().text("foobar").value());
}

TEST_CASE("the border between fields counts") {
  CHECK(ContentHash().field("ab").field("c").value() !=
        ContentHash().field("a").field("bc").value());
  CHECK(ContentHash().field("").field("a").value() != ContentHash().field("a").field("").value());
}

TEST_CASE("numbers are eight bytes, least significant first") {
  const std::array<std::byte, 8> bytes = {std::byte{0x08}, std::byte{0x07}, std::byte{0x06},
                                          std::byte{0x05}, std::byte{0x04}, std::byte{0x03},
                                          std::byte{0x02}, std::byte{0x01}};
  CHECK(ContentHash().number(0x0102030405060708U).value() == ContentHash().bytes(bytes).value());
  CHECK(ContentHash().number(std::uint8_t{5}).value() == ContentHash().number(5).value());
  CHECK(ContentHash().number(-1).value() == ContentHash().number(~std::uint64_t{0}).value());
  CHECK(ContentHash().number(1).number(2).value() != ContentHash().number(2).number(1).value());
}

TEST_CASE("doubles hash by value") {
  CHECK(ContentHash().number(1.0).value() != ContentHash().number(1.0 + 0x1.0p-52).value());
  CHECK(ContentHash().number(-0.0).value() == ContentHash().number(0.0).value());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(ContentHash().number(-nan).value() == ContentHash().number(nan).value());
}

}  // namespace
}  // namespace paceline
