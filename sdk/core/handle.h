// SPDX-License-Identifier: Apache-2.0
// Owning handles: Handle<T, Free> for a foreign library's objects, Fd for file descriptors.
#pragma once

#include <unistd.h>

#include <memory>
#include <utility>

namespace assay {

template <auto Free>
struct HandleDeleter {
  template <typename T>
  void operator()(T* object) const noexcept {
    Free(object);
  }
};

template <typename T, auto Free>
using Handle = std::unique_ptr<T, HandleDeleter<Free>>;

// Owns one descriptor. Moves by swap, never converts to int by itself. Whoever opens adds O_CLOEXEC.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  Fd(Fd&& other) noexcept { std::swap(fd_, other.fd_); }
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;

  bool valid() const noexcept { return fd_ >= 0; }
  int get() const noexcept { return fd_; }
  int Release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

}  // namespace assay
