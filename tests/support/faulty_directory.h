// SPDX-License-Identifier: Apache-2.0
// A Directory that counts its operations, fails the n-th one, and can make every write short. After the fault it counts
// what is still tried: a log that stopped must sync nothing again.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>

#include "verifier/audit/io.h"

namespace assay::test {

enum class Op : std::uint8_t { kWrite, kSync, kRename, kOpen, kDirectorySync, kTruncate };

struct FaultPlan {
  std::atomic<int> operations{0};  // of all kinds
  std::atomic<int> fail_at{-1};    // index of the operation that fails
  int os = EIO;
  bool short_write = false;  // the failing write writes half before it fails
  bool all_short = false;    // every write writes one byte or half
  std::atomic<bool> failed{false};
  std::atomic<int> syncs_after_fault{0};
  std::atomic<Op> failed_op{Op::kWrite};

  bool Fails(Op op) {
    if (failed && op == Op::kSync) ++syncs_after_fault;
    if (operations++ != fail_at) return false;
    failed = true;
    failed_op = op;
    return true;
  }
  Error Fault() const {
    return MakeError(Code::kIo, os == ENOSPC ? "No space left on device" : "Input/output error",
                     static_cast<std::uint32_t>(os));
  }
};

class FaultyFile final : public audit::File {
 public:
  FaultyFile(std::unique_ptr<audit::File> file, FaultPlan& plan) : file_(std::move(file)), plan_(plan) {}
  Result<std::size_t> WriteAt(std::uint64_t offset, Bytes bytes) override {
    if (plan_.Fails(Op::kWrite)) {
      if (plan_.short_write && bytes.size() > 1) {
        const auto half = file_->WriteAt(offset, bytes.first(bytes.size() / 2));
        if (!half.ok()) return half;
      }
      return plan_.Fault();
    }
    if (plan_.all_short && bytes.size() > 1)
      return file_->WriteAt(
          offset, bytes.first(bytes.size() > 4096 ? bytes.size() / 2 : std::max<std::size_t>(1, bytes.size() / 3)));
    return file_->WriteAt(offset, bytes);
  }
  Result<std::size_t> ReadAt(std::uint64_t offset, MutableBytes out) override { return file_->ReadAt(offset, out); }
  Status SyncData() override {
    if (plan_.Fails(Op::kSync)) return plan_.Fault();
    return file_->SyncData();
  }
  Status Truncate(std::uint64_t size) override {
    if (plan_.Fails(Op::kTruncate)) return plan_.Fault();
    return file_->Truncate(size);
  }
  Result<audit::FileIdentity> Identity() override { return file_->Identity(); }
  Status Lock() override { return file_->Lock(); }

 private:
  std::unique_ptr<audit::File> file_;
  FaultPlan& plan_;
};

class FaultyDirectory final : public audit::Directory {
 public:
  FaultyDirectory(std::unique_ptr<audit::Directory> directory, FaultPlan& plan)
      : directory_(std::move(directory)), plan_(plan) {}
  Result<std::unique_ptr<audit::File>> Open(const std::string& name, audit::Access access) override {
    if (plan_.Fails(Op::kOpen)) return plan_.Fault();
    ASSAY_TRY(std::unique_ptr<audit::File> file, directory_->Open(name, access));
    return std::unique_ptr<audit::File>(std::make_unique<FaultyFile>(std::move(file), plan_));
  }
  Status Rename(const std::string& from, const std::string& to) override {
    if (plan_.Fails(Op::kRename)) return plan_.Fault();
    return directory_->Rename(from, to);
  }
  Status Remove(const std::string& name) override { return directory_->Remove(name); }
  Status Sync() override {
    if (plan_.Fails(Op::kDirectorySync)) return plan_.Fault();
    return directory_->Sync();
  }
  Result<std::vector<std::string>> List() override { return directory_->List(); }
  Result<audit::FileIdentity> Identity(const std::string& name) override { return directory_->Identity(name); }
  const std::string& path() const noexcept override { return directory_->path(); }

 private:
  std::unique_ptr<audit::Directory> directory_;
  FaultPlan& plan_;
};

}  // namespace assay::test
