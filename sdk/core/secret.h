// SPDX-License-Identifier: Apache-2.0
// Secret: key material that wipes itself. It moves, is never copied, compared or printed.
#pragma once

#include <openssl/crypto.h>

#include <utility>

#include "sdk/core/bytes.h"

namespace assay {

class Secret {
 public:
  Secret() = default;
  explicit Secret(std::size_t size) : data_(size) {}
  static Secret CopyOf(Bytes bytes) {
    Secret secret(bytes.size());
    CopyBytes(bytes, secret.data_);
    return secret;
  }
  ~Secret() { Wipe(); }
  Secret(Secret&& other) noexcept : data_(std::move(other.data_)) { other.data_.clear(); }
  Secret& operator=(Secret&& other) noexcept {
    if (this != &other) {
      Wipe();
      data_ = std::move(other.data_);
      other.data_.clear();
    }
    return *this;
  }
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;

  Bytes view() const noexcept { return data_; }
  MutableBytes fill() noexcept { return data_; }
  bool empty() const noexcept { return data_.empty(); }

 private:
  void Wipe() noexcept {
    if (!data_.empty()) OPENSSL_cleanse(data_.data(), data_.size());
  }
  Buffer data_;
};

}  // namespace assay
