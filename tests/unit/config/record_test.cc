// Tables that say what a JSON record may hold: every mistake is told, with path, value and what is
// allowed.
#include "dataplane/config/record.h"

#include <catch2/catch.hpp>

#include "dataplane/config/congestion_change.h"

namespace paceline::config {

namespace {

using Json = nlohmann::json;
using Errors = std::vector<std::string>;

Errors errors_of(const std::vector<RecordField>& fields, const char* text) {
  Json record = Json::parse(text);
  Errors errors;
  check_record(fields, record, "", errors);
  return errors;
}

const std::vector<RecordField>& fields() {
  static const std::vector<RecordField> all{
      {.name = "name", .required = true, .least = 1, .most = 4},
      {.name = "kind", .one_of = {"a", "b"}},
      {.name = "count", .type = FieldType::whole, .least = 1, .most = 9},
      {.name = "limit", .type = FieldType::number, .most = 1, .or_null = true},
      {.name = "inner", .type = FieldType::object, .of = {{.name = "on", .type = FieldType::flag}}},
      {.name = "params", .type = FieldType::object, .of = {{.type = FieldType::number}}},
      nic_names_field()};
  return all;
}

}  // namespace

TEST_CASE("a record that its table allows is taken", "[record]") {
  CHECK(errors_of(fields(), R"({"name":"n"})") == Errors{});
  CHECK(errors_of(fields(), R"({"name":"n","kind":"b","count":9,"limit":null,"inner":{"on":true},
                                "params":{"any":1.5},"nics":["h0","h1"]})") == Errors{});
}

TEST_CASE("each mistake of a record is told where it is", "[record]") {
  CHECK(errors_of(fields(), R"({"count":0})") ==
        Errors{"count: 0; allowed: whole number from 1 to 9",
               "name: missing; allowed: text of 1 to 4 characters"});
  CHECK(errors_of(fields(), R"({"name":"longer","kind":"c","limit":2})") ==
        Errors{"kind: \"c\"; allowed: one of a, b",
               "limit: 2; allowed: number from 0 to 1, or null",
               "name: \"longer\"; allowed: text of 1 to 4 characters"});
  CHECK(errors_of(fields(), R"({"name":"n","inner":{"on":1,"of":2},"params":{"x":"y"}})") ==
        Errors{"inner: unknown member \"of\"; did you mean \"on\"?",
               "inner.on: 1; allowed: true or false", "params.x: \"y\"; allowed: number"});
  CHECK(errors_of(fields(), R"({"name":"n","nics":["h0",7]})") ==
        Errors{"nics[1]: 7; allowed: text of 1 to 63 characters"});
  CHECK(errors_of(fields(), R"({"name":"n","nics":["h0","h0"]})") ==
        Errors{"nics: a list that names one twice; allowed: each once"});
  CHECK(errors_of(fields(), R"({"name":null,"nam":1})").size() == 2);
}

TEST_CASE("a whole number may be written as 5.0 or 5e0, and is an integer then", "[record]") {
  Json record = Json::parse(R"({"name":"n","count":5.0})");
  Errors errors;
  check_record(fields(), record, "", errors);
  CHECK(errors == Errors{});
  CHECK(record["count"].is_number_integer());
  CHECK(errors_of(fields(), R"({"name":"n","count":5.5})").size() == 1);
}

}  // namespace paceline::config
