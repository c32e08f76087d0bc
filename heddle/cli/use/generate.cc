// heddle generate: text that goes on where a prompt ends.
#include <exception>
#include <map>
#include <optional>

#include "heddle/base/error.h"
#include "heddle/base/progress.h"
#include "heddle/base/utf8.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/cli/lines.h"
#include "heddle/cli/use/next_tokens.h"
#include "heddle/cli/use/prompts.h"
#include "heddle/cli/use/remote.h"
#include "heddle/infer/decoding/generate.h"
#include "heddle/infer/decoding/text_stream.h"
#include "heddle/infer/loading/text_model.h"
#include "heddle/infer/search/json_constraint.h"
#include "heddle/infer/words.h"
#include "heddle/inspect/decoding_steps.h"
#include "heddle/text/strings/strings.h"

namespace heddle::cli {
namespace {

struct Flags : PromptFlags {
  std::string model, page, json_schema;
  ComputeFlags compute;
  std::vector<std::string> stops;
  SearchConfig search;  // laid over the model's
  int64_t samples = 1, n_best = 1, top = 0, batch_tokens = GenerateOptions().batch_tokens,
          context = 0;
  bool sample = false, json = false, echo = false, no_slide = false;
  ServerFlags server;
  Subcommand command;  // that has the flags

  bool samples_tokens() const { return sample || samples > 1 || search.draws(); }
};

// --- what follows them ---------------------------------------------------------------------------

const char* finish_reason(const Continuation& c) {
  if (c.has_no_room) return "context";
  switch (c.ended) {
    case EndedBy::eos: return "eos";
    case EndedBy::stop: return "stop";
    default: return "length";
  }
}

GenerateOptions options_of(const Flags& f, SearchConfig search, const Precision& precision) {
  const bool samples = f.samples_tokens();
  const int64_t beam = (samples ? f.search : search).beam.value_or(1);
  search.beam = std::max(beam, samples ? 1 : f.n_best);
  search.n_best = std::max(f.n_best, f.samples);
  search.samples = samples;
  if (*search.beam > 1 && !f.search.drafted) search.drafted.reset();  // the model's own setting
  if (f.search.min_new_tokens) search.min_length.reset();
  const int64_t least = search.min_new_tokens.value_or(0), wanted = wanted_tokens(search);
  check(least <= wanted, ErrorKind::usage,
        "--min-new-tokens is {} but --max-new-tokens {}; the first must not be above the second",
        least, wanted);
  if (samples) search.check_draws();
  return {.search = std::move(search),
          .context = f.context,
          .slides = !f.no_slide,
          .batch_tokens = f.batch_tokens,
          .scores = f.json,
          .precision = precision};
}

// Writes what follows the prompts of a block: as it grows where there is only one text, else in
// order, each as soon as those before it are there.
class Output {
 public:
  Output(const Flags& flags, const LoadedModel& model, const GenerateOptions& options)
      : flags_(flags),
        model_(model),
        options_(options),
        context_(context_of(model.tokens(), options)) {}

  void run(const std::vector<Prompt>& prompts) {
    prompts_ = &prompts;
    is_live_ = prompts.size() == 1 && options_.search.width() == 1 && !flags_.json &&
               model_.tokenizer.has_value();
    for (size_t i = 0; i < prompts.size();) {
      if (!prompts[i].error.empty()) {
        show_reason(prompts[i++]);
        continue;
      }
      begin_ = i;
      while (i < prompts.size() && prompts[i].error.empty()) ++i;
      go_on(i);
    }
    first_ += static_cast<int64_t>(prompts.size());
  }

  void report() const {
    report_slides();
    if (options_.search.drafted.value_or(0) == 0) return;
    fmt::print(stderr, "generate: {} of {} accepted ({:.0f} %)\n", format_count(accepted_),
               counted(drafted_, "drafted token"),
               100.0 * static_cast<double>(accepted_) /
                   static_cast<double>(std::max<int64_t>(1, drafted_)));
  }

 private:
  void report_slides() const {
    if (slides_ == 0) return;
    fmt::print(stderr,
               "generate: {} text{} outgrew the {} tokens that the model sees at once; there each "
               "token was chosen from the last {} to {}\n",
               format_count(slides_), slides_ == 1 ? "" : "s", context_, context_ / 2, context_);
  }

