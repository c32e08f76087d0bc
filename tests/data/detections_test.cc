// Sets of images with boxes: COCO, VOC and tables give the same set; boxes and files that are none.
#include "heddle/data/detections.h"

#include <gtest/gtest.h>

#include "heddle/data/detection/xml.h"
#include "heddle/io/tar.h"
#include "tests/data/image_files.h"
#include "tests/data/tar_file.h"

namespace heddle {
namespace {

using testing::tar_file;
using testing::TarMember;
using testing::write_below;

// An image of one colour.
std::string png(int64_t height, int64_t width, uint8_t level) {
  Image image(height, width);
  std::ranges::fill(image.pixels, level);
  return encode_png(image);
}

std::string annotation(int id, int image, int category, const std::string& box,
                       const std::string& more = "") {
  return fmt::format(R"({{"id": {}, "image_id": {}, "category_id": {}, "bbox": [{}]{}}})", id,
                     image, category, box, more);
}

std::string coco(const std::vector<std::string>& annotations) {
  return fmt::format(R"({{"images": [{{"id": 70, "file_name": "b.png", "height": 40, "width": 60}},
    {{"id": 9, "file_name": "a.png"}}],
    "categories": [{{"id": 90, "name": "dog"}}, {{"id": 3, "name": "cat"}}],
    "annotations": [{}]}})",
                     fmt::join(annotations, ", "));
}

struct CocoFolder {
  TemporaryFolder folder;

  explicit CocoFolder(const std::vector<std::string>& annotations) {
    write_below(folder, "set/train.json", coco(annotations));
    write_below(folder, "set/train/a.png", png(20, 30, 1));
    write_below(folder, "set/train/b.png", png(40, 60, 2));
  }
  DetectionSet open(int64_t edge = 0) const {
    return cached_detections(source(), "train",
                             {.cache_dir = folder / "cache", .cache_edge = edge});
  }
  DetectionSource source() const { return find_detections(folder / "set").train(); }
  void expect_refused(const std::string& words) const {
    expect_error(ErrorKind::data, {words}, [&] { open(); });
  }
};

