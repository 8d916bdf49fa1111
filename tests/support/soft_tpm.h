// SPDX-License-Identifier: Apache-2.0
// A TPM in software behind tpm::Device: keys, credential activation and attestations that a verifier accepts, and
// switches that make it lie. Faster than swtpm and able to do what no TPM does; the protocol is tested with swtpm too.
#pragma once

#include <openssl/evp.h>
#include <openssl/rsa.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sdk/core/crypto.h"
#include "sdk/core/tpm.h"
#include "sdk/tpm/device.h"
#include "tests/support/forge.h"

namespace assay::test {

// RSA keys are slow to make: one EK a machine and kind for the whole process.
inline const PrivateKey& EkKeyOf(int machine, tpm::EkKind kind) {
  static std::map<std::pair<int, tpm::EkKind>, PrivateKey> keys;
  const auto at = keys.find({machine, kind});
  if (at != keys.end()) return at->second;
  const bool rsa = kind == tpm::EkKind::kRsa2048Low || kind == tpm::EkKind::kRsa2048High;
  const KeyType type = rsa ? KeyType::kRsa2048 : kind == tpm::EkKind::kEccP384High ? KeyType::kP384 : KeyType::kP256;
  return keys.emplace(std::pair{machine, kind}, PrivateKey::Generate(type).value()).first->second;
}

// The template with the key in place of its unique field, which stands last.
inline Buffer AikAreaOf(tpm::AikKind kind, Bytes unique, const PublicKey& key) {
  const Buffer area = tpm::AikTemplate(kind, unique);
  const tpm::PublicArea decoded = tpm::DecodePublicArea(area).value();
  const std::size_t tail =
      decoded.type == tpm::Alg::kRsa ? 2 + decoded.rsa_modulus.size() : 4 + decoded.ecc_x.size() + decoded.ecc_y.size();
  Writer out;
  out.Put(Bytes(area).first(area.size() - tail));
  if (decoded.type == tpm::Alg::kRsa) {
    out.PutU16Sized(key.Rsa().value().modulus);
  } else {
    const auto point = key.Point().value();
    out.PutU16Sized(point.x);
    out.PutU16Sized(point.y);
  }
  return std::move(out).Take();
}

// TPMS_ATTEST of TPM2_CertifyCreation, any field to be set wrong.
struct CreationFields {
  std::uint32_t magic = tpm::kGenerated;
  std::uint16_t type = static_cast<std::uint16_t>(tpm::AttestType::kCreation);
  Buffer extra_data;
  Buffer object_name;
  Buffer Encode() const {
    Writer out;
    out.U32Be(magic), out.U16Be(type), out.PutU16Sized(Buffer(34, 0x0B)), out.PutU16Sized(extra_data);
    out.U64Be(1000), out.U32Be(1), out.U32Be(0), out.U8(1), out.U64Be(0x2020'0312'0001'2000);
    out.PutU16Sized(object_name), out.PutU16Sized(Buffer(32, 0x0C));
    return std::move(out).Take();
  }
};

class SoftTpm final : public tpm::Device {
 public:
  explicit SoftTpm(int machine) : machine_(machine) {}

  std::map<std::uint32_t, Buffer> nv;
  std::map<std::uint32_t, Buffer> persistent_areas;
  std::map<std::string, Error> faults;    // by the method's name
  std::optional<tpm::EkKind> certify_as;  // lie: certify the creation of another kind of EK
  tpm::ClockInfo clock{.clock = 5000, .reset_count = 1, .restart_count = 0, .safe = true};
  std::vector<std::string> calls;

  struct Key {
    std::shared_ptr<PrivateKey> aik;
    tpm::AikKind aik_kind{};
    const PrivateKey* ek = nullptr;
    tpm::EkKind ek_kind{};
    Buffer area;
  };
  const std::map<std::uint32_t, Key>& loaded() const { return transient_; }

