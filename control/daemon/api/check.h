// Checks a request against the fields of an endpoint. Each error names the field, the value and
// what is allowed; all errors are reported at once.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/daemon/api/endpoint.h"

namespace paceline::daemon {

// A value of the path or the query, which is text. `where`: "path" or "query".
void check_text(const Field& field, std::string_view value, std::string_view where,
                std::vector<std::string>& errors);

// Reads the query's parameters by their fields; each at most once. Valid ones are put into
// `request`.
void check_query(const std::vector<Field>& fields,
                 const std::vector<std::pair<std::string, std::string>>& given, Request& request,
                 std::vector<std::string>& errors);

// The members of `body`. A whole number may be written 5.0 or 5e3; it is an integer afterwards.
void check_body(const std::vector<Field>& fields, Json& body, std::vector<std::string>& errors);

}  // namespace paceline::daemon
