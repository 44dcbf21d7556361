#include "control/daemon/api/json_text.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "control/daemon/api/target.h"
#include "dataplane/base/text/printable.h"

namespace paceline::daemon {

namespace {

// The parser calls one function per token. A function that returns false ends the parsing.
class StrictReader : public nlohmann::json_sax<Json> {
 public:
  explicit StrictReader(Json& root) : root_(root) {}
  const std::string& wrong() const { return wrong_; }

  bool null() override { return place(nullptr); }
  bool boolean(bool value) override { return place(value); }
  bool number_integer(std::int64_t value) override { return place(value); }
  bool number_unsigned(std::uint64_t value) override { return place(value); }
  bool number_float(double value, const std::string&) override { return place(value); }
  bool string(std::string& value) override { return place(std::move(value)); }
  bool binary(Json::binary_t&) override { return refuse("binary is not JSON"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    if (open_.back()->contains(name))
      return refuse("member " + in_quotes(name) + " is given twice");
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t at, const std::string& token,
                   const nlohmann::detail::exception&) override {
    return refuse("not JSON at byte " + std::to_string(at) + ", after " + in_quotes(token));
  }

 private:
  bool refuse(std::string why) {
    wrong_ = std::move(why);
    return false;
  }

  bool place(Json value) {
    put(std::move(value));
    return true;
  }

  Json* put(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    Json& member = parent[key_];
    member = std::move(value);
    return &member;
  }

  bool open(Json container) {
    if (open_.size() >= kMostJsonDepth) {
      return refuse("nested deeper than " + std::to_string(kMostJsonDepth));
    }
    // An open container is the last element of its parent, so the pointers in open_ stay valid.
    open_.push_back(put(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  Json& root_;
  std::vector<Json*> open_;
  std::string key_;
  std::string wrong_;
};

}  // namespace

std::string read_json(std::string_view text, Json& out) {
  out = nullptr;
  StrictReader reader(out);
  const bool whole = Json::sax_parse(text.begin(), text.end(), &reader);
  if (whole) return {};
  out = nullptr;
  return "body: " + (reader.wrong().empty() ? "not JSON" : reader.wrong());
}

}  // namespace paceline::daemon
