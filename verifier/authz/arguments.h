// SPDX-License-Identifier: Apache-2.0
// The arguments of a call: the JSON text as it came, its canonical form, and every value in it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::authz {

inline constexpr std::size_t kArgumentsSize = 64 * 1024;

class Arguments {
 public:
  Arguments() = default;                                         // absent
  static std::optional<Arguments> Parse(std::string_view json);  // nothing when the text is refused

  bool present() const noexcept { return !canonical_.empty(); }
  const std::string& canonical() const noexcept { return canonical_; }       // RFC 8785; "" when absent
  const std::vector<std::string>& texts() const noexcept { return texts_; }  // every string value, however deep
  bool only_texts() const noexcept { return only_texts_; }                   // no number, truth value or null anywhere

 private:
  std::string canonical_;
  std::vector<std::string> texts_;
  bool only_texts_ = true;
};

}  // namespace assay::authz
