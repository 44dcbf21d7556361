#include "dataplane/config/algorithm_catalogue.h"

#include <catch2/catch.hpp>

namespace paceline::config {
namespace {

using Json = nlohmann::json;

// A built-in table under another name is as good as that of any plug-in.
Json table_called(const char* name, const char* sha256) {
  Json table = algorithm_json(*cc::find("dcqcn"));
  table["name"] = name;
  table["plugin"] = origin_json({"/plugins/mine.so", sha256});
  return table;
}

TEST_CASE("a table that was told is the table that there was") {
  AlgorithmCatalogue catalogue;
  CHECK(catalogue.algorithms().size() == cc::kAlgorithms);
  CHECK_FALSE(catalogue.plugins());
  CHECK(catalogue.table("dcqcn") == algorithm_json(*cc::find("dcqcn")));
  CHECK(catalogue.table("none").is_null());

  Json table = table_called("mine", "aa");
  table["asked"] = "/link/to/mine.so";
  REQUIRE(catalogue.add(table).empty());
  const cc::AlgorithmInfo* const info = catalogue.find("mine");
  REQUIRE(info != nullptr);
  CHECK(cc::is_plugin(info->id));
  CHECK(catalogue.table("mine") == table);
  REQUIRE(catalogue.origin("mine") != nullptr);
  CHECK(catalogue.origin("mine")->sha256 == "aa");
  CHECK(catalogue.origin("dcqcn") == nullptr);
  CHECK(catalogue.at("/plugins/mine.so").info == info);
  CHECK(catalogue.at("/link/to/mine.so").info == info);
  CHECK(catalogue.at("/plugins/other.so").info == nullptr);
  CHECK(catalogue.nearest("mime") == "mine");
  const cc::AlgorithmInfo& original = *cc::find("dcqcn");
  REQUIRE(info->params.size() == original.params.size());
  CHECK(info->params.back().max == original.params.back().max);
  CHECK(info->profiles.size() == original.profiles.size());
}

TEST_CASE("another table of a name takes the place of the one before, which stays readable") {
  AlgorithmCatalogue catalogue;
  REQUIRE(catalogue.add(table_called("mine", "aa")).empty());
  const cc::AlgorithmInfo* const info = catalogue.find("mine");
  const std::span<const cc::ParamSpec> before = info->params;
  Json fewer = table_called("mine", "bb");
  fewer["params"].erase(0);
  REQUIRE(catalogue.add(fewer).empty());
  CHECK(catalogue.find("mine") == info);
  CHECK(info->params.size() + 1 == before.size());
  CHECK(before.front().name == cc::find("dcqcn")->params.front().name);
  CHECK(catalogue.origin("mine")->sha256 == "bb");
  CHECK(catalogue.algorithms().size() == cc::kAlgorithms + 1);
}

TEST_CASE("what is no table is refused") {
  AlgorithmCatalogue catalogue;
  CHECK(catalogue.add(Json::array()) != "");
  CHECK(catalogue.add(Json::object()) == "its table has no usable \"name\"");
  CHECK(catalogue.add(table_called("dcqcn", "aa")) == "a built-in algorithm is called \"dcqcn\"");
  Json table = table_called("mine", "aa");
  table.erase("plugin");
  CHECK(catalogue.add(table) == "its table has no usable \"path\"");
  table = table_called("mine", "aa");
  table["params"][0]["max"] = "much";
  CHECK(catalogue.add(table) == "its table has no usable \"max\"");
  table["params"][0] = 7;
  CHECK(catalogue.add(table) == "its table has no usable \"name\"");
  CHECK(catalogue.find("mine") == nullptr);
  for (std::size_t i = catalogue.algorithms().size(); i < AlgorithmCatalogue::kMostAlgorithms;
       ++i) {
    CHECK(catalogue.add(table_called(("mine" + std::to_string(i)).c_str(), "aa")).empty());
  }
  CHECK(catalogue.add(table_called("one_more", "aa")) != "");
}

}  // namespace
}  // namespace paceline::config
