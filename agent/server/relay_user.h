// SPDX-License-Identifier: Apache-2.0
// Which uid is the relay's. A name is looked up when first needed and, while it does not exist (a dynamic user
// appears with its unit), again every few seconds. One thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace assay::agent {

class RelayUser {
 public:
  explicit RelayUser(std::string name_or_number);
  bool Is(uid_t uid);

 private:
  void Look();
  std::string name_;
  bool numeric_ = false;
  std::optional<uid_t> uid_;
  std::uint64_t looked_ms_ = 0;
};

}  // namespace assay::agent
