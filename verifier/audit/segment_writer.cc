// SPDX-License-Identifier: Apache-2.0
#include "verifier/audit/segment_writer.h"

#include <algorithm>

namespace assay::audit {
namespace {

constexpr std::size_t kZeroChunk = 1U << 20;

Status Synced(File& file, const std::string& name) {
  const Status synced = file.SyncData();
  if (!synced.ok()) return Named(synced.error(), "syncing", name);
  return Ok();
}

Status WriteZeros(File& file, const std::string& name, std::uint64_t offset, std::uint64_t count) {
  const Buffer zeros(static_cast<std::size_t>(std::min<std::uint64_t>(count, kZeroChunk)), 0);
  while (count > 0) {
    const std::size_t chunk = static_cast<std::size_t>(std::min<std::uint64_t>(count, zeros.size()));
    ASSAY_CHECK_OK(WriteAll(file, name, offset, Bytes(zeros).first(chunk)));
    offset += chunk;
    count -= chunk;
  }
  return Ok();
}

}  // namespace

Result<std::unique_ptr<File>> SegmentWriter::Prepare() {
  const std::string name = kPreparedName;
  // What a crash left of an earlier attempt holds no record.
  if (const Status removed = directory_.Remove(name); !removed.ok() && removed.error().code != Code::kNotFound)
    return Named(removed.error(), "removing", name);
  Result<std::unique_ptr<File>> file = directory_.Open(name, Access::kCreate);
  if (!file.ok()) return Named(file.error(), "creating", name);
  ASSAY_CHECK_OK(WriteZeros(**file, name, 0, segment_bytes_));
  return file;
}

Status SegmentWriter::Publish(File& file, Bytes header, const std::string& name) {
  ASSAY_CHECK_OK(WriteAll(file, name, 0, header));
  ASSAY_CHECK_OK(Synced(file, name));
  if (const Status renamed = directory_.Rename(kPreparedName, name); !renamed.ok())
    return Named(renamed.error(), "naming", name);
  if (const Status synced = directory_.Sync(); !synced.ok())
    return Named(synced.error(), "syncing directory", directory_.path());
  return Ok();
}

Status SegmentWriter::Start(ChainState& state) {
  ASSAY_TRY(std::unique_ptr<File> file, Prepare());
  Buffer header;
  const std::uint64_t first = state.next;
  AppendChained(header, keys_, state, {1, Kind::kHeader, 0},
                EncodeHeader({keys_.log_id(), keys_.key_id(), 1, segment_bytes_, Digest{}}));
  ASSAY_CHECK_OK(Publish(*file, header, SegmentName(1)));
  place_ = {1, segment_bytes_, header.size(), 1, first};
  file_ = std::move(file);
  return Ok();
}

Status SegmentWriter::Resume(const SegmentPlace& place) {
  const std::string name = SegmentName(place.number);
  Result<std::unique_ptr<File>> file = directory_.Open(name, Access::kReadWrite);
  if (!file.ok()) return Named(file.error(), "opening", name);
  place_ = place;
  file_ = std::move(file).value();
  return Ok();
}

std::uint64_t SegmentWriter::Room() const noexcept {
  const std::uint64_t used = place_.offset + kMaxSealLine;
  return used < place_.bytes ? place_.bytes - used : 0;
}

Status SegmentWriter::Write(Bytes bytes, std::uint64_t lines, std::uint64_t zeros) {
  const std::string name = SegmentName(place_.number);
  if (bytes.size() > Room()) return MakeError(Code::kInternal, "writing " + name + ": the lines do not fit");
  ASSAY_CHECK_OK(WriteAll(*file_, name, place_.offset, bytes));
  if (zeros > 0) ASSAY_CHECK_OK(WriteZeros(*file_, name, place_.offset + bytes.size(), zeros));
  ASSAY_CHECK_OK(Synced(*file_, name));
  place_.offset += bytes.size();
  place_.lines += lines;
  return Ok();
}

Status SegmentWriter::Rotate(ChainState& state) {
  // 1: the seal, in memory. Its MAC is what the next header chains to.
  Buffer seal;
  AppendChained(seal, keys_, state, {place_.number, Kind::kSeal, state.next - 1},
                EncodeSeal({place_.number, place_.lines, place_.first, state.next - 1}));
  // 2: the successor, whole and durable under its name before the seal is written: a sealed segment without a successor
  // is then always a loss, never a crash.
  ASSAY_TRY(std::unique_ptr<File> file, Prepare());
  const std::uint64_t number = place_.number + 1;
  const std::uint64_t first = state.next;
  Buffer header;
  AppendChained(header, keys_, state, {number, Kind::kHeader, first - 2},
                EncodeHeader({keys_.log_id(), keys_.key_id(), number, segment_bytes_, state.previous}));
  ASSAY_CHECK_OK(Publish(*file, header, SegmentName(number)));
  // 3: the seal, and the file is cut behind it.
  const std::string sealed = SegmentName(place_.number);
  ASSAY_CHECK_OK(WriteAll(*file_, sealed, place_.offset, seal));
  ASSAY_CHECK_OK(Synced(*file_, sealed));
  if (const Status cut = file_->Truncate(place_.offset + seal.size()); !cut.ok())
    return Named(cut.error(), "trimming", sealed);
  ASSAY_CHECK_OK(Synced(*file_, sealed));
  place_ = {number, segment_bytes_, header.size(), 1, first};
  file_ = std::move(file);
  return Ok();
}

Status SegmentWriter::CheckPinned() {
  const std::string name = SegmentName(place_.number);
  const Result<FileIdentity> held = file_->Identity();
  if (!held.ok()) return Named(held.error(), "checking", name);
  const Result<FileIdentity> named = directory_.Identity(name);
  if (!named.ok()) return Named(named.error(), "checking", name);
  if (!held->Same(*named) || held->size != place_.bytes)
    return MakeError(Code::kDenied, name + " was replaced or resized under the running log");
  return Ok();
}

Status FinishRotation(Directory& directory, std::uint64_t segment, std::uint64_t offset, Bytes seal) {
  const std::string name = SegmentName(segment);
  Result<std::unique_ptr<File>> file = directory.Open(name, Access::kReadWrite);
  if (!file.ok()) return Named(file.error(), "opening", name);
  ASSAY_CHECK_OK(WriteAll(**file, name, offset, seal));
  ASSAY_CHECK_OK(Synced(**file, name));
  if (const Status cut = (*file)->Truncate(offset + seal.size()); !cut.ok())
    return Named(cut.error(), "trimming", name);
  return Synced(**file, name);
}

}  // namespace assay::audit
