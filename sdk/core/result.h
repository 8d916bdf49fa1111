// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value or the reason there is none. An unchecked read aborts in every build.
// A failed check is a value (a verdict), never an Error: Error means "could not judge".
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace assay {

// The few causes a caller branches on. Prose for people goes into Error::detail.
enum class Code : std::uint8_t {
  kMalformed,    // bytes or text that break their format
  kLimit,        // larger, longer or more than a named limit
  kUnsupported,  // well formed, but not something this build handles
  kNotFound,
  kDenied,       // the caller may not, or the proof is wrong
  kConflict,     // state moved on: try again from a fresh read
  kBusy,         // a queue or budget is full: try again later
  kUnavailable,  // a peer or device is not there
  kTimeout,
  kIo,
  kCrypto,
  kTpm,
  kConfig,
  kInternal,
};

const char* CodeName(Code code) noexcept;

struct Error {
  Code code = Code::kInternal;
  std::string detail;    // one sentence: cause, then fix where there is one
  std::uint32_t os = 0;  // errno or TSS2_RC, 0 when neither

  std::string ToString() const;
};

[[nodiscard]] inline Error MakeError(Code code, std::string detail, std::uint32_t os = 0) {
  return Error{code, std::move(detail), os};
}

template <typename T>
class [[nodiscard]] Result {
  static_assert(!std::is_same_v<T, bool>, "Result<bool> reads as its own success: use an enum");
  static_assert(!std::is_same_v<T, Error>);

 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  T& value() & {
    Require(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    Require(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    Require(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    Require(!ok());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    Require(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  static void Require(bool held) noexcept {
    if (!held) std::abort();
  }
  std::variant<T, Error> state_;
};

// Success without a value.
struct Unit {};
using Status = Result<Unit>;
inline Status Ok() { return Unit{}; }

}  // namespace assay

// Returns the error of EXPR from the enclosing function, or binds its value: ASSAY_TRY(auto x, F());
#define ASSAY_CONCAT_(a, b) a##b
#define ASSAY_CONCAT(a, b) ASSAY_CONCAT_(a, b)
#define ASSAY_TRY(decl, expr) ASSAY_TRY_(ASSAY_CONCAT(assay_try_, __LINE__), decl, expr)
#define ASSAY_TRY_(tmp, decl, expr)             \
  auto tmp = (expr);                            \
  if (!tmp.ok()) return std::move(tmp).error(); \
  decl = std::move(tmp).value()
#define ASSAY_CHECK_OK(expr)                                        \
  do {                                                              \
    auto assay_status = (expr);                                     \
    if (!assay_status.ok()) return std::move(assay_status).error(); \
  } while (false)
