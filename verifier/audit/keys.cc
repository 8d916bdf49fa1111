// SPDX-License-Identifier: Apache-2.0
#include "verifier/audit/keys.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "verifier/audit/io.h"

namespace assay::audit {
namespace {

constexpr std::string_view kMagic = "assay-audit-key-1\n";
constexpr std::string_view kLog = "log ";
constexpr std::string_view kKey = "key ";
constexpr std::size_t kKeySize = 32;
constexpr std::size_t kFileSize = kMagic.size() + kLog.size() + 32 + 1 + kKey.size() + 64 + 1;

struct Split {
  std::string directory;
  std::string name;
};
Split SplitPath(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

Result<AuditKeys> Parse(Bytes content) {
  Reader in(content);
  const Bytes magic = in.Take(kMagic.size());
  const Bytes log_label = in.Take(kLog.size());
  const Bytes log_hex = in.Take(32);
  const std::uint8_t log_end = in.U8();
  const Bytes key_label = in.Take(kKey.size());
  const Bytes key_hex = in.Take(64);
  const std::uint8_t key_end = in.U8();
  ASSAY_CHECK_OK(in.Finish("audit key file"));
  if (!Equal(magic, AsBytes(kMagic)) || !Equal(log_label, AsBytes(kLog)) || !Equal(key_label, AsBytes(kKey)) ||
      log_end != '\n' || key_end != '\n') {
    return MakeError(Code::kMalformed, "not an audit key file of format 1");
  }
  ASSAY_TRY(const Buffer log, FromHex(AsText(log_hex)));
  ASSAY_TRY(Buffer key, FromHex(AsText(key_hex)));
  LogId log_id{};
  CopyBytes(log, log_id);
  AuditKeys keys(log_id, key);
  OPENSSL_cleanse(key.data(), key.size());
  return keys;
}

}  // namespace

AuditKeys::AuditKeys(const LogId& log_id, Bytes key)
    : log_id_(log_id), key_id_{}, mac_key_(HkdfSha256(key, log_id, AsBytes("assay/audit/mac/1"), 32).view()) {
  CopyBytes(HkdfSha256(key, log_id, AsBytes("assay/audit/key-id/1"), key_id_.size()).view(), key_id_);
}

Result<AuditKeys> AuditKeys::Create(const std::string& path) {
  const Split where = SplitPath(path);
  ASSAY_TRY(const std::unique_ptr<Directory> directory, OpenAnyDirectory(where.directory));
  Secret key(kKeySize);
  RandomBytes(key.fill());
  const LogId log_id = RandomArray<16>();
  std::string text =
      std::string(kMagic) + std::string(kLog) + ToHex(log_id) + "\n" + std::string(kKey) + ToHex(key.view()) + "\n";
  const Secret content = Secret::CopyOf(AsBytes(text));
  OPENSSL_cleanse(text.data(), text.size());
  const std::string temporary = where.name + ".new";
  auto file = directory->Open(temporary, Access::kCreate);
  if (!file.ok()) return Named(file.error(), "creating", path + ".new");
  Status written = WriteAll(**file, path, 0, content.view());
  if (written.ok()) written = (*file)->SyncData();
  if (written.ok()) written = directory->Rename(temporary, where.name);
  if (written.ok()) written = directory->Sync();
  if (written.ok()) return AuditKeys(log_id, key.view());
  const Status removed = directory->Remove(temporary);
  (void)removed;  // after the rename there is nothing to remove
  return Named(written.error(), "creating", path);
}

Result<AuditKeys> AuditKeys::Load(const std::string& path, Owner owner) {
  const Split where = SplitPath(path);
  ASSAY_TRY(const std::unique_ptr<Directory> directory, OpenAnyDirectory(where.directory));
  auto file = directory->Open(where.name, owner == Owner::kUs ? Access::kReadWrite : Access::kRead);
  if (!file.ok()) return Named(file.error(), "opening audit key", path);
  ASSAY_TRY(Buffer content, ReadWhole(**file, path, kFileSize));
  auto keys = Parse(content);
  OPENSSL_cleanse(content.data(), content.size());
  if (!keys.ok()) return Named(keys.error(), "reading audit key", path);
  return keys;
}

}  // namespace assay::audit
