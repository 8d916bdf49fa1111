// SPDX-License-Identifier: Apache-2.0
// Between begin and complete the verifier keeps nothing: all it must remember travels sealed through the endpoint.
// AES-256-GCM under a key drawn at start, so a restart voids open tickets and a flood fills no memory.
//
// Layout: "AET" 3 | version 1 | key id 8 | nonce 12 | ciphertext | tag 16; the first 24 bytes are authenticated with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sdk/core/bytes.h"
#include "sdk/core/crypto.h"
#include "sdk/core/result.h"
#include "sdk/core/tpm.h"
#include "verifier/store/store.h"

namespace assay::enrollment {

inline constexpr std::int64_t kTicketLifetimeMs = 60'000;
inline constexpr std::size_t kQualifyingSize = 32;

struct TicketContent {
  std::int64_t expires_ms = 0;  // since the epoch
  Buffer aik_public;            // TPMT_PUBLIC, checked at begin
  tpm::EkKind ek_kind = tpm::EkKind::kRsa2048Low;
  store::EkClass ek_class = store::EkClass::kChain;
  Digest ek_spki{};       // SHA-256 of the EK's SPKI
  Digest host_id{};       // a candidate until complete proved the EK
  Digest secret{};        // SHA-256 of the secret in the credential
  Digest qualifying{};    // asked of TPM2_CertifyCreation
  Buffer canonical_name;  // Name of the canonical EK with this key; empty for other kinds
  std::string label;
  std::optional<Digest> token;  // hash of the enrollment token that was presented
  std::string anchor;           // the root that the EK's chain ended in, for the record; cut to 128 bytes
};

enum class TicketOutcome : std::uint8_t { kOpened, kMalformed, kForeign, kTampered, kExpired };
std::string_view TicketCode(TicketOutcome outcome) noexcept;  // "ticket_malformed", "ticket_foreign", ...

struct OpenedTicket {
  TicketOutcome outcome = TicketOutcome::kMalformed;
  TicketContent content;  // kOpened only
};

// Owns the key. Immutable after construction; any number of threads.
class TicketSealer {
 public:
  TicketSealer();                     // draws a key
  explicit TicketSealer(Secret key);  // 32 bytes, shared by verifiers behind one address; aborts with another size
  // kLimit when the content does not fit limits::kTicket.
  Result<Buffer> Seal(const TicketContent& content) const;
  OpenedTicket Open(Bytes ticket, std::int64_t now_ms) const;

 private:
  Secret key_;
  std::array<std::uint8_t, 8> key_id_{};
};

// The plain content, for the sealer and its tests.
Buffer EncodeTicketContent(const TicketContent& content);
Result<TicketContent> DecodeTicketContent(Bytes encoded);

}  // namespace assay::enrollment
