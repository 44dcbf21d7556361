#include "dataplane/base/text/printable.h"

#include <catch2/catch.hpp>

namespace paceline {
namespace {

TEST_CASE("text without control characters stays as it is", "[base]") {
  for (const char* text : {"", "ib_write_bw", "Gro\xc3\x9f \xe6\x9d\xb1 \xf0\x9f\x90\xa2 \\x1b"}) {
    CHECK(printable(text) == text);
    CHECK(printable_lines(text) == text);
  }
}

TEST_CASE("control characters become their escapes", "[base]") {
  CHECK(printable("a\x1b[2Jb") == "a\\x1b[2Jb");
  CHECK(printable("a\rb\tc\nd\x7f") == "a\\x0db\\x09c\\x0ad\\x7f");
  CHECK(printable(std::string_view("\0x", 2)) == "\\x00x");
  CHECK(printable("\xc2\x9b[31m") == "\\u009b[31m");  // CSI of 8-bit terminals
  CHECK(printable("\xe2\x80\xae"
                  "abc") ==
        "\\u202e"
        "abc");  // right-to-left override
  CHECK(printable("\xe2\x81\xa6") == "\\u2066");
}

TEST_CASE("bytes that are no UTF-8 become their escapes", "[base]") {
  CHECK(printable("\x9b[31m") == "\\x9b[31m");
  CHECK(printable("\xc0\x80") == "\\xc0\\x80");           // not the shortest form
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
  CHECK(printable("\xe2\x80") == "\\xe2\\x80");  // cut off
  CHECK(printable("\xc3"
                  "a") ==
        "\\xc3"
        "a");
}

TEST_CASE("a text of several lines keeps its line ends alone", "[base]") {
  CHECK(printable_lines("a\nb\x1b\r\n") == "a\nb\\x1b\\x0d\n");
}

}  // namespace
}  // namespace paceline
