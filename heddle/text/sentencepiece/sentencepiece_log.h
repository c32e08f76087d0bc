// Keeps SentencePiece from writing to stderr: its errors come back as statuses.
#pragma once

namespace heddle {

/// Raises SentencePiece's log level so that only fatal messages are printed. Beside the noise,
/// 0.1.97's log lines read the first of an empty list while training on a tiny corpus.
void silence_sentencepiece();

}  // namespace heddle