TEST(Detections, coco_gives_boxes_of_any_category_ids) {
  const CocoFolder coco({annotation(1, 9, 90, "2, 3, 4.5, 5"), annotation(2, 70, 3, "0, 0, 60, 40"),
                         annotation(4, 9, 3, "1, 1, 2, 2", R"(, "iscrowd": 1, "area": 3.5)")});
  const DetectionSet set = coco.open();
  ASSERT_EQ(set.size(), 2);
  EXPECT_EQ(set.classes(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(set.category_ids(), (std::vector<int64_t>{3, 90}));
  EXPECT_EQ(set.id(0), 70);
  EXPECT_EQ(set.id(1), 9);
  ASSERT_EQ(set.boxes(0).size(), 1U);
  EXPECT_EQ(set.boxes(0)[0], (LabelledBox{.box = {0, 0, 60, 40}, .label = 0}));
  ASSERT_EQ(set.boxes(1).size(), 2U);
  EXPECT_EQ(set.boxes(1)[0], (LabelledBox{.box = {2, 3, 6.5, 8}, .label = 1}));
  EXPECT_EQ(set.boxes(1)[1],
            (LabelledBox{.box = {1, 1, 3, 3}, .label = 0, .is_crowd = true, .area = 3.5}));
  EXPECT_EQ(set.most_boxes(), 1);
  EXPECT_EQ(set.image(0).pixels[0], 2);
}

TEST(Detections, boxes_shrink_with_the_images_in_the_cache) {
  const CocoFolder coco({annotation(1, 70, 3, "6, 8, 12, 16", R"(, "area": 96)"),
                         annotation(2, 70, 90, "0, 0, 60, 40")});
  const DetectionSet set = coco.open(10);
  EXPECT_EQ(set.image(0).size, (ImageSize{10, 15}));
  EXPECT_EQ(set.original_size(0), (ImageSize{40, 60}));
  EXPECT_EQ(set.boxes(0)[0].box, (Box{1.5, 2, 4.5, 6}));
  EXPECT_EQ(set.boxes(0)[0].area, 6.0);                            // a sixteenth
  EXPECT_FALSE(set.boxes(0)[1].area.has_value());                  // as large as the box
  EXPECT_EQ(coco.open(10).original_size(0), (ImageSize{40, 60}));  // out of the file
}

TEST(Detections, boxes_without_an_area_or_outside_are_dropped_and_said) {
  const CocoFolder coco({annotation(1, 70, 3, "5, 5, 0, 9"), annotation(2, 70, 3, "60, 0, 9, 9"),
                         annotation(3, 9, 3, "-5, 10, 10, 50"), annotation(4, 9, 3, "1, 1, 2, 2")});
  ::testing::internal::CaptureStderr();
  const DetectionSet set = coco.open();
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(set.boxes(0).empty());
  ASSERT_EQ(set.boxes(1).size(), 2U);
  EXPECT_EQ(set.boxes(1)[0].box, (Box{0, 10, 5, 20}));
  EXPECT_NE(said.find("1 box dropped, of no area: b.png (5, 5, 5, 14)"), said.npos) << said;
  EXPECT_NE(said.find("1 box dropped, outside the image: b.png"), said.npos) << said;
  EXPECT_NE(said.find("1 box clipped to the image: a.png"), said.npos) << said;
}

TEST(Detections, another_area_makes_another_key) {
  const auto object = [](int area) {
    return annotation(1, 70, 3, "6, 8, 12, 16", fmt::format(R"(, "area": {})", area));
  };
  const CocoFolder folder({object(96)});
  const std::string key = folder.open().key();
  EXPECT_EQ(folder.open().key(), key);
  write_below(folder.folder, "set/train.json", coco({object(97)}));
  EXPECT_NE(folder.open().key(), key);
  write_below(folder.folder, "set/train.json", coco({object(0)}));
  const std::string flat = folder.open().key();
  write_below(folder.folder, "set/train.json", coco({annotation(1, 70, 3, "6, 8, 12, 16")}));
  EXPECT_NE(folder.open().key(), flat);
}

// COCO's archive of annotations has the files of all parts; many people fetch the images of one.
TEST(Detections, a_part_is_read_though_the_images_of_another_are_not_there) {
  const CocoFolder coco_folder({annotation(1, 9, 3, "1, 1, 2, 2")});
  const std::string set = coco_folder.folder / "set";
  write_below(coco_folder.folder, "set/val.json",
              R"({"images": [{"id": 1, "file_name": "far.png"}], "annotations": [],
                  "categories": [{"id": 3, "name": "cat"}]})");
  const DetectionSources found = find_detections(set);
  EXPECT_EQ(found.train().ids.size(), 2U);
  expect_error(ErrorKind::data, {"val.json", "images are not there"}, [&] { found.val(); });
  expect_error(ErrorKind::data, {"val.json", "images are not there"},
               [&] { open_detection_split({.path = set}); });
}

TEST(Detections, broken_coco_is_named) {
  const auto refused = [](const std::vector<std::string>& annotations, const char* words) {
    CocoFolder(annotations).expect_refused(words);
  };
  refused({annotation(1, 8, 3, "1, 1, 2, 2")}, "annotation 1: its image_id is 8");
  refused({annotation(1, 9, 1, "1, 1, 2, 2")}, "its category_id is 1");
  refused({annotation(1, 9, 3, "1, 1, 2")}, "bbox has 3 numbers");
  refused({annotation(1, 9, 3, "1, 1, 2, 1e300")}, "within 1000000 pixels");
  refused({annotation(1, 9, 3, "1, 1, 2, 2"), annotation(1, 9, 3, "1, 1, 2, 2")},
          "the id 1 stands there twice");
}

TEST(Detections, images_that_are_gone_or_damaged_are_left_out_with_their_boxes) {
  CocoFolder coco({annotation(1, 9, 90, "2, 3, 4, 5"), annotation(2, 70, 3, "0, 0, 60, 40")});
  write_below(coco.folder, "set/train/b.png", "no image");
  ::testing::internal::CaptureStderr();
  const DetectionSet set = coco.open();
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("b.png"), std::string::npos);
  ASSERT_EQ(set.size(), 1);
  EXPECT_EQ(set.id(0), 9);
  EXPECT_EQ(set.boxes(0)[0].box, (Box{2, 3, 6, 8}));
}

