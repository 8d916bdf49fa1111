// SPDX-License-Identifier: Apache-2.0
// Runs a libFuzzer entry point over every file of the corpus directories given, and over each file's truncations.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  std::size_t files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream in(entry.path(), std::ios::binary);
      std::vector<char> raw((std::istreambuf_iterator<char>(in)), {});
      std::vector<std::uint8_t> bytes(raw.begin(), raw.end());
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
      const std::size_t step = bytes.size() / 256 + 1;
      for (std::size_t cut = 0; cut < bytes.size(); cut += step) {
        const std::vector<std::uint8_t> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(cut));
        LLVMFuzzerTestOneInput(part.data(), part.size());
      }
      ++files;
    }
  }
  std::printf("%zu corpus files\n", files);
  return files == 0 ? 1 : 0;
}
