// SPDX-License-Identifier: Apache-2.0
// A disk in memory whose power can be cut. What was written and not yet synced is kept apart from what is durable, in
// blocks of 512 bytes: a cut leaves of each block any one of the states it went through since the last barrier, a file
// with any of its sizes since then, and of the unsynced changes of names a prefix (journalled file systems keep their
// order). A block is old or new, never a mixture: the one promise the disk makes. Syncing a file does not make its
// name durable. One thread at a time.
#pragma once

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "verifier/audit/io.h"

namespace assay::test {

inline constexpr std::size_t kBlock = 512;

struct PowerInode {
  struct Change {
    std::uint64_t offset = 0;
    Buffer bytes;
    std::uint64_t size = 0;
  };  // size: of the file afterwards
  Buffer live;
  Buffer durable;
  std::vector<Change> pending;

  void Write(std::uint64_t offset, Bytes bytes) {
    const std::size_t end = static_cast<std::size_t>(offset) + bytes.size();
    if (end > live.size()) live.resize(end, 0);
    CopyBytes(bytes, MutableBytes(live).subspan(static_cast<std::size_t>(offset), bytes.size()));
    pending.push_back({offset, ToBuffer(bytes), live.size()});
  }
  void Resize(std::uint64_t size) {
    live.resize(static_cast<std::size_t>(size), 0);
    pending.push_back({size, {}, size});
  }
  void Sync() {
    if (pending.empty()) return;
    durable = live;
    pending.clear();
  }
};

struct PowerDisk {
  struct NameChange {
    std::string name;
    std::uint64_t inode = 0;
    std::string renamed_to;
  };  // inode 0: removed or renamed
  std::map<std::uint64_t, PowerInode> inodes;
  std::map<std::string, std::uint64_t> names, durable_names;
  std::vector<NameChange> pending_names;
  std::uint64_t next_inode = 1;
  bool lies = false;  // barriers return and do nothing

  static void Apply(std::map<std::string, std::uint64_t>& names, const NameChange& change) {
    if (change.inode != 0) names[change.name] = change.inode;
    else if (change.renamed_to.empty()) names.erase(change.name);
    else {
      names[change.renamed_to] = names[change.name];
      names.erase(change.name);
    }
  }
  void Change(const NameChange& change) {
    Apply(names, change);
    pending_names.push_back(change);
  }
};

// How much of what is unsynced survives: nothing, all of it, or by chance.
enum class Survival : std::uint8_t { kNothing, kEverything, kChance };

class PowerCut {
 public:
  PowerCut(std::uint64_t seed, Survival survival) : random_(seed), survival_(survival) {}

  // The disk as the next start finds it.
  PowerDisk Of(const PowerDisk& disk) {
    PowerDisk out;
    out.next_inode = disk.next_inode;
    out.names = disk.durable_names;
    const std::size_t kept = Pick(disk.pending_names.size());
    for (std::size_t i = 0; i < kept; ++i) PowerDisk::Apply(out.names, disk.pending_names[i]);
    out.durable_names = out.names;
    for (const auto& [name, inode] : out.names) {
      PowerInode& file = out.inodes[inode];
      file.live = Contents(disk.inodes.at(inode));
      file.durable = file.live;
    }
    return out;
  }

 private:
  std::size_t Pick(std::size_t changes) {
    if (survival_ == Survival::kNothing) return 0;
    if (survival_ == Survival::kEverything) return changes;
    return std::uniform_int_distribution<std::size_t>(0, changes)(random_);
  }
  Buffer Contents(const PowerInode& inode) {
    if (inode.pending.empty()) return inode.durable;
    const std::size_t sizes = Pick(inode.pending.size());
    const std::size_t size =
        sizes == 0 ? inode.durable.size() : static_cast<std::size_t>(inode.pending[sizes - 1].size);
    std::map<std::size_t, std::size_t> touched;  // block -> changes of it
    for (const auto& change : inode.pending) {
      for (std::size_t block = First(change); block < End(change); ++block) ++touched[block];
    }
    std::map<std::size_t, std::size_t> left;
    for (const auto& [block, changes] : touched) left[block] = Pick(changes);
    Buffer out = inode.durable;
    for (const auto& change : inode.pending) {
      for (std::size_t block = First(change); block < End(change); ++block) {
        if (left[block] == 0) continue;
        --left[block];
        const std::size_t from = std::max<std::size_t>(block * kBlock, static_cast<std::size_t>(change.offset));
        const std::size_t to =
            std::min<std::size_t>((block + 1) * kBlock, static_cast<std::size_t>(change.offset) + change.bytes.size());
        if (out.size() < to) out.resize(to, 0);
        CopyBytes(Bytes(change.bytes).subspan(from - static_cast<std::size_t>(change.offset), to - from),
                  MutableBytes(out).subspan(from, to - from));
      }
    }
    out.resize(size, 0);
    return out;
  }
  static std::size_t First(const PowerInode::Change& change) {
    return static_cast<std::size_t>(change.offset) / kBlock;
  }
  static std::size_t End(const PowerInode::Change& change) {
    return change.bytes.empty() ? First(change)
                                : (static_cast<std::size_t>(change.offset) + change.bytes.size() - 1) / kBlock + 1;
  }

