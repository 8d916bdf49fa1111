// SPDX-License-Identifier: Apache-2.0
// Owning handles for OpenSSL's X.509 objects, and the one way in which this room reads a certificate from bytes.
#pragma once

#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <string>

#include "sdk/core/bytes.h"
#include "sdk/core/handle.h"
#include "sdk/core/result.h"

namespace assay::enrollment {

using X509Handle = Handle<X509, X509_free>;
using X509StoreHandle = Handle<X509_STORE, X509_STORE_free>;
using X509StoreCtxHandle = Handle<X509_STORE_CTX, X509_STORE_CTX_free>;
using BioHandle = Handle<BIO, BIO_free_all>;

// Owns a stack of certificates and the certificates in it.
inline void FreeX509Stack(STACK_OF(X509) * stack) noexcept { sk_X509_pop_free(stack, X509_free); }
using X509StackHandle = Handle<STACK_OF(X509), FreeX509Stack>;

// Exactly one certificate, nothing after it; at most limits::kCertificate bytes. OpenSSL's parser is lenient about DER
// where manufacturers are; signatures are checked over the bytes as they came.
Result<X509Handle> ParseCertificate(Bytes der);
Result<Buffer> CertificateDer(const X509* certificate);
std::string NameText(const X509_NAME* name);  // one line, for messages only

// Object identifiers of the TCG (TCG OID registry).
inline constexpr char kOidEkCertificate[] = "2.23.133.8.1";   // tcg-kp-EKCertificate
inline constexpr char kOidAikCertificate[] = "2.23.133.8.3";  // tcg-kp-AIKCertificate

enum class KeyPurpose : std::uint8_t { kUnstated, kAllowed, kForbidden };
// What the extended key usage says about `oid`: unstated when the extension is absent.
KeyPurpose PurposeOf(const X509* certificate, const char* oid);

}  // namespace assay::enrollment
