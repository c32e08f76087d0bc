// heddle demo --images: a small ViT, trained on shapes that the program draws.
#include <algorithm>

#include "corpora/scenes.h"
#include "heddle/base/files/files.h"
#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/train/demo.h"
#include "heddle/infer/answers.h"
#include "heddle/inspect/images/image_attention.h"
#include "heddle/inspect/run_history.h"
#include "heddle/train/trainer.h"

namespace heddle::cli {
namespace {

constexpr int64_t kTrained = 12'000, kHeldOut = 1'200, kExamples = 6;
constexpr uint64_t kTrainSeed = 1, kTestSeed = 2;

DrawnShape drawn(uint64_t seed, int64_t index) {
  return draw_shape({.size = {32, 32}}, seed, static_cast<uint64_t>(index));
}

// As CIFAR's files have them: a label, then red, green and blue one after the other.
std::string drawn_records(uint64_t seed, int64_t count) {
  constexpr size_t kPlane = 32 * 32, kRecord = 1 + 3 * kPlane;
  std::string bytes(static_cast<size_t>(count) * kRecord, '\0');
  parallel_for(count, [&](int64_t i) {
    const DrawnShape shape = drawn(seed, i);
    char* const to = bytes.data() + static_cast<size_t>(i) * kRecord;
    to[0] = static_cast<char>(shape.label);
    for (size_t p = 0; p < 3 * kPlane; ++p) {
      to[1 + p % 3 * kPlane + p / 3] = static_cast<char>(shape.image.pixels[p]);
    }
  });
  return bytes;
}

// The images of training and test, and some of the latter as files.
void draw_images(const std::string& folder, const std::string& examples) {
  make_directories(folder);
  make_directories(examples);
  write_file_atomic(join_path(folder, "data_batch_1.bin"), drawn_records(kTrainSeed, kTrained));
  write_file_atomic(join_path(folder, "test_batch.bin"), drawn_records(kTestSeed, kHeldOut));
  write_file_atomic(join_path(folder, "batches.meta.txt"),
                    fmt::format("{}\n", fmt::join(shape_classes(), "\n")));
  for (int64_t i = 0; i < kExamples; ++i) {
    const DrawnShape shape = drawn(kTestSeed, i);
    const std::string name = fmt::format("{}.png", shape_classes()[shape.label]);
    write_file_atomic(join_path(examples, name), encode_png(shape.image));
  }
}

void show_held_out(const ImageReader& reader) {
  constexpr int64_t kAtOnce = 200;
  const std::vector<std::string>& classes = shape_classes();
  int64_t right = 0;
  for (int64_t begin = 0; begin < kHeldOut; begin += kAtOnce) {
    std::vector<Image> images;
    for (int64_t i = begin; i < begin + kAtOnce; ++i) {
      images.push_back(reader.processor.fit(drawn(kTestSeed, i).image));
    }
    const auto all = classify(reader, images, {});
    for (size_t i = 0; i < all.size(); ++i) {
      const auto best = static_cast<size_t>(std::ranges::max_element(all[i]) - all[i].begin());
      const int32_t label = drawn(kTestSeed, begin + static_cast<int64_t>(i)).label;
      right += reader.model().labels()[best] == classes[static_cast<size_t>(label)];
    }
  }
  fmt::print("\n{} drawn images that it never saw: {:.1f} % named right ({} classes: {})\n",
             format_count(kHeldOut), 100.0 * static_cast<double>(right) / kHeldOut, classes.size(),
             fmt::join(classes, ", "));
}

// Where the answer comes from: the class token's roll-out, the darkest for the most.
std::string map_text(const inspect::ImageSubject& subject, const inspect::ImageMaps& maps) {
  constexpr std::string_view kShades = " .:-=+*#%@";
  if (!maps.rollout) return "";
  const inspect::CellGrid& grid = subject.grids().front();
  const auto tokens = std::ssize(grid.tokens);
  const std::span<const float> row(maps.rollout->mean.data(), static_cast<size_t>(grid.cells()));
  const std::span<const float> cells = row.subspan(static_cast<size_t>(tokens));
  const auto [low, high] = std::ranges::minmax(cells);
  std::string text;
  for (int64_t i = 0; i < std::ssize(cells); ++i) {
    const float share = high > low ? (cells[i] - low) / (high - low) : 0;
    const auto shade = static_cast<size_t>(share * static_cast<float>(kShades.size() - 1) + 0.5f);
    text += i % grid.size.width == 0 ? "    " : "";
    text += {kShades[shade], kShades[shade]};
    if ((i + 1) % grid.size.width == 0) text += "\n";
  }
  return text;
}

void show_example(const std::string& run, const std::string& path, const std::string& page) {
  const inspect::ImageSubject subject(run, read_image(path), path, {});
  const inspect::ImageMaps maps = inspect::image_maps(subject, {.importance = !page.empty()});
  fmt::print("\n  {}: {}\n\n{}", path, inspect::likeliest_class(subject), map_text(subject, maps));
  if (!page.empty()) inspect::write_page(page, inspect::image_attention_page(subject, maps));
}

}  // namespace

void run_image_demo(const std::string& out) {
  const std::string run = join_path(out, "run"), images = join_path(out, "images"),
                    examples = join_path(out, "examples"), page = join_path(out, "attention.html");
  const train::TrainConfig config = train::load_recipe("shapes-vit");
  check_own_run(run, config);
  draw_images(images, examples);
  const train::RunResult r = train::train_model(
      config, {.paths = {.data = images}, .out = run, .on_event = inspect::report_writer(run)});
  if (r.was_interrupted) return;
  const ImageReader reader = load_image_reader(run);
  fmt::print("trained in {} on {} drawn images: {} parameters, {} updates\n",
             format_duration(r.seconds), format_count(kTrained),
             format_count(reader.loaded.parameters.elements()), format_count(r.updates));
  show_held_out(reader);
  fmt::print(
      "\nFour of them, and from which parts of the image the answer comes (attention rolled "
      "out over\nall layers, darker for more):\n");
  const std::vector<std::string> shown = {"triangle", "cross", "star", "ring"};
  for (const std::string& name : shown) {
    show_example(run, join_path(examples, name + ".png"), name == shown.back() ? page : "");
  }
  fmt::print("\nThe attention of every head over the {}:  {}  (open it in a browser)\n",
             shown.back(), page);
  fmt::print(
      "\nTry your own:  {0} classify {1} {2}/*.png\n               {0} explain {1} "
      "{2}/star.png\n               {0} augment {2}/star.png --page augment.html\n",
      program_invocation_name, run, examples);
}

}  // namespace heddle::cli
