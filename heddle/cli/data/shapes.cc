// heddle shapes: draws images with known objects, and writes them as files.
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

void remove_old(const Flags& o) {
  for (const char* name : {"train.json", "val.json", "train", "val"}) {
    remove_path(join_path(o.out, name));
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
  make_directories(o.out);
  if (o.overwrite) remove_old(o);
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
