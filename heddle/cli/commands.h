// The commands of the program, one function each; main.cc calls them all.
#pragma once

#include "heddle/cli/command_line.h"
namespace heddle::cli {

/// Each adds one subcommand (flags, help, callback) to the program. Callbacks throw heddle::Error.
void add_tokenizer(Subcommand& app);
void add_train(Subcommand& app);
void add_translate(Subcommand& app);
void add_generate(Subcommand& app);
void add_eval(Subcommand& app);
void add_score(Subcommand& app);
void add_align(Subcommand& app);
void add_fill(Subcommand& app);
void add_augment(Subcommand& app);
void add_caption(Subcommand& app);
void add_classify(Subcommand& app);
void add_detect(Subcommand& app);
void add_embed(Subcommand& app);
void add_serve(Subcommand& app);
void add_forward(Subcommand& app);
void add_export(Subcommand& app);
void add_quantize(Subcommand& app);
void add_shortlist(Subcommand& app);
void add_info(Subcommand& app);
void add_analyze(Subcommand& app);
void add_positions(Subcommand& app);
void add_attention(Subcommand& app);
void add_explain(Subcommand& app);
void add_compare(Subcommand& app);
void add_launch(Subcommand& app);
void add_phrasebook(Subcommand& app);
void add_shapes(Subcommand& app);
void add_demo(Subcommand& app);
void add_bench(Subcommand& app);
void add_load(Subcommand& app);
void add_manual(Subcommand& app);
void add_completion(Subcommand& app);

/// Adds the settings of `heddle train`, which are flags of it once it is called, so that the whole
/// program can be described.
void add_train_settings(Subcommand& app);

}  // namespace heddle::cli
