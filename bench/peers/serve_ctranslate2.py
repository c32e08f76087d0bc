"""A server of translations as CTranslate2's users build it: aiohttp, a queue whose texts are translated some at a time by
the translator's own threads. It speaks LibreTranslate's POST /translate, so that `heddle load` asks it and heddle alike.

usage: serve_ctranslate2.py MODEL [--port 8090] [--threads N] [--beam N] [--type TYPE]
       MODEL: a translator of heddle's own as `heddle export` writes it
"""
import argparse
import asyncio
import json
import os
import tempfile

import ctranslate2
import sentencepiece
from aiohttp import web

# What is translated together, and how long a text waits for others: with less of both the translator
# has too little to do at once, with more the first waits longer.
MOST_TEXTS, MOST_SECONDS = 64, 0.002
MOST_WAITING = 4096


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--port", type=int, default=8090)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--type", default="int8")
    return parser.parse_args()


def convert(model, folder):
    """To CTranslate2's format. Marian's own models begin with no token and have the padding last; heddle's do not."""
    from ctranslate2.converters import transformers

    class Loader(transformers.MarianMTLoader):
        def get_model_spec(self, model):
            spec = super().get_model_spec(model)
            spec.decoder.start_from_zero_embedding = False
            return spec

        def _remove_pad_weights(self, spec):
            pass

    transformers._MODEL_LOADERS["MarianConfig"] = Loader()
    transformers.TransformersConverter(model).convert(folder, force=True)
    with open(f"{folder}/config.json") as file:
        config = json.load(file)
    with open(f"{folder}/config.json", "w") as file:
        json.dump(dict(config, decoder_start_token="<s>"), file)


def main():
    args = arguments()
    with tempfile.TemporaryDirectory() as folder:
        convert(args.model, folder)
        # A thread a translator: for small models faster than translators that share threads.
        translator = ctranslate2.Translator(folder, compute_type=args.type, inter_threads=args.threads,
                                            intra_threads=1)
    source = sentencepiece.SentencePieceProcessor(model_file=os.path.join(args.model, "source.spm"))
    target = sentencepiece.SentencePieceProcessor(model_file=os.path.join(args.model, "target.spm"))
    queue = asyncio.Queue()

    def work(texts):
        tokens = [pieces + ["</s>"] for pieces in source.encode(texts, out_type=str)]
        found = translator.translate_batch(tokens, beam_size=args.beam, max_batch_size=MOST_TEXTS)
        return target.decode([one.hypotheses[0] for one in found])

    async def take():
        """Translates what waits, again and again; as many of these run as there are translators."""
        while True:
            batch = [await queue.get()]
            loop = asyncio.get_running_loop()
            until = loop.time() + MOST_SECONDS
            while len(batch) < MOST_TEXTS:
                try:
                    batch.append(await asyncio.wait_for(queue.get(), until - loop.time()))
                except asyncio.TimeoutError:
                    break
            texts = await asyncio.to_thread(work, [text for text, _ in batch])
            for (_, future), text in zip(batch, texts):
                if not future.done():
                    future.set_result(text)

    async def translate(request):
        asked = await request.json()
        if queue.qsize() >= MOST_WAITING:
            return web.json_response({"error": "the queue is full"}, status=429)
        texts = asked["q"] if isinstance(asked["q"], list) else [asked["q"]]
        futures = [asyncio.get_running_loop().create_future() for _ in texts]
        for one in zip(texts, futures):
            queue.put_nowait(one)
        found = await asyncio.gather(*futures)
        return web.json_response({"translatedText": found if isinstance(asked["q"], list) else found[0]})

    async def start(app):
        app["workers"] = [asyncio.create_task(take()) for _ in range(args.threads)]

    app = web.Application(client_max_size=1 << 20)
    app.on_startup.append(start)
    app.router.add_post("/translate", translate)
    web.run_app(app, host="127.0.0.1", port=args.port, print=None, access_log=None)


if __name__ == "__main__":
    main()