  // The prompts from begin_ to `end`.
  void go_on(size_t end) {
    waiting_.clear();
    shown_ = 0;
    streams_.clear();
    GenerateOptions o = options_;
    o.search.first_line = first_ + static_cast<int64_t>(begin_) + 1;
    if (is_live_ || !flags_.stops.empty()) {
      o.on_token = [this](const NewToken& token) { return read(token); };
    }
    o.on_done = [this](int64_t i, const std::vector<Continuation>& found) {
      waiting_[i] = found;
      while (waiting_.contains(shown_)) show(shown_++);
    };
    std::vector<std::vector<int32_t>> ids;
    for (size_t i = begin_; i < end; ++i) ids.push_back((*prompts_)[i].ids);
    if (is_live_) begin(at(0));
    generate_ids(model_.tokens(), ids, o);
  }

  // Number i of those from begin_.
  const Prompt& at(int64_t i) const { return (*prompts_)[begin_ + static_cast<size_t>(i)]; }

  // In the place of what would follow a prompt that is none.
  void show_reason(const Prompt& prompt) {
    if (!flags_.json) {
      begin(prompt);
      return write_results("\n");
    }
    Json json = Json::object(
        {{"prompt", first_ + (&prompt - prompts_->data()) + 1}, {"error", prompt.error}});
    write_results(json.dump() + "\n");
  }

  TextStream stream(int64_t prompt) const {
    return {*model_.tokenizer, at(prompt).ids, flags_.stops};
  }

  // Whether the sequence goes on.
  bool read(const NewToken& token) {
    if (options_.search.beam > 1) return stream(token.prompt).read(token.tokens);
    const std::pair key(token.prompt, token.sample);
    auto found = streams_.find(key);  // making a stream decodes the prompt's end
    if (found == streams_.end()) found = streams_.emplace(key, stream(token.prompt)).first;
    TextStream& text = found->second;
    const bool goes_on = text.read(token.tokens);
    if (is_live_) {
      write_results(text.take());
      flush_results();
    }
    return goes_on;
  }

  void begin(const Prompt& prompt) {
    if (!std::exchange(is_first_, false)) write_results(kBetweenTexts);
    if (!flags_.echo) return;
    const bool has_text = model_.tokenizer.has_value();
    write_results(has_text ? prompt.text : fmt::format("{} ", fmt::join(prompt.ids, " ")));
  }

  void show(int64_t i) {
    const Prompt& prompt = at(i);
    const std::vector<Continuation>& found = waiting_.at(i);
    bool has_slid = false;
    for (size_t n = 0; n < found.size(); ++n) {
      // The token behind the last position needs no room.
      has_slid |= static_cast<int64_t>(prompt.ids.size() + found[n].ids.size()) > context_ + 1;
      if (flags_.json) {
        write_results(json(i, n, found[n]).dump() + "\n");
      } else if (is_live_) {
        const auto text = streams_.find({i, 0});
        write_results((text == streams_.end() ? "" : text->second.take_rest()) + "\n");
      } else {
        begin(prompt);
        write_results(text_of(i, found[n]) + "\n");
      }
    }
    slides_ += has_slid;
    if (!found.empty()) drafted_ += found[0].drafted, accepted_ += found[0].accepted;
    flush_results();
    waiting_.erase(i);
  }

  std::string text_of(int64_t prompt, const Continuation& c) const {
    if (!model_.tokenizer) return fmt::format("{}", fmt::join(c.ids, " "));
    TextStream text = stream(prompt);
    text.read(c.ids);
    return text.text();
  }

  Json json(int64_t i, size_t number, const Continuation& c) const {
    const Prompt& prompt = at(i);
    Json json = Json::object(
        {{"prompt", first_ + static_cast<int64_t>(begin_) + i + 1}, {"sample", number + 1}});
    if (model_.tokenizer) json["text"] = (flags_.echo ? prompt.text : "") + text_of(i, c);
    json["ids"] = c.ids;
    json["log_prob"] = c.log_p;
    json["log_probs"] = c.log_ps;
    if (options_.search.beam > 1) json["score"] = c.score;
    json["finish_reason"] = finish_reason(c);
    json["prompt_tokens"] = prompt.ids.size();
    if (options_.search.drafted.value_or(0) > 0) {
      json["drafted_tokens"] = c.drafted;
      json["accepted_tokens"] = c.accepted;
    }
    return json;
  }