  std::mt19937_64 random_;
  const Survival survival_;
};

// Runs before each operation that changes the disk or makes it durable.
using Boundary = std::function<void()>;

class PowerFile final : public audit::File {
 public:
  PowerFile(PowerDisk& disk, std::uint64_t inode, const Boundary& boundary)
      : disk_(disk), inode_(inode), boundary_(boundary) {}
  Result<std::size_t> WriteAt(std::uint64_t offset, Bytes bytes) override {
    Cross();
    disk_.inodes[inode_].Write(offset, bytes);
    return bytes.size();
  }
  Result<std::size_t> ReadAt(std::uint64_t offset, MutableBytes out) override {
    const Buffer& live = disk_.inodes[inode_].live;
    if (offset >= live.size()) return std::size_t{0};
    const std::size_t size = std::min(out.size(), live.size() - static_cast<std::size_t>(offset));
    CopyBytes(Bytes(live).subspan(static_cast<std::size_t>(offset), size), out.first(size));
    return size;
  }
  Status SyncData() override {
    Cross();
    if (!disk_.lies) disk_.inodes[inode_].Sync();
    return Ok();
  }
  Status Truncate(std::uint64_t size) override {
    Cross();
    disk_.inodes[inode_].Resize(size);
    return Ok();
  }
  Result<audit::FileIdentity> Identity() override {
    return audit::FileIdentity{1, inode_, 1, disk_.inodes[inode_].live.size()};
  }
  Status Lock() override { return Ok(); }

 private:
  void Cross() const {
    if (boundary_) boundary_();
  }
  PowerDisk& disk_;
  const std::uint64_t inode_;
  const Boundary& boundary_;
};

// `disk` outlives it and the files that it opened.
class PowerDirectory final : public audit::Directory {
 public:
  explicit PowerDirectory(PowerDisk& disk, Boundary boundary = {}) : disk_(disk), boundary_(std::move(boundary)) {}
  Result<std::unique_ptr<audit::File>> Open(const std::string& name, audit::Access access) override {
    const auto found = disk_.names.find(name);
    const bool there = found != disk_.names.end();
    if (there && access == audit::Access::kCreate) return MakeError(Code::kConflict, "exists", EEXIST);
    if (there) return Handle(found->second);
    if (access == audit::Access::kRead || access == audit::Access::kReadWrite) return Missing();
    Cross();
    const std::uint64_t inode = disk_.next_inode++;
    disk_.inodes[inode] = {};
    disk_.Change({name, inode, {}});
    return Handle(inode);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    Cross();
    if (!disk_.names.contains(from)) return Missing();
    if (disk_.names.contains(to)) return MakeError(Code::kConflict, "exists", EEXIST);
    disk_.Change({from, 0, to});
    return Ok();
  }
  Status Remove(const std::string& name) override {
    Cross();
    if (!disk_.names.contains(name)) return Missing();
    disk_.Change({name, 0, {}});
    return Ok();
  }
  Status Sync() override {
    Cross();
    if (disk_.lies) return Ok();
    disk_.durable_names = disk_.names;
    disk_.pending_names.clear();
    return Ok();
  }
  Result<std::vector<std::string>> List() override {
    std::vector<std::string> names;
    for (const auto& [name, inode] : disk_.names) names.push_back(name);
    return names;
  }
  Result<audit::FileIdentity> Identity(const std::string& name) override {
    const auto found = disk_.names.find(name);
    if (found == disk_.names.end()) return Missing();
    return audit::FileIdentity{1, found->second, 1, disk_.inodes[found->second].live.size()};
  }
  const std::string& path() const noexcept override { return path_; }

 private:
  std::unique_ptr<audit::File> Handle(std::uint64_t inode) {
    return std::make_unique<PowerFile>(disk_, inode, boundary_);
  }
  static Error Missing() { return MakeError(Code::kNotFound, "No such file or directory", ENOENT); }
  void Cross() const {
    if (boundary_) boundary_();
  }
  PowerDisk& disk_;
  const Boundary boundary_;
  const std::string path_ = "simulated";
};

}  // namespace assay::test
