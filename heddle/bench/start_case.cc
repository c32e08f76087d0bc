// The time from starting the program to its first token: a process of its own loads a model of
// 500 MB, whose file is in the system's cache, and computes what comes first.
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "heddle/base/files/files.h"
#include "heddle/base/parallel.h"
#include "heddle/bench/case.h"
#include "heddle/bench/model_work.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/io/safetensors.h"
#include "heddle/io/tensor_file.h"
#include "heddle/models/transformer.h"

namespace heddle::bench {
namespace {

// 125.6 million parameters: 502 MB in f32.
TransformerConfig config_of_500_mb() {
  TransformerConfig c;
  c.vocab_size = 8000;
  c.set_sizes(4, 1024, 4096, 16);
  return c;
}

/// A model in a folder, and what it is given to read.
struct ModelFolder {
  TemporaryFolder folder, beside;
  std::string inputs = join_path(beside.path, "in.safetensors");
  std::string outputs = join_path(beside.path, "out.safetensors");
  int64_t parameters = 0, bytes = 0;

  ModelFolder() {
    {
      const TransformerConfig c = config_of_500_mb();
      nn::Parameters weights(1);
      save_model(folder.path, *model_config(c)->make(nn::Scope(weights)), weights);
      parameters = weights.elements();
    }
    bytes = static_cast<int64_t>(std::filesystem::file_size(join_path(folder.path, kWeightsName)));
    const std::vector<int32_t> source = {4, 5, 6, 7, 8, 9, 10, 3}, first = {2};
    const auto tensor = [](const char* name, const std::vector<int32_t>& ids) {
      return NamedTensorView{.name = name,
                             .dtype = DType::i32,
                             .shape = {1, static_cast<int64_t>(ids.size())},
                             .bytes = std::as_bytes(std::span(ids))};
    };
    write_safetensors(inputs, {tensor("input_ids", source), tensor("decoder_input_ids", first)});
    forget_peak_memory();
  }
};

// Runs this program with these words and waits for its end.
void run_self(const std::vector<std::string>& words) {
  std::string program = "heddle";
  std::vector<char*> arguments = {program.data()};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error =
      posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ);
  check(error == 0, ErrorKind::system, "bench: cannot start this program again: {}",
        std::strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  check(WIFEXITED(status) && WEXITSTATUS(status) == 0, ErrorKind::internal,
        "bench: heddle {} ended with {}", words.front(),
        WIFEXITED(status) ? fmt::format("exit code {}", WEXITSTATUS(status))
                          : fmt::format("signal {}", WTERMSIG(status)));
}

int64_t peak_bytes_of_children() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return int64_t{1024} * usage.ru_maxrss;
}

BenchWorkload make_start(const BenchOptions& o) {
  const auto m = std::make_shared<const ModelFolder>();
  const std::vector<std::string> words = {"forward",     m->folder.path,
                                          "--input",     m->inputs,
                                          "--output",    m->outputs,
                                          "--threads",   std::to_string(num_threads()),
                                          "--precision", precision_name(o.precision)};
  return {.step = [m, words] { run_self(words); },
          .units = 1,
          .batch = 1,
          .parameters = m->parameters,
          .model = "encoder-decoder d1024 L4",
          .bytes_read = m->bytes,
          .model_bytes = m->bytes,
          .peak_bytes = peak_bytes_of_children};
}

}  // namespace

std::vector<BenchCase> start_cases() {
  return {{.name = "start",
           .unit = "starts/s",
           .about = "a process that loads 500 MB of f32 weights and computes the first token",
           .dtypes = {"f32", "bf16", "int8"},
           .make = make_start}};
}

}  // namespace heddle::bench
