// SPDX-License-Identifier: Apache-2.0
// Hashes, MACs and key derivation over OpenSSL 3. Keys are in keys.cc.
#include "sdk/core/crypto.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <cstdlib>

namespace assay {
namespace {

constexpr std::size_t kBlockSize = 64;  // SHA-256, FIPS 180-4 section 5.2.1

void Require(bool held) noexcept {
  if (!held) std::abort();
}

// Fetching an algorithm takes a lock and a search: done once for the process.
const EVP_MD* Sha256Algorithm() noexcept {
  static const EVP_MD* const md = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  Require(md != nullptr);
  return md;
}

// One context a thread: initialising it again with the same algorithm allocates nothing.
EVP_MD_CTX* ThreadContext() noexcept {
  thread_local const EvpMdCtx ctx{EVP_MD_CTX_new()};
  Require(ctx != nullptr);
  return ctx.get();
}

void Begin(EVP_MD_CTX* ctx) noexcept { Require(EVP_DigestInit_ex2(ctx, Sha256Algorithm(), nullptr) == 1); }
void Add(EVP_MD_CTX* ctx, Bytes data) noexcept { Require(EVP_DigestUpdate(ctx, data.data(), data.size()) == 1); }
Digest End(EVP_MD_CTX* ctx) noexcept {
  Digest out;
  Require(EVP_DigestFinal_ex(ctx, out.data(), nullptr) == 1);
  return out;
}

}  // namespace

Digest Sha256(Bytes data) noexcept {
  EVP_MD_CTX* ctx = ThreadContext();
  Begin(ctx);
  Add(ctx, data);
  return End(ctx);
}

Digest Sha256(std::initializer_list<Bytes> parts) noexcept {
  EVP_MD_CTX* ctx = ThreadContext();
  Begin(ctx);
  for (const Bytes part : parts) Add(ctx, part);
  return End(ctx);
}

Sha256Stream::Sha256Stream() : ctx_(EVP_MD_CTX_new()) {
  Require(ctx_ != nullptr);
  Begin(ctx_.get());
}
void Sha256Stream::Update(Bytes data) noexcept { Add(ctx_.get(), data); }
Digest Sha256Stream::Finish() noexcept {
  const Digest out = End(ctx_.get());
  Begin(ctx_.get());
  return out;
}

// RFC 2104: H(K ^ opad, H(K ^ ipad, text)), with both keyed states kept.
struct HmacKey::State {
  EvpMdCtx inner{EVP_MD_CTX_new()};
  EvpMdCtx outer{EVP_MD_CTX_new()};
};

HmacKey::HmacKey(Bytes key) {
  std::array<std::uint8_t, kBlockSize> padded{};
  if (key.size() > kBlockSize) {
    const Digest short_key = Sha256(key);
    CopyBytes(short_key, MutableBytes(padded).first(short_key.size()));
  } else {
    CopyBytes(key, MutableBytes(padded).first(key.size()));
  }
  auto state = std::make_shared<State>();
  Require(state->inner != nullptr && state->outer != nullptr);
  for (auto& byte : padded) byte ^= 0x36;
  Begin(state->inner.get());
  Add(state->inner.get(), padded);
  for (auto& byte : padded) byte ^= 0x36 ^ 0x5c;
  Begin(state->outer.get());
  Add(state->outer.get(), padded);
  OPENSSL_cleanse(padded.data(), padded.size());
  state_ = std::move(state);
}

Digest HmacKey::Mac(std::initializer_list<Bytes> parts) const noexcept {
  EVP_MD_CTX* ctx = ThreadContext();
  Require(EVP_MD_CTX_copy_ex(ctx, state_->inner.get()) == 1);
  for (const Bytes part : parts) Add(ctx, part);
  const Digest inner = End(ctx);
  Require(EVP_MD_CTX_copy_ex(ctx, state_->outer.get()) == 1);
  Add(ctx, inner);
  return End(ctx);
}

Digest HmacSha256(Bytes key, Bytes data) noexcept { return HmacKey(key).Mac({data}); }
Digest HmacSha256(Bytes key, std::initializer_list<Bytes> parts) noexcept { return HmacKey(key).Mac(parts); }

Secret HkdfSha256(Bytes input_key, Bytes salt, Bytes info, std::size_t size) {
  Require(size > 0 && size <= 255 * kSha256Size);
  const Digest pseudo_random_key = HmacSha256(salt, input_key);
  const HmacKey expand(pseudo_random_key);
  Secret out(size);
  Digest block{};
  std::size_t made = 0;
  for (std::uint8_t counter = 1; made < size; ++counter) {
    const Bytes previous = counter == 1 ? Bytes{} : Bytes(block);
    block = expand.Mac({previous, info, Bytes(&counter, 1)});
    const std::size_t part = std::min(block.size(), size - made);
    CopyBytes(Bytes(block).first(part), out.fill().subspan(made, part));
    made += part;
  }
  OPENSSL_cleanse(block.data(), block.size());
  return out;
}

Secret KdfaSha256(Bytes key, std::string_view label, Bytes context_u, Bytes context_v, std::uint32_t bits) {
  Require(bits % 8 == 0 && bits > 0);
  const HmacKey mac(key);
  Secret out(bits / 8);
  Writer size_bits;
  size_bits.U32Be(bits);
  constexpr std::uint8_t kZero = 0;  // the label's terminating zero is hashed
  std::size_t made = 0;
  for (std::uint32_t counter = 1; made < out.view().size(); ++counter) {
    Writer index;
    index.U32Be(counter);
    const Digest block =
        mac.Mac({index.buffer(), AsBytes(label), Bytes(&kZero, 1), context_u, context_v, size_bits.buffer()});
    const std::size_t part = std::min(block.size(), out.view().size() - made);
    CopyBytes(Bytes(block).first(part), out.fill().subspan(made, part));
    made += part;
  }
  return out;
}

void RandomBytes(MutableBytes out) noexcept { Require(RAND_bytes(out.data(), static_cast<int>(out.size())) == 1); }

std::string OpenSslErrorText() {
  std::array<char, 256> text{};
  const unsigned long code = ERR_get_error();
  if (code == 0) return "no OpenSSL error recorded";
  ERR_error_string_n(code, text.data(), text.size());
  ERR_clear_error();
  return text.data();
}

}  // namespace assay
