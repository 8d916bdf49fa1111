// SPDX-License-Identifier: Apache-2.0
// What a decision reads: principals, their rules, and the links to and from them. Implementations answer from the
// present state on every call; what they return stays valid while the caller holds its lock or transaction.
#pragma once

#include <span>
#include <string_view>

#include "verifier/authz/model.h"

namespace assay::authz {

class Directory {
 public:
  virtual ~Directory() = default;
  virtual const Principal* Find(std::string_view id) const = 0;  // null: no such principal
  virtual std::span<const Rule> Rules(std::string_view principal) const = 0;
  virtual std::span<const Link* const> Inbound(std::string_view principal) const = 0;  // dead ones too
  virtual std::span<const Link* const> Outbound(std::string_view principal) const = 0;
};

}  // namespace assay::authz