TEST(Detections, labels_become_those_of_a_model) {
  const CocoFolder coco({annotation(1, 9, 90, "2, 3, 4, 5")});
  DetectionSource source = coco.source();
  relabel(source, {"horse", "dog", "cat"});
  const DetectionSet set = cached_detections(source, "train", {.cache_dir = coco.folder / "cache"});
  EXPECT_EQ(set.boxes(1)[0].label, 1);
  EXPECT_EQ(set.category_ids(), (std::vector<int64_t>{0, 90, 3}));
  expect_error(ErrorKind::data, {"of class 'dog'", "the 1 known"},
               [&] { relabel(source, {"cat"}); });
}

constexpr const char* kVoc = R"(<?xml version="1.0"?>
<annotation verified="yes"><!-- by hand -->
  <filename>{}.png</filename><size><width>30</width><height>20</height><depth>3</depth></size>
  <object><name>R &amp; D</name><difficult>1</difficult>
    <bndbox><xmin>2</xmin><ymin>3</ymin><xmax>6.5</xmax><ymax>8</ymax></bndbox></object>
  <object><name>cat</name><part/>
    <bndbox><ymin>1</ymin><xmin>0</xmin><xmax>30</xmax><ymax>20</ymax></bndbox></object>
</annotation>)";

TEST(Detections, voc_gives_parts_and_classes_by_name) {
  const TemporaryFolder folder;
  for (const char* stem : {"a", "b", "c"}) {
    write_below(folder, fmt::format("Annotations/{}.xml", stem),
                fmt::format(fmt::runtime(kVoc), stem));
    write_below(folder, fmt::format("JPEGImages/{}.png", stem), png(20, 30, 5));
  }
  write_below(folder, "ImageSets/Main/train.txt", "b\na 1\n");
  write_below(folder, "ImageSets/Main/test.txt", "c\n");
  const DetectionSplit split =
      open_detection_split({.path = folder / "", .cache_dir = folder / "cache"});
  ASSERT_EQ(split.train.size(), 2);
  EXPECT_EQ(split.val.size(), 1);
  EXPECT_TRUE(split.train.path(0).ends_with("JPEGImages/b.png"));
  EXPECT_EQ(split.train.classes(), (std::vector<std::string>{"R & D", "cat"}));
  EXPECT_EQ(split.train.boxes(0)[0].box, (Box{2, 3, 6.5, 8}));
  EXPECT_EQ(split.train.boxes(0)[1], (LabelledBox{.box = {0, 1, 30, 20}, .label = 1}));
  write_below(folder, "ImageSets/Main/train.txt", "far\n");
  const DetectionSources found = find_detections(folder / "");
  EXPECT_EQ(found.test().ids.size(), 1U);
  expect_error(ErrorKind::data, {"names 'far'", "no file in Annotations"}, [&] { found.train(); });
  expect_error(ErrorKind::usage, {"files name their classes", "class_names"},
               [&] { open_detection_split({.path = folder / "", .class_names = {"cat"}}); });
}

