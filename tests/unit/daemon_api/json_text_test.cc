#include "control/daemon/api/json_text.h"

#include <catch2/catch.hpp>

namespace paceline::daemon {
namespace {

TEST_CASE("JSON is read as any reader would", "[daemon_api]") {
  for (const char* text :
       {"{}", "[]", "null", "1", "-2.5e3", "\"\\u00e4\"", "{\"a\":[1,{\"b\":[]},null,true]}",
        "[[1,2],[3],{\"x\":{\"y\":[[],[]]},\"z\":0}]", " {\"a\" : {\"a\" : 1}} "}) {
    INFO(text);
    Json read;
    CHECK(read_json(text, read).empty());
    CHECK(read == Json::parse(text));
  }
}

TEST_CASE("JSON that two readers could take for different things is refused", "[daemon_api]") {
  Json read;
  const auto wrong = [&](std::string_view text) {
    read = 1;
    const std::string why = read_json(text, read);
    CHECK((why.empty() || read.is_null()));
    return why;
  };
  CHECK(wrong("{\"a\":1,\"b\":2,\"a\":3}").find("\"a\" is given twice") != std::string::npos);
  CHECK(wrong("{\"x\":{\"a\":1,\"\\u0061\":3}}").find("twice") != std::string::npos);
  for (const char* text : {"", "{", "{\"a\":}", "[1,]", "nul", "NaN", "Infinity", "-Infinity",
                           "1e999", "{}{}", "{'a':1}", "// x\n{}", "\"\xff\"", "\"\xed\xa0\x80\"",
                           "01", "\xef\xbb\xbf\xef\xbb\xbf{}", "{\"a\":1}\x01"}) {
    INFO(text);
    CHECK(wrong(text).starts_with("body: not JSON"));
  }
}

TEST_CASE("JSON is nested so deep and no deeper", "[daemon_api]") {
  Json read;
  const std::string deepest = std::string(kMostJsonDepth, '[') + std::string(kMostJsonDepth, ']');
  CHECK(read_json(deepest, read).empty());
  CHECK(read_json("[" + deepest + "]", read).find("nested deeper") != std::string::npos);
  CHECK(read_json(std::string(200'000, '['), read).find("nested deeper") != std::string::npos);
}

}  // namespace
}  // namespace paceline::daemon
