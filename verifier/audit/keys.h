// SPDX-License-Identifier: Apache-2.0
// The trail's identity and its MAC key, in one private file: three lines of text, made once. Whoever holds it can
// rewrite the trail unseen: keep it away from backups of the trail itself.
#pragma once

#include <array>
#include <string>

#include "sdk/core/bytes.h"
#include "sdk/core/crypto.h"
#include "sdk/core/result.h"
#include "sdk/core/secret.h"

namespace assay::audit {

using LogId = std::array<std::uint8_t, 16>;  // random, drawn once per trail
using KeyId = std::array<std::uint8_t, 16>;  // of the MAC key, says nothing about it

class AuditKeys {
 public:
  // Draws a log id and a key and writes them to `path` (0600, made durable). kConflict when the file exists.
  static Result<AuditKeys> Create(const std::string& path);
  // kDenied when others may read the file or own it, kMalformed, kNotFound. A reader may be another user than the
  // verifier, root for instance: `owner` says whether the file must be ours.
  enum class Owner : std::uint8_t { kUs, kAnyone };
  static Result<AuditKeys> Load(const std::string& path, Owner owner = Owner::kUs);

  AuditKeys(const LogId& log_id, Bytes key);
  const LogId& log_id() const noexcept { return log_id_; }
  const KeyId& key_id() const noexcept { return key_id_; }
  const HmacKey& mac_key() const noexcept { return mac_key_; }

 private:
  LogId log_id_;
  KeyId key_id_;
  HmacKey mac_key_;  // HKDF of the file's key, bound to the log id
};

}  // namespace assay::audit
