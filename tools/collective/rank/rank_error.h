// An error that ends a rank: it is reported, and the rank ends.
#pragma once

#include <stdexcept>

namespace paceline::rank {

class RankError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace paceline::rank