TEST(Detections, xml_that_is_none_is_refused_with_its_line) {
  const auto error = [](const std::string& text) -> std::string {
    try {
      parse_xml(text, "x.xml");
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(error("<a>\n<b></a>"),
            "x.xml: line 2: this is no XML: an element ends by another name");
  EXPECT_NE(error("<a><b>").find("cut short"), std::string::npos);
  EXPECT_NE(error("<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>").find("document type"),
            std::string::npos);
  EXPECT_NE(error("<a>&b;</a>").find("not known"), std::string::npos);
  EXPECT_NE(error("<a>\xff</a>").find("UTF-8"), std::string::npos);
  for (const char* number : {"0", "xD800", "xDFFF", "x110000", "99999999999", "", "x", "65a"}) {
    EXPECT_NE(error(fmt::format("<a>&#{};</a>", number)).find("the number of no character"),
              std::string::npos)
        << number;
  }
  EXPECT_EQ(parse_xml("<a>&#xFC;&#252;&#x20AC;&#x10FFFF;</a>", "").text, "üü€\U0010FFFF");
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "<a>";
  EXPECT_NE(error(deep).find("64 levels"), std::string::npos);
  EXPECT_EQ(parse_xml("<a x='1>'> <![CDATA[<]]>&#65;&lt; </a>", "").text, "<A<");
  const XmlElement root = parse_xml("<!--\n--><a>\n<b>\n<c/><c/></b>\n\n<d\n/><d/></a>", "");
  EXPECT_EQ(root.line, 2);
  EXPECT_EQ(root.children[0].line, 3);
  EXPECT_EQ(root.children[0].children[1].line, 4);
  EXPECT_EQ(root.children[1].line, 6);
  EXPECT_EQ(root.children[2].line, 7);
}

struct TableFolder {
  TemporaryFolder folder;

  explicit TableFolder(const std::string& boxes, const std::string& images = "train\ta\nval\tb\n") {
    folder.write("boxes.tsv", "split\timage\tclass\txmin\tymin\txmax\tymax\n" + boxes);
    folder.write("images.tsv", "split\timage\n" + images);
    folder.write("images.tar", tar_file({{"a.png", png(20, 30, 1)}, {"b.png", png(40, 60, 2)}}));
  }
  DetectionSplit open(std::vector<std::string> names = {}) const {
    return open_detection_split(
        {.path = folder / "", .cache_dir = folder / "cache", .class_names = std::move(names)});
  }
  void expect_refused(const std::string& words) const {
    expect_error(ErrorKind::data, {words}, [&] { open(); });
  }
};

TEST(Detections, a_table_reads_its_images_out_of_the_archive) {
  const TableFolder table("train\ta\t1\t2\t3\t6.5\t8\nval\tb\t0\t1\t1\t60\t40\n");
  const DetectionSplit split = table.open();
  EXPECT_EQ(split.train.classes(), (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(split.train.image(0).size, (ImageSize{20, 30}));
  EXPECT_EQ(split.train.boxes(0)[0], (LabelledBox{.box = {2, 3, 6.5, 8}, .label = 1}));
  EXPECT_EQ(split.val.boxes(0)[0].box, (Box{1, 1, 60, 40}));
  EXPECT_EQ(table.open({"red", "white"}).train.classes()[1], "white");
}

TEST(Detections, names_of_the_file_count_more_than_those_given) {
  const TableFolder table("train\ta\t1\t2\t3\t6.5\t8\nval\tb\t0\t1\t1\t60\t40\n");
  table.folder.write("classes.txt", "white\nred\n");
  EXPECT_EQ(table.open().train.classes(), (std::vector<std::string>{"white", "red"}));
  EXPECT_EQ(table.open({"white", "red"}).train.classes()[1], "red");
  expect_error(ErrorKind::usage, {"classes.txt"}, [&] { table.open({"red", "white"}); });
  table.folder.write("classes.txt", "white\n");
  table.expect_refused("names of 1 classes");
}

TEST(Detections, a_model_tells_classes_by_name_and_only_without_names_by_number) {
  const TableFolder table("train\ta\t1\t2\t3\t6.5\t8\n");
  const auto label = [&](const std::vector<std::string>& labels) {
    DetectionSource source = find_detections(table.folder / "").train();
    relabel_for_model(source, labels);
    EXPECT_EQ(source.classes, labels);
    return source.boxes[0][0].label;
  };
  EXPECT_EQ(label({"red", "white", "rosé"}), 1);
  expect_error(ErrorKind::data, {"the model has 1"}, [&] { label({"red"}); });
  table.folder.write("classes.txt", "white\nred\n");
  EXPECT_EQ(label({"red", "white", "rosé"}), 0);
  expect_error(ErrorKind::data, {"of class 'red'"}, [&] { label({"white", "rosé"}); });
}

TEST(Detections, long_names_in_archives_are_those_of_gnu_and_pax) {
  const TemporaryFolder folder;
  const std::string name(150, 'n'), other(120, 'm');
  const auto record = [](const std::string& text) {
    return fmt::format("{} {}\n", text.size() + 5, text);  // of three digits
  };
  const auto pax = [&](const std::string& records) { return TarMember{"PaxHeader", records, "x"}; };
  folder.write("a.tar", tar_file({pax("30 mtime=1700000000.123456789\n" + record("path=./" + name)),
                                  {name.substr(0, 100), "1"},
                                  {"././@LongLink", other + '\0', "L"},
                                  {other.substr(0, 100), "22"},
                                  {"short", "333"}}));
  const TarFile read = TarFile::open(folder / "a.tar");
  ASSERT_EQ(read.members.size(), 3U);
  EXPECT_EQ(read.members.at(name).size(), 1U);
  EXPECT_EQ(read.members.at(other).size(), 2U);
  EXPECT_EQ(read.members.at("short").size(), 3U);
  for (const char* broken : {"x", "9", "99 path=a\n", "9 path=ab\n", "0 path=a\n", "2 \n9",
                             "99999999999999999999999 path=a\n"}) {
    folder.write("b.tar", tar_file({pax(broken), {"a", "1"}}));
    SCOPED_TRACE(broken);
    expect_error(ErrorKind::data, {"b.tar", "what pax says"},
                 [&] { TarFile::open(folder / "b.tar"); });
  }
}

TEST(Detections, broken_tables_are_named) {
  TableFolder("train\ta\t1\t2\t3\t6\n").expect_refused("boxes.tsv: line 2: has 6 columns");
  TableFolder("train\ta\t-1\t2\t3\t6\t8\n").expect_refused("the class is -1");
  TableFolder("train\ta\t1\t2\t3\tnan\t8\n").expect_refused("a corner of the box lies at nan");
  TableFolder("train\tb\t1\t2\t3\t6\t8\n").expect_refused("has no image 'b' in train");
  TableFolder("train\ta\t1\t2\t3\t6\t8\n", "train\ta\ntrain\ta\n")
      .expect_refused("stands there twice");
  TableFolder("a\ta\t1\t2\t3\t6\t8\n").expect_refused("boxes.tsv: line 2");
  const TableFolder cut("train\ta\t1\t2\t3\t6\t8\n");
  cut.folder.write("images.tar", tar_file({{"a.png", png(20, 30, 1)}}).substr(0, 600));
  cut.expect_refused("cut short");
  cut.folder.write("images.tar", std::string(2048, 'x'));
  cut.expect_refused("no .tar archive");
}

TEST(Detections, held_out_images_are_chosen_by_the_seed) {
  const TemporaryFolder folder;
  std::string boxes = "split\timage\tclass\txmin\tymin\txmax\tymax\n", images = "split\timage\n";
  for (int i = 0; i < 10; ++i) {
    write_below(folder, fmt::format("set/images/{}.png", i), png(8, 8, static_cast<uint8_t>(i)));
    boxes += fmt::format("train\t{}\t0\t{}\t0\t8\t8\n", i, i * 0.5);
    images += fmt::format("train\t{}\n", i);
  }
  folder.write("set/boxes.tsv", boxes);
  folder.write("set/images.tsv", images);
  const auto open = [&](uint64_t seed) {
    return open_detection_split(
        {.path = folder / "set", .val_share = 0.3, .seed = seed, .cache_dir = folder / "cache"});
  };
  const DetectionSplit split = open(1);
  EXPECT_EQ(split.val.size(), 3);
  EXPECT_EQ(split.train.size(), 7);
  for (const DetectionSet& part : {split.train, split.val}) {
    for (int64_t i = 0; i < part.size(); ++i) {
      EXPECT_EQ(part.boxes(i)[0].box.x0, part.image(i).pixels[0] * 0.5);
    }
  }
  EXPECT_EQ(split.val.key(), open(1).val.key());
  EXPECT_NE(split.val.key(), open(2).val.key());
}

}  // namespace
}  // namespace heddle
