// The commands of the program, one function each; main.cc calls them all.
#pragma once

namespace CLI {
class App;
}

namespace heddle::cli {

/// Each adds one subcommand (flags, help, callback) to the program. Callbacks throw heddle::Error.
void add_tokenizer(CLI::App& app);
void add_train(CLI::App& app);
void add_translate(CLI::App& app);
void add_generate(CLI::App& app);
void add_eval(CLI::App& app);
void add_score(CLI::App& app);
void add_align(CLI::App& app);
void add_fill(CLI::App& app);
void add_classify(CLI::App& app);
void add_embed(CLI::App& app);
void add_forward(CLI::App& app);
void add_export(CLI::App& app);
void add_info(CLI::App& app);
void add_analyze(CLI::App& app);
void add_positions(CLI::App& app);
void add_attention(CLI::App& app);
void add_explain(CLI::App& app);
void add_compare(CLI::App& app);
void add_phrasebook(CLI::App& app);
void add_demo(CLI::App& app);
void add_bench(CLI::App& app);
void add_manual(CLI::App& app);
void add_completion(CLI::App& app);

/// Adds the settings of `heddle train`, which are flags of it once it is called, so that the whole
/// program can be described.
void add_train_settings(CLI::App& app);

}  // namespace heddle::cli
