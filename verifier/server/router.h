// SPDX-License-Identifier: Apache-2.0
// Which route answers a request. Immutable after construction; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "verifier/server/http.h"

namespace assay::server {

struct RouteMatch {
  const Route* route = nullptr;  // null: none for this path, or none for this method
  bool other_method = false;     // the path exists under another method
};

class Router {
 public:
  explicit Router(std::vector<Route> routes) : routes_(std::move(routes)) {}
  // `path` without the query. Exact routes win over prefixes, longer prefixes over shorter.
  RouteMatch Find(std::string_view method, std::string_view path, Listener listener) const noexcept;

 private:
  std::vector<Route> routes_;
};

}  // namespace assay::server