  Result<Buffer> ReadNv(std::uint32_t index) override {
    if (auto fault = Called("ReadNv")) return *fault;
    const auto at = nv.find(index);
    if (at == nv.end()) return MakeError(Code::kNotFound, "no such NV index");
    return at->second;
  }
  Result<tpm::CreatedKey> CreateEk(tpm::EkKind kind) override {
    if (auto fault = Called("CreateEk")) return *fault;
    const PrivateKey& key = EkKeyOf(machine_, kind);
    return Load({nullptr, {}, &key, kind, tpm::EkPublicArea(kind, key.Public().value()).value()});
  }
  Result<tpm::CreatedKey> CreateAik(tpm::AikKind kind, Bytes unique) override {
    if (auto fault = Called("CreateAik")) return *fault;
    auto key = std::make_shared<PrivateKey>(
        PrivateKey::Generate(kind == tpm::AikKind::kEccP256 ? KeyType::kP256 : KeyType::kRsa2048).value());
    const Buffer area = AikAreaOf(kind, unique, key->Public().value());
    return Load({std::move(key), kind, nullptr, {}, area});
  }
  Status Persist(std::uint32_t transient, std::uint32_t handle) override {
    if (auto fault = Called("Persist")) return *fault;
    persistent_[handle] = transient_.at(transient);
    persistent_areas[handle] = transient_.at(transient).area;
    return Ok();
  }
  Status RemovePersistent(std::uint32_t handle) override {
    if (auto fault = Called("RemovePersistent")) return *fault;
    persistent_areas.erase(handle);
    if (persistent_.erase(handle) == 0) return MakeError(Code::kNotFound, "no such handle");
    return Ok();
  }
  Result<Buffer> ReadPublic(std::uint32_t handle) override {
    if (auto fault = Called("ReadPublic")) return *fault;
    const auto at = persistent_areas.find(handle);
    if (at == persistent_areas.end()) return MakeError(Code::kNotFound, "no such handle");
    return at->second;
  }
  Result<Secret> ActivateCredential(std::uint32_t aik, std::uint32_t ek, Bytes credential_blob,
                                    Bytes encrypted_secret) override {
    if (auto fault = Called("ActivateCredential")) return *fault;
    return Activate(transient_.at(aik), transient_.at(ek), credential_blob, encrypted_secret);
  }
  Result<tpm::AttestedBytes> CertifyCreation(std::uint32_t aik, const tpm::CreatedKey& object,
                                             Bytes qualifying) override {
    if (auto fault = Called("CertifyCreation")) return *fault;
    const Key& ek = transient_.at(object.handle);
    CreationFields fields;
    fields.extra_data = ToBuffer(qualifying);
    const tpm::EkKind kind = certify_as.value_or(ek.ek_kind);
    const PublicKey key = EkKeyOf(machine_, kind).Public().value();
    fields.object_name = tpm::ObjectName(tpm::EkPublicArea(kind, key).value()).value();
    return Sign(transient_.at(aik), fields.Encode());
  }
  Result<tpm::QuoteResult> Quote(std::uint32_t aik, tpm::PcrSelection selection, const Digest& extra_data) override {
    if (auto fault = Called("Quote")) return *fault;
    const auto at = persistent_.find(aik);
    if (at == persistent_.end()) return MakeError(Code::kNotFound, "no such handle");
    tpm::QuoteResult out;
    Writer values;
    for (int pcr = 0; pcr < 24; ++pcr) {
      if ((selection.mask >> pcr & 1U) == 0) continue;
      out.pcrs.emplace_back();
      values.Put(out.pcrs.back());
    }
    clock.clock += 10;
    QuoteFields fields;
    fields.extra_data = extra_data;
    fields.clock = clock;
    fields.selections = {selection};
    fields.pcr_digest = Sha256(values.buffer());
    tpm::AttestedBytes attested = Sign(at->second, EncodeQuote(fields));
    out.attest = std::move(attested.attest);
    out.signature = std::move(attested.signature);
    return out;
  }
  Result<std::vector<Digest>> ReadPcrs(tpm::PcrSelection selection) override {
    return std::vector<Digest>(static_cast<std::size_t>(std::popcount(selection.mask)));
  }
  Status ExtendPcr(std::uint8_t, const Digest&) override { return Ok(); }
  Result<tpm::ClockInfo> ReadClock() override { return clock; }
  Status FlushTransient(std::uint32_t handle) override {
    calls.emplace_back("FlushTransient");
    if (transient_.erase(handle) == 0) return MakeError(Code::kNotFound, "no such handle");
    return Ok();
  }
  Result<Buffer> Random(std::size_t size) override {
    Buffer out(size);
    RandomBytes(out);
    return out;
  }
  Result<std::vector<std::pair<std::string, std::string>>> Describe() override {
    return std::vector<std::pair<std::string, std::string>>{};
  }

  static tpm::AttestedBytes Sign(const Key& aik, Buffer attest) {
    const SignatureScheme scheme = aik.aik_kind == tpm::AikKind::kRsaSsa   ? SignatureScheme::kRsaSsaSha256
                                   : aik.aik_kind == tpm::AikKind::kRsaPss ? SignatureScheme::kRsaPssSha256
                                                                           : SignatureScheme::kEcdsaP256Sha256;
    const Buffer raw = aik.aik->Sign(scheme, attest).value();
    return {std::move(attest), EncodeSignature(scheme, raw)};
  }

