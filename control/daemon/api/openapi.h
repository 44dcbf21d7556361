// Describes the API for machines and for people, from the table that requests are checked against.
#pragma once

#include <string>
#include <string_view>

#include "control/daemon/api/endpoint.h"

namespace paceline::daemon {

// OpenAPI 3.0.3, with the endpoints that every server has. Pure: the same table, the same document.
Json openapi_document(const Endpoints& endpoints, std::string_view version);
// As in docs/api/openapi.json and in the reply: indented, one line end behind it.
std::string openapi_text(const Endpoints& endpoints, std::string_view version);

// The reference in docs/api.md, in Markdown: a heading for each tag, a table for the parameters.
std::string api_reference(const Endpoints& endpoints);

}  // namespace paceline::daemon
