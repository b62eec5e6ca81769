// The main() of fuzz targets in builds without libFuzzer: runs a target on every seed, and on fixed
// mutations of each, so that a regression shows in the ordinary tests and under gcc. A target
// reports a failure by crashing or aborting.
//   NAME_fuzz SEED_DIRECTORY…     every file in it
//   NAME_fuzz FILE…               one input each, without mutations: to reproduce a crash
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr int kMutations = 200;
constexpr std::size_t kMaxMutatedSize = 64 * 1024;  // larger seeds are replayed as they are

void run(const std::vector<std::uint8_t>& input) {
  // A copy of the exact size on the heap: a read past the end is then an AddressSanitizer error.
  const std::vector<std::uint8_t> exact(input);
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

std::vector<std::uint8_t> read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "can't read %s\n", path.c_str());
    std::exit(1);
  }
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Flips, drops, repeats or cuts: the same ones in every run.
std::vector<std::uint8_t> mutated(std::vector<std::uint8_t> input, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return std::size_t{random()} % n; };
  for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
    if (input.empty()) {
      input.push_back(static_cast<std::uint8_t>(random()));
      continue;
    }
    const auto at = input.begin() + static_cast<std::ptrdiff_t>(below(input.size()));
    const std::size_t length =
        1 + below(std::min<std::size_t>(16, static_cast<std::size_t>(input.end() - at)));
    const auto end = at + static_cast<std::ptrdiff_t>(length);
    switch (below(5)) {
      case 0:
        *at = static_cast<std::uint8_t>(*at ^ (1U << below(8)));
        break;
      case 1:
        *at = static_cast<std::uint8_t>(random());
        break;
      case 2:
        input.erase(at, end);
        break;
      case 3: {
        const std::vector<std::uint8_t> piece(at, end);
        input.insert(at, piece.begin(), piece.end());
        break;
      }
      default:
        input.erase(at, input.end());
        break;
    }
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t inputs = 0;
  std::size_t mutations = 0;
  for (int i = 1; i < argc; ++i) {
    const std::filesystem::path argument(argv[i]);
    if (!std::filesystem::is_directory(argument)) {
      run(read(argument));
      ++inputs;
      continue;
    }
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argument)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::ranges::sort(files);
    for (const auto& file : files) {
      const auto seed = read(file);
      run(seed);
      ++inputs;
      if (seed.size() > kMaxMutatedSize) continue;
      std::mt19937 random(static_cast<std::uint32_t>(inputs));
      for (int n = 0; n < kMutations; ++n, ++mutations) run(mutated(seed, random));
    }
  }
  std::printf("%zu inputs, %zu mutations\n", inputs, mutations);
  if (inputs == 0) {
    std::fprintf(stderr, "no seeds: a fuzz target needs at least one in tests/fuzz/seeds/\n");
    return 1;
  }
  return 0;
}
