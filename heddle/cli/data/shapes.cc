// heddle shapes: draws images with known objects, and writes them as files.
#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>

#include "corpora/scenes.h"
#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/train/batches/scene_files.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string out, task = "detection", scene = "shapes";
  int64_t count = 0, held_out = 0, size = 0, most_objects = ShapeOptions{}.most_objects;
  uint64_t seed = 1;
  int threads = 0;
  bool overwrite = false;
};

bool is_classification(const Flags& o) { return o.task == "classification"; }

void check_options(const Flags& o) {
  check(!is_classification(o) || o.scene == "shapes", ErrorKind::usage,
        "shapes: --task classification is of shapes; cells are for detection");
  const int64_t classes = std::ssize(shape_classes());
  check(!is_classification(o) || o.count >= classes, ErrorKind::usage,
        "shapes: --count {0} leaves classes without an image; there are {1}, so give {1} or more",
        o.count, classes);
  if (o.overwrite) return;
  for (const char* name : {"train", "val", "train.json", "val.json"}) {
    const std::string path = join_path(o.out, name);
    check(!path_exists(path), ErrorKind::usage,
          "shapes: {} is there already; choose another --out, or replace it with --overwrite",
          path);
  }
}

[[noreturn]] void refuse_other(const std::string& path) {
  fail(
      ErrorKind::usage,
      "shapes: {} is none of the files that --overwrite replaces; choose another --out, or move it",
      path);
}

// 000001.png, with more digits from a million on.
bool is_image_name(const std::string& name) {
  const size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  return digits >= 6 && name.substr(digits) == ".png";
}

// What an earlier call wrote to a folder, then the folder. Errors: usage for anything else in it.
void add_old(const std::string& folder, std::span<const std::string> classes,
             std::vector<std::string>& old) {
  for (const std::string& name : list_directory(folder)) {
    const std::string path = join_path(folder, name);
    const bool is_folder = is_directory(path);
    if (is_folder && std::ranges::find(classes, name) != classes.end()) {
      add_old(path, {}, old);
    } else {
      if (is_folder || !is_image_name(name)) refuse_other(path);
      old.push_back(path);
    }
  }
  old.push_back(folder);
}

// In the order in which they are removed: boxes before their images, files before their folders.
std::vector<std::string> old_files(const Flags& o) {
  std::vector<std::string> old;
  for (const char* name : {"train.json", "val.json"}) {
    const std::string path = join_path(o.out, name);
    if (is_directory(path)) refuse_other(path);
    if (path_exists(path)) old.push_back(path);
  }
  for (const char* name : {"train", "val"}) {
    const std::string path = join_path(o.out, name);
    if (!path_exists(path)) continue;
    if (!is_directory(path)) refuse_other(path);
    add_old(path, shape_classes(), old);
  }
  return old;
}

void remove_old(const std::vector<std::string>& old) {
  for (const std::string& path : old) {
    std::error_code fault;
    std::filesystem::remove(path, fault);  // of folders those alone that are empty
    if (fault) fail_errno("cannot remove", path, fault.value());
  }
}

ShapeOptions shape_options(const Flags& o) {
  const int64_t size = o.size > 0 ? o.size : is_classification(o) ? 32 : 128;
  return {.size = {size, size}, .most_objects = o.most_objects};
}

// Cells in the shape of a microscope's photographs: 4 to 3.
ImageSize cell_size(const Flags& o) {
  const int64_t height = o.size > 0 ? o.size : 240;
  return {height, height * 4 / 3};
}

DrawnScene draw_scene(const Flags& o, uint64_t index) {
  return o.scene == "cells" ? draw_cells(cell_size(o), o.seed, index)
                            : draw_shapes(shape_options(o), o.seed, index);
}

void write_part(const Flags& o, const char* part, int64_t first, int64_t count) {
  if (count == 0) return;
  const train::SceneFiles files{.folder = o.out,
                                .first = first,
                                .count = count,
                                .part = part,
                                .classes = o.scene == "cells" ? cell_classes() : shape_classes()};
  if (is_classification(o)) {
    const ShapeOptions shapes = shape_options(o);
    train::write_drawn_shapes(files, [&](uint64_t i) { return draw_shape(shapes, o.seed, i); });
  } else {
    train::write_scenes(files, [&](uint64_t i) { return draw_scene(o, i); });
  }
}

void run(const Flags& o) {
  if (o.threads > 0) set_num_threads(o.threads);
  check_options(o);
  static_cast<void>(draw_scene(o, 0));  // says what does not fit before anything is removed
  const std::vector<std::string> old = o.overwrite ? old_files(o) : std::vector<std::string>();
  make_directories(o.out);
  remove_old(old);
  write_part(o, "train", 0, o.count);
  write_part(o, "val", o.count, o.held_out);
  fmt::print(stderr, "shapes: {} to train on, {} held out, in {}\n", counted(o.count, "image"),
             counted(o.held_out, "image"), o.out);
}

}  // namespace

void add_shapes(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "shapes", "Draw images of shapes or cells, with boxes or in a folder a class", run);
  flags.count = 2000, flags.held_out = 200;
  command
      .add_option("-o,--out", flags.out,
                  "folder for train/, val/ and, with boxes as COCO has them, train.json, val.json")
      .required();
  command
      .add_setting("--task", flags.task,
                   "detection: several objects an image, with their boxes; classification: one, in "
                   "a folder of its class")
      .one_of({"detection", "classification"});
  command
      .add_setting("--scene", flags.scene,
                   "shapes: circles, squares, triangles, crosses, stars, rings; cells: a smear of "
                   "blood, drawn")
      .one_of({"shapes", "cells"});
  command.add_setting("--count", flags.count, "images to train on").positive();
  command.add_setting("--held-out", flags.held_out, "images for validation").not_negative();
  command
      .add_option("--size", flags.size,
                  "height in pixels; shapes are as wide, cells a third wider [128; 32 to classify; "
                  "240 of cells]")
      .positive();
  command.add_setting("--most-objects", flags.most_objects, "shapes that an image may show")
      .positive();
  command.add_setting("--seed", flags.seed, "another seed gives other images");
  command.add_option("-t,--threads", flags.threads, "threads [all cores]").positive();
  command.add_flag("--overwrite", flags.overwrite, "replace such files that are there");
}

}  // namespace heddle::cli
