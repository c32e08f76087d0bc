// heddle shapes: draws images with known objects, and writes them as files.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>

#include "corpora/captions/captioned_scenes.h"
#include "corpora/scenes.h"
#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/files/folder_claim.h"
#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/train/batches/photo_pools.h"
#include "heddle/train/batches/scene_files.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string out, task = "detection", scene = "shapes", photos;
  int64_t count = 0, held_out = 0, size = 0;
  std::optional<int64_t> unseen, captions, most_objects;
  uint64_t seed = 1;
  int threads = 0;
  bool overwrite = false;
};

bool is_classification(const Flags& o) { return o.task == "classification"; }
bool is_captioning(const Flags& o) { return o.task == "captioning"; }
bool are_collages(const Flags& o) { return o.scene == "collages"; }

void check_scene(const Flags& o) {
  check(!is_classification(o) || o.scene == "shapes", ErrorKind::usage,
        "shapes: --task classification is of shapes; cells are for detection");
  check(!is_captioning(o) || o.scene != "cells", ErrorKind::usage,
        "shapes: --task captioning is of shapes or collages; cells are for detection");
  check(!are_collages(o) || is_captioning(o), ErrorKind::usage,
        "shapes: collages are drawn with captions; give --task captioning");
  check(are_collages(o) == !o.photos.empty(), ErrorKind::usage,
        "shapes: --scene collages needs --photos, a set of photos in classes, and no other does");
  check(is_captioning(o) || !(o.unseen || o.captions), ErrorKind::usage,
        "shapes: --unseen and --captions are for --task captioning");
}

// The names that parts of a set have, which folders and files are called by.
std::vector<std::string> part_names(const Flags& o) {
  std::vector<std::string> names = {"train", "val"};
  for (const char* name : {"test", "unseen"}) {
    const bool is_ours = path_exists(join_path(o.out, fmt::format("{}.jsonl", name)));
    if (is_captioning(o) || is_ours) names.emplace_back(name);
  }
  return names;
}

// What a call writes for a part: a folder, and one of these files.
constexpr const char* kEndings[] = {".json", ".jsonl"};

