// SPDX-License-Identifier: Apache-2.0
#include "verifier/authz/arguments.h"

#include "sdk/core/json.h"
#include "verifier/token/canonical_json.h"

namespace assay::authz {
namespace {

bool Collect(JsonValue value, std::vector<std::string>& texts, bool& only_texts) {
  switch (value.kind()) {
    case JsonKind::kObject:
      return value.EachMember([&](std::string_view, JsonValue inner) { return Collect(inner, texts, only_texts); });
    case JsonKind::kArray: return value.EachElement([&](JsonValue inner) { return Collect(inner, texts, only_texts); });
    case JsonKind::kString: texts.emplace_back(*value.String()); return true;
    default: only_texts = false; return true;
  }
}

}  // namespace

std::optional<Arguments> Arguments::Parse(std::string_view json) {
  JsonParser parser(json.size() < kArgumentsSize ? json.size() : kArgumentsSize);
  const auto root = parser.TryParse(json);
  if (!root) return std::nullopt;
  Arguments arguments;
  auto canonical = token::CanonicalJson(*root);
  if (!canonical.ok() || !Collect(*root, arguments.texts_, arguments.only_texts_)) return std::nullopt;
  arguments.canonical_ = std::move(*canonical);
  return arguments;
}

}  // namespace assay::authz