  const Flags& flags_;
  const LoadedModel& model_;
  const GenerateOptions& options_;
  const std::vector<Prompt>* prompts_ = nullptr;
  std::map<std::pair<int64_t, int64_t>, TextStream> streams_;
  std::map<int64_t, std::vector<Continuation>> waiting_;
  int64_t context_, shown_ = 0, first_ = 0, slides_ = 0, drafted_ = 0, accepted_ = 0;
  size_t begin_ = 0;  // of the prompts that go on now
  bool is_live_ = false, is_first_ = true;
};

// The likeliest next tokens of each prompt.
void show_next_tokens(const Flags& flags, const LoadedModel& model, const GenerateOptions& options,
                      const std::vector<Prompt>& prompts, int64_t first) {
  std::vector<std::vector<int32_t>> ids;
  for (const Prompt& prompt : prompts) {
    if (prompt.error.empty()) ids.push_back(prompt.ids);
  }
  const auto found = likely_next_tokens(model.tokens(), ids, flags.top, options);
  auto next = found.begin();
  const std::vector<NextToken> none;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto& tokens = prompts[i].error.empty() ? *next++ : none;
    const int64_t number = first + static_cast<int64_t>(i) + 1;
    if (flags.json) {
      write_results(next_tokens_json(number, tokens, model.tokenizer, prompts[i].error) + "\n");
    } else {
      write_results((number > 1 ? "\n" : "") + next_tokens_table(tokens, model.tokenizer));
    }
  }
}

// The page of the one prompt; its continuation goes to standard output as ever.
void run_steps(const Flags& flags, const LoadedModel& model, GenerateOptions options,
               Prompts& prompts) {
  const std::vector<Prompt> some = prompts.next();
  check(some.size() == 1 && prompts.next().empty(), ErrorKind::usage,
        "--page shows how one prompt goes on; give exactly one");
  const inspect::DecodingRecord record =
      inspect::record_generation(model, some[0].text, some[0].ids, std::move(options));
  write_page("generate", "the steps are", flags.page,
             inspect::decoding_page(record, *model.tokenizer));
  print_result(record.text);
}

// Asks the model of a server, --server.
void run_remotely(const Flags& flags) {
  generate_remotely({.server = flags.server,
                     .model = flags.model,
                     .search = flags.search,
                     .draws = flags.samples_tokens(),
                     .samples = flags.samples,
                     .stops = flags.stops,
                     .echo = flags.echo,
                     .is_chat = flags.is_chat,
                     .system = flags.system,
                     .schema = flags.json_schema.empty() ? Json() : Json::load(flags.json_schema),
                     .prompts = flags.prompts,
                     .lines = flags.lines});
}

// What is written is JSON of this schema.
void take_json_schema(const Flags& flags, const LoadedModel& model, GenerateOptions& options) {
  check(model.tokenizer.has_value(), ErrorKind::usage,
        "--json-schema: {} has no tokenizer, so no text is written", flags.model);
  options.constraint = make_json_constraint(Json::load(flags.json_schema), *model.tokenizer,
                                            model.tokens().vocab_size(), options.search.ends());
}

// What is wrong before the model is read, or the server asked.
void check_flags(const Flags& flags) {
  check(flags.n_best == 1 || !flags.samples_tokens(), ErrorKind::usage,
        "--n-best and --samples exclude each other, as a search finds the best, and draws are as "
        "they come: --samples {} draws so many",
        flags.n_best);
  check(std::min(flags.n_best, flags.samples) >= 1 && std::max(flags.n_best, flags.samples) <= 4096,
        ErrorKind::usage, "--n-best is {} and --samples {}; they must be from 1 to 4096",
        flags.n_best, flags.samples);
  check(flags.top >= 0 && flags.top <= 100'000, ErrorKind::usage,
        "--top is {}; it must be from 1 to 100000", flags.top);
  check((flags.prompts.empty() ? 0 : 1) + (flags.ids.empty() ? 0 : 1) +
                (flags.lines.path.empty() ? 0 : 1) <=
            1,
        ErrorKind::usage, "--prompt, --prompts and --ids exclude each other");
  check(flags.is_chat || flags.system.empty(), ErrorKind::usage, "--system goes with --chat");
  check(flags.stops.empty() || flags.json_schema.empty(), ErrorKind::usage,
        "--stop would cut the JSON of --json-schema");
  for (const std::string& stop : flags.stops) {
    check(!stop.empty() && !first_invalid_utf8(stop), ErrorKind::usage,
          "--stop: {}; text is needed", stop.empty() ? "empty" : "not UTF-8");
  }
  flags.search.check_ranges();
}

// The prompts' continuations, or with --top the tokens that may come next.
void continue_all(const Flags& flags, const LoadedModel& model, const GenerateOptions& options,
                  Prompts& prompts) {
  Output output(flags, model, options);
  int64_t done = 0;
  for (std::vector<Prompt> some; !(some = prompts.next()).empty();) {
    if (flags.top > 0) {
      show_next_tokens(flags, model, options, some, done);
    } else {
      output.run(some);
    }
    done += static_cast<int64_t>(some.size());
  }
  output.report();
}

void run_here(const Flags& flags) {
  const Precision precision = apply_compute_flags(flags.compute);
  wants_page(flags.page);
  const LoadedModel model = load_prompt_model(flags.model);
  check(flags.stops.empty() || model.tokenizer.has_value(), ErrorKind::usage,
        "--stop: {} has no tokenizer, so there is no text to find it in", flags.model);
  SearchConfig search = *model.generation;
  lay_over(search, flags.search);
  GenerateOptions options = options_of(flags, search, precision);
  if (!flags.json_schema.empty()) take_json_schema(flags, model, options);
  const int64_t room = search.max_new_tokens.value_or(wanted_tokens({}));
  const int64_t context = context_of(model.tokens(), options);
  Prompts prompts(flags, model,
                  {.max_new_tokens = flags.no_slide ? room : std::min(room, context / 2),
                   .context = context,
                   .truncate = flags.truncate});
  if (!flags.page.empty()) return run_steps(flags, model, options, prompts);
  continue_all(flags, model, options, prompts);
  prompts.report();
}

void run(const Flags& flags) {
  const bool is_remote =
      asks_server(flags.command, flags.server,
                  {"--prompt", "--prompts", "--skip-bad", "--max-new-tokens", "--stop", "--echo",
                   "--sample", "--samples", "--temperature", "--top-k", "--top-p", "--min-p",
                   "--seed", "--repetition-penalty", "--chat", "--system", "--json-schema"});
  check_flags(flags);
  return is_remote ? run_remotely(flags) : run_here(flags);
}

void add_output_flags(Subcommand& c, Flags& f) {
  add_search_flags(c, f.search, {"max_new_tokens"});
  c.add_option("--context", f.context,
               "tokens that the model sees at once; when they are full, the text goes on from the "
               "last half of them, read anew [as many as the model takes]");
  c.add_flag("--no-slide", f.no_slide,
             "end a text where the context is full (finish_reason \"context\")");
  add_search_flags(c, f.search, {"min_new_tokens"});
  c.add_option("--json-schema", f.json_schema,
               "what is written is a JSON text that this schema allows, whatever the model: a part "
               "of JSON Schema, {\"type\": \"object\"} for any object")
      .type_name("FILE");
  c.add_option("--stop", f.stops, "text that ends the output, which does not hold it; repeatable")
      .allow_extra_args(false);
  add_search_flags(c, f.search, {"num_beams"});
  c.add_setting("--n-best", f.n_best, "continuations of each prompt, best first; widens the beam");
  add_search_flags(
      c, f.search,
      {"length_penalty", "no_repeat_ngram_size", "repetition_penalty", "prompt_lookup_num_tokens"});
}

void add_sampling_flags(Subcommand& c, Flags& f) {
  c.add_flag("--sample", f.sample,
             "draw each token at random, by its probability; so does each flag below");
  c.add_setting("--samples", f.samples, "texts drawn of each prompt");
  add_search_flags(c, f.search, {"temperature", "top_k", "top_p", "min_p", "seed"});
}

}  // namespace