void check_options(const Flags& o) {
  check_scene(o);
  const int64_t classes = std::ssize(shape_classes());
  check(!is_classification(o) || o.count >= classes, ErrorKind::usage,
        "shapes: --count {0} leaves classes without an image; there are {1}, so give {1} or more",
        o.count, classes);
  if (o.overwrite) return;
  for (const std::string& part : part_names(o)) {
    for (const char* ending : {"", kEndings[0], kEndings[1]}) {
      const std::string path = join_path(o.out, part + ending);
      check(!path_exists(path), ErrorKind::usage,
            "shapes: {} is there already; choose another --out, or replace it with --overwrite",
            path);
    }
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
  const std::vector<std::string> parts = part_names(o);
  for (const std::string& part : parts) {
    for (const char* ending : kEndings) {
      const std::string path = join_path(o.out, part + ending);
      if (is_directory(path)) refuse_other(path);
      if (path_exists(path)) old.push_back(path);
    }
  }
  for (const std::string& part : parts) {
    const std::string path = join_path(o.out, part);
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
  return {.size = {size, size},
          .most_objects = o.most_objects.value_or(ShapeOptions{}.most_objects)};
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

// --- with captions ---

CaptionedSceneOptions captioned_options(const Flags& o, bool is_unseen) {
  CaptionedSceneOptions options = are_collages(o) ? kCollages : kCaptionedShapes;
  if (o.size > 0) options.size = {o.size, o.size};
  options.most_objects = o.most_objects.value_or(options.most_objects);
  options.captions.count = o.captions.value_or(options.captions.count);
  options.captions.is_unseen = is_unseen;
  return options;
}

using DrawCaptioned = std::function<CaptionedScene(uint64_t index)>;

DrawCaptioned captioned(const Flags& o, bool is_unseen, const PhotoPool& pool) {
  return [options = captioned_options(o, is_unseen), pool, seed = o.seed,
          is_collage = are_collages(o)](uint64_t index) {
    return is_collage ? draw_collage(options, pool, seed, index)
                      : draw_captioned_shapes(options, seed, index);
  };
}

struct CaptionedPart {
  const char* name;
  int64_t count;
  DrawCaptioned draw;
};

std::vector<CaptionedPart> captioned_parts(const Flags& o) {
  const train::PhotoPools pools =
      are_collages(o) ? train::open_photo_pools(o.photos) : train::PhotoPools();
  return {{"train", o.count, captioned(o, false, pools.train)},
          {"val", o.held_out, captioned(o, false, pools.val)},
          {"test", o.held_out, captioned(o, false, pools.test)},
          {"unseen", o.unseen.value_or(o.held_out), captioned(o, true, pools.test)}};
}

void write_captioned(const Flags& o, const std::vector<CaptionedPart>& parts) {
  int64_t first = 0;
  for (const CaptionedPart& part : parts) {
    if (part.count == 0) continue;
    train::write_captioned_scenes(
        {.folder = o.out, .first = first, .count = part.count, .part = part.name, .classes = {}},
        part.draw);
    first += part.count;
  }
}

// --- any ---

void write_all(const Flags& o, const std::vector<CaptionedPart>& captioned) {
  if (is_captioning(o)) {
    write_captioned(o, captioned);
    fmt::print(stderr,
               "shapes: {} to train on, {} each to validate and to test, {} of what training has "
               "not, in {}\n",
               counted(o.count, "image"), format_count(o.held_out),
               format_count(captioned.back().count), o.out);
    return;
  }
  write_part(o, "train", 0, o.count);
  write_part(o, "val", o.count, o.held_out);
  fmt::print(stderr, "shapes: {} to train on, {} held out, in {}\n", counted(o.count, "image"),
             counted(o.held_out, "image"), o.out);
}

void run(const Flags& o) {
  apply_threads(o.threads);
  check_options(o);
  // Says what does not fit before anything is removed.
  std::vector<CaptionedPart> captioned;
  if (is_captioning(o)) {
    captioned = captioned_parts(o);
    for (const CaptionedPart& part : captioned) {
      if (part.count > 0) static_cast<void>(part.draw(0));
    }
  } else {
    static_cast<void>(draw_scene(o, 0));
  }
  const FolderClaim claim(o.out);
  check_options(o);  // another may have written since
  const std::vector<std::string> old = o.overwrite ? old_files(o) : std::vector<std::string>();
  remove_old(old);
  write_all(o, captioned);
}

}  // namespace

void add_shapes(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "shapes", "Draw images of shapes or cells, with boxes, captions, or in a folder a class",
      run);
  flags.count = 2000, flags.held_out = 200;
  command
      .add_option("-o,--out", flags.out,
                  "folder for train/, val/ and, with boxes as COCO has them, train.json, val.json; "
                  "with captions test/, unseen/ too, and for each of the four a .jsonl")
      .required();
  command
      .add_setting("--task", flags.task,
                   "detection: several objects an image, with their boxes; classification: one, in "
                   "a folder of its class; captioning: several, with captions and what each image "
                   "shows")
      .one_of({"detection", "classification", "captioning"});
  command
      .add_setting("--scene", flags.scene,
                   "shapes: circles, squares, triangles, crosses, stars, rings; cells: a smear of "
                   "blood, drawn; collages: photos side by side, to be captioned")
      .one_of({"shapes", "cells", "collages"});
  command.add_option("--photos", flags.photos,
                     "photos for collages, in classes that captions have a noun for (CIFAR-10); "
                     "those it holds out are shown in test/ and unseen/ alone");
  command.add_setting("--count", flags.count, "images to train on").positive();
  command
      .add_setting("--held-out", flags.held_out,
                   "images for validation; of captions, as many for the test")
      .not_negative();
  command
      .add_option("--unseen", flags.unseen,
                  "images with captions of combinations that training lacks [as --held-out]")
      .not_negative();
  command.add_option("--captions", flags.captions, "captions of an image [5]").positive();
  command
      .add_option("--size", flags.size,
                  "height in pixels; shapes are as wide, cells a third wider [128; 32 to classify; "
                  "64 to caption; 240 of cells; 96 of collages]")
      .positive();
  command
      .add_option("--most-objects", flags.most_objects,
                  "objects that an image may show [8; 6 to caption; 9 of collages]")
      .positive();
  command.add_setting("--seed", flags.seed, "another seed gives other images");
  add_threads_flag(command, flags.threads);
  command.add_flag("--overwrite", flags.overwrite, "replace such files that are there");
}

}  // namespace heddle::cli
