// Captions of images: each image is read by the engine that takes it, whose steps then write its
// caption beside those of other requests.
#include <limits>
#include <utility>

#include "heddle/infer/decoding/caption.h"
#include "heddle/serve/api/image_bodies.h"
#include "heddle/serve/api/jobs.h"
#include "heddle/serve/api/translation_work.h"

namespace heddle::serve {
namespace {

struct CaptionsRequest {
  SharedExchange exchange = {};
  SharedModel model = {};
  TranslateOptions options = {};
  bool has_maps = false;
  SentImages sent = {};
  std::vector<SeenGrid> grids = {};
  std::vector<EncodedImages> encoded = {};  // of each image, once it was read: one
  std::vector<Json> captions = {};
  int64_t weights = 0;  // of the maps so far
  size_t left = 0;

  QueuedJob job(const std::shared_ptr<CaptionsRequest>& self, size_t i, int64_t tokens) const;
  void read(size_t i, Request& request);
  void take(size_t i, std::span<const Hypothesis> found);
  void count_weights(const Translation& caption, int64_t cells);
  SeenGrid grid_of(size_t i, ImageSize size) const;
};

// Other images may be read at the same time.
void CaptionsRequest::read(size_t i, Request& request) {
  const CaptionReader& reader = model->captioner();
  const Image fitted = reader.processor.fit(sent.take(i));
  encoded[i] = encode_images(reader.model(), reader.processor, {&fitted, 1}, model->precision);
  request.memory = encoded[i].memories[0];
  check(request.memory.size(0) == request.memory_rows, ErrorKind::data,
        "{} is not of the size that its header says", SentImages::name(i));
}

// Before they are computed. The best caption stands among several once more.
void CaptionsRequest::count_weights(const Translation& caption, int64_t cells) {
  weights += cells * std::ssize(caption.ids) * (caption.others.empty() ? 1 : 2);
  for (const Translation& other : caption.others) weights += cells * std::ssize(other.ids);
  if (weights > kMostWeights) {
    refuse(
        "the maps have more than {} weights together; send fewer images, or ask for fewer "
        "captions of each",
        kMostWeights);
  }
}

void CaptionsRequest::take(size_t i, std::span<const Hypothesis> found) {
  const CaptionReader& reader = model->captioner();
  const EncodedImages seen = std::exchange(encoded[i], {});
  Translation caption = as_translation(found);
  decode_texts(std::span(&caption, 1), reader.loaded.target());
  exchange->service.metrics().tokens_written(std::ssize(caption.ids));
  if (has_maps) {
    count_weights(caption, seen.memories[0].size(0));
    const auto all = seen_captions(reader, seen.memories, {&caption, 1}, model->precision);
    captions[i] = captions_json(all[0], grids[i]);
  } else {
    captions[i] = captions_json(plain_captions(caption), {});
  }
  if (--left > 0) return;
  exchange->send(Json::object({{"model", model->name}, {"captions", std::move(captions)}}));
}

SeenGrid CaptionsRequest::grid_of(size_t i, ImageSize size) const {
  const CaptionReader& reader = model->captioner();
  const ImageSize grid = reader.model().grid(reader.processor.fitted(size));
  const int64_t most = exchange->service.options().cache_rows;
  if (grid.height * grid.width > most) {
    refuse("{} of {} x {} pixels has {} x {} cells; the server has room for {}",
           SentImages::name(i), size.width, size.height, grid.width, grid.height, most);
  }
  return {grid, reader.processor.kept(size)};
}

// tokens: what it costs to read the image
QueuedJob CaptionsRequest::job(const std::shared_ptr<CaptionsRequest>& self, size_t i,
                               int64_t tokens) const {
  const CaptionReader& reader = model->captioner();
  return {.request = caption_request(reader.model(), reader.loaded.target(), grids[i].cells,
                                     options, static_cast<int64_t>(i)),
          .width = options.search.width(),
          .on_done = [self, i](std::span<const Hypothesis> found) { self->take(i, found); },
          .prepare = [self, i](Request& request) { self->read(i, request); },
          .prepare_tokens = tokens};
}

// As `heddle caption` has its flags: draws are asked for, and the same every time.
void take_draws(const Json& body, SearchConfig& search) {
  search.samples = bool_of(body, "sample", false);
  if (!search.samples) {
    for (const char* key : {"temperature", "top_k", "top_p", "min_p", "seed"}) {
      if (has_member(body, key)) refuse("`{}` is of a `sample`, which is not asked for", key);
    }
    return;
  }
  if (has_member(body, "beam")) refuse("`beam` searches, `sample` draws; leave one of them out");
  search.beam.reset();
  search.temperature = number_of(body, "temperature", 1, 0, 10);
  search.top_p = number_of(body, "top_p", 1, 1e-6, 1);
  search.top_k = int_of(body, "top_k", 0, 0, std::numeric_limits<int32_t>::max());
  search.min_p = number_of(body, "min_p", 0, 0, 1);
  search.seed = int_of(body, "seed", 1, 0, std::numeric_limits<int64_t>::max());
}

}  // namespace

void images_caption(const SharedExchange& e) {
  const auto asked = std::make_shared<CaptionsRequest>();
  asked->exchange = e;
  asked->sent =
      sent_images(*e, {"model", "image", "beam", "n_best", "length_penalty", "max_tokens", "sample",
                       "temperature", "top_k", "top_p", "min_p", "seed", "maps"});
  const Json& options = asked->sent.options;
  asked->model = model_of(e->service, options, ModelUse::caption);
  asked->options = translate_options_of(e->service, *asked->model, options);
  take_draws(options, asked->options.search);
  asked->has_maps = bool_of(options, "maps", false);
  if (asked->has_maps) check_has_maps(asked->model->captioner().model(), asked->model->name);
  asked->left = asked->sent.files.size();
  asked->encoded.resize(asked->left);
  asked->captions.resize(asked->left);
  std::vector<QueuedJob> jobs;
  const ImageProcessor& processor = asked->model->captioner().processor;
  for (size_t i = 0; i < asked->left; ++i) {
    const ImageSize size = asked->sent.size(*e, i);
    const int64_t tokens = SentImages::tokens(*e, i, size, processor);
    asked->grids.push_back(asked->grid_of(i, size));
    jobs.push_back(asked->job(asked, i, tokens));
  }
  start_jobs(e, asked->model, std::move(jobs));
}

}  // namespace heddle::serve