void add_generate(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "generate", "Continue prompts with a language model, written as they grow", run);
  flags.command = command;
  add_model_argument(command, flags.model);
  add_prompt_flags(command, flags);
  add_server_flags(command, flags.server);
  add_output_flags(command, flags);
  add_sampling_flags(command, flags);
  const Option top =
      command.add_option("--top", flags.top,
                         "write no text but the so many likeliest next tokens, with probabilities");
  const Option page = add_page_flag(
      command, flags.page,
      "write a page of how one prompt goes on: likely next tokens, the beam as a tree");
  command.add_flag("--json", flags.json,
                   "a JSON object a text: text, ids, log_prob, log_probs, finish_reason");
  command.add_flag("--echo", flags.echo, "the prompt before its continuation");
  command.add_setting("--batch-tokens", flags.batch_tokens,
                      "tokens of prompts and continuations that are worked on at once");
  add_compute_flags(command, flags.compute);
  for (const char* name : {"--stop", "--json", "--top", "--echo", "--samples", "--n-best"}) {
    command.get_option(name).excludes(page);
  }
  for (const char* name :
       {"--max-new-tokens", "--min-new-tokens", "--stop", "--json-schema", "--beam", "--n-best",
        "--no-repeat-ngram", "--length-penalty", "--repetition-penalty", "--speculate", "--sample",
        "--samples", "--temperature", "--top-k", "--top-p", "--min-p", "--seed", "--echo",
        "--no-slide"}) {
    command.get_option(name).excludes(top);
  }
}

}  // namespace heddle::cli
