// Takes the messages of a group's ranks that the group itself does not answer.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/collective/rank/json_lines.h"

namespace paceline::tools {

class RankListener {
 public:
  RankListener() = default;
  virtual ~RankListener() = default;
  RankListener(const RankListener&) = delete;
  RankListener& operator=(const RankListener&) = delete;

  // The rank is here. Messages to it go into `lines`.
  virtual void greet(std::uint32_t /*rank*/, rank::JsonLines& /*lines*/) {}
  // A message of the rank. Throws std::exception where it is none, which fails the rank.
  virtual void take(std::uint32_t rank, const nlohmann::json& message) = 0;
  // Whether the rank may end: it has said all that it has to.
  virtual bool complete(std::uint32_t rank) const = 0;
  // Why the group cannot continue, in lines; empty: it can. Asked several times a second.
  virtual std::vector<std::string> obstacles() { return {}; }
};

}  // namespace paceline::tools