 private:
  std::optional<Error> Called(const char* method) {
    calls.emplace_back(method);
    const auto at = faults.find(method);
    return at == faults.end() ? std::nullopt : std::optional<Error>(at->second);
  }
  tpm::CreatedKey Load(Key key) {
    tpm::CreatedKey out;
    out.handle = next_++;
    out.public_area = key.area;
    out.creation_hash = Buffer(32, 0x0C);
    transient_[out.handle] = std::move(key);
    return out;
  }
  // The inverse of TPM2_MakeCredential, RSA-2048 and P-256 (Part 1, section 24.5).
  static Result<Secret> Activate(const Key& aik, const Key& ek, Bytes credential_blob, Bytes encrypted_secret) {
    const auto integrity_error = [] { return MakeError(Code::kTpm, "TPM_RC_INTEGRITY", 0x1DF); };
    Reader outer(credential_blob), secret_reader(encrypted_secret);
    Reader blob(outer.TakeU16Sized(512));
    const Bytes sealed = secret_reader.TakeU16Sized(512);
    const Bytes mac = blob.TakeU16Sized(64);
    const Bytes identity = blob.Rest();
    if (!outer.ok() || !outer.AtEnd() || !secret_reader.ok() || !secret_reader.AtEnd() || !blob.ok())
      return MakeError(Code::kTpm, "TPM_RC_SIZE", 0x1D5);
    const Secret seed = ek.ek->type() == KeyType::kRsa2048 ? RsaSeed(*ek.ek, sealed) : EccSeed(*ek.ek, sealed);
    if (seed.empty()) return integrity_error();
    const Buffer name = tpm::ObjectName(aik.area).value();
    const Secret hmac_key = KdfaSha256(seed.view(), "INTEGRITY", {}, {}, 256);
    if (!Equal(HmacSha256(hmac_key.view(), {identity, Bytes(name)}), mac)) return integrity_error();
    const Secret key = KdfaSha256(seed.view(), "STORAGE", name, {}, 128);
    Buffer plain(identity.size());
    const Handle<EVP_CIPHER_CTX, EVP_CIPHER_CTX_free> ctx{EVP_CIPHER_CTX_new()};
    const std::array<std::uint8_t, 16> iv{};
    int size = 0;
    EVP_DecryptInit_ex2(ctx.get(), EVP_aes_128_cfb128(), key.view().data(), iv.data(), nullptr);
    EVP_DecryptUpdate(ctx.get(), plain.data(), &size, identity.data(), static_cast<int>(identity.size()));
    Reader digest(plain);
    const Bytes secret = digest.TakeU16Sized(64);
    if (!digest.ok() || !digest.AtEnd()) return integrity_error();
    return Secret::CopyOf(secret);
  }
  static Secret RsaSeed(const PrivateKey& ek, Bytes sealed) {
    const EvpPkeyCtx ctx{EVP_PKEY_CTX_new(ek.get(), nullptr)};
    EVP_PKEY_decrypt_init(ctx.get());
    EVP_PKEY_CTX_set_rsa_padding(ctx.get(), RSA_PKCS1_OAEP_PADDING);
    EVP_PKEY_CTX_set_rsa_oaep_md(ctx.get(), EVP_sha256());
    EVP_PKEY_CTX_set0_rsa_oaep_label(ctx.get(), OPENSSL_memdup("IDENTITY", 9), 9);
    Secret out(256);
    std::size_t size = 256;
    if (EVP_PKEY_decrypt(ctx.get(), out.fill().data(), &size, sealed.data(), sealed.size()) != 1) {
      (void)OpenSslErrorText();
      return Secret();
    }
    return Secret::CopyOf(out.view().first(size));
  }
  static Secret EccSeed(const PrivateKey& ek, Bytes sealed) {
    Reader point(sealed);
    const Bytes x = point.TakeU16Sized(32), y = point.TakeU16Sized(32);
    const Result<PublicKey> ephemeral = PublicKey::FromP256(x, y);
    if (!ephemeral.ok()) return Secret();
    const EvpPkeyCtx ctx{EVP_PKEY_CTX_new(ek.get(), nullptr)};
    Buffer z(32);
    std::size_t size = z.size();
    if (EVP_PKEY_derive_init(ctx.get()) != 1 || EVP_PKEY_derive_set_peer(ctx.get(), ephemeral->get()) != 1 ||
        EVP_PKEY_derive(ctx.get(), z.data(), &size) != 1)
      return Secret();
    const Buffer own = ek.Public().value().Point().value().x;
    const std::array<std::uint8_t, 4> counter = {0, 0, 0, 1};
    return Secret::CopyOf(
        Sha256({counter, Bytes(z), AsBytes(std::string_view("IDENTITY", 9)), x, Bytes(own)}));  // KDFe
  }

  int machine_;
  std::uint32_t next_ = 0x80000000;
  std::map<std::uint32_t, Key> transient_, persistent_;
};

}  // namespace assay::test
