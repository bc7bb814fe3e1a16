"""Embeddings through the OpenAI Python SDK, its Azure client and, where it is installed, LangChain, from a tiny bert that the
test makes. Run by `make interop`, for the SDK's current major version and the one before it.
"""

import json
import math
import tempfile
import unittest
import urllib.request
from pathlib import Path

import encoder
import openai
from hearth import Server

try:
    import langchain_openai
except ImportError:
    langchain_openai = None


class Served(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.TemporaryDirectory()
        embeds = encoder.write(Path(cls.tmp.name, "minilm"))
        ranks = encoder.write(Path(cls.tmp.name, "judge"), ranks=True)
        cls.server = Server("--log-level", "warn", "--embedding-model", embeds, "--rerank-model", ranks)

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        cls.tmp.cleanup()
        if code != 0:
            raise AssertionError("hearth did not stop cleanly")


class SDK(Served):
    def setUp(self):
        self.client = openai.OpenAI(base_url=self.server.url + "/v1", api_key="any")
        self.addCleanup(self.client.close)

    def test_forms(self):
        texts = self.client.embeddings.create(model="minilm", input=["a b", "hello"])  # base64, decoded by the SDK
        self.assertEqual((len(texts.data), texts.model, texts.usage.prompt_tokens), (2, "minilm", 11))
        self.assertEqual([d.index for d in texts.data], [0, 1])
        for d in texts.data:
            self.assertEqual(len(d.embedding), encoder.D)
            self.assertAlmostEqual(math.hypot(*d.embedding), 1, places=5)
        for same in ("a b", [2, 4, 6, 3], [[2, 4, 6, 3]]):
            self.assertEqual(self.client.embeddings.create(model="minilm", input=same).data[0].embedding, texts.data[0].embedding)
        floats = self.client.embeddings.create(model="minilm", input="hello", encoding_format="float").data[0].embedding
        for x, y in zip(floats, texts.data[1].embedding):
            self.assertAlmostEqual(x, y, places=6)
        short = self.client.embeddings.create(model="text-embedding-3-small", input="hello", dimensions=8, user="u").data[0].embedding
        self.assertEqual(len(short), 8)
        self.assertAlmostEqual(math.hypot(*short), 1, places=5)

    def test_refused(self):
        for ask, param in ((dict(input=""), "input"), (dict(input=["a", ""]), "input[1]"), (dict(input="a", dimensions=33), "dimensions"),
                           (dict(input="x" * 400), "input"), (dict(input=[1, 5000]), "input[1]"), (dict(model="demo", input="a"), "model")):
            with self.assertRaises(openai.BadRequestError) as caught:
                self.client.embeddings.create(**{"model": "minilm", **ask})
            self.assertEqual(caught.exception.param, param)
        with self.assertRaises(openai.NotFoundError):
            self.client.embeddings.create(model="other", input="a")
        cut = self.client.embeddings.create(model="minilm", input="x" * 400, extra_body={"truncate": True})
        self.assertEqual(cut.usage.total_tokens, encoder.POSITIONS)

    def test_models(self):
        kinds = {m.id: m.kind for m in self.client.models.list()}
        self.assertEqual(kinds, {"demo": "chat", "minilm": "embedding", "judge": "rerank"})

    def test_azure(self):
        with openai.AzureOpenAI(azure_endpoint=self.server.url, api_key="any", api_version="2026-01-01") as azure:
            there = azure.embeddings.create(model="minilm", input="hello")
        here = self.client.embeddings.create(model="minilm", input="hello")
        self.assertEqual(there.data[0].embedding, here.data[0].embedding)

    def test_rerank(self):
        ask = {"model": "judge", "query": "a", "documents": ["b", {"text": "c d"}, "e"], "top_n": 2}
        request = urllib.request.Request(self.server.url + "/v1/rerank", json.dumps(ask).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as reply:
            results = json.load(reply)["results"]
        self.assertEqual(len(results), 2)
        self.assertGreaterEqual(results[0]["relevance_score"], results[1]["relevance_score"])
        self.assertIn(results[0]["document"]["text"], ("b", "c d", "e"))


@unittest.skipUnless(langchain_openai, "langchain-openai is not installed")
class LangChain(Served):
    def connect(self, **kw):
        return langchain_openai.OpenAIEmbeddings(base_url=self.server.url + "/v1", api_key="any", model="minilm", **kw)

    def test_texts(self):
        model = self.connect(check_embedding_ctx_length=False)
        documents = model.embed_documents(["hello", "a b"])
        self.assertEqual([len(v) for v in documents], [encoder.D, encoder.D])
        for x, y in zip(model.embed_query("hello"), documents[0]):
            self.assertAlmostEqual(x, y, places=6)

    def test_ids(self):
        """By default LangChain cuts texts itself and sends ids, here of an encoding that needs no download: bytes."""
        import tiktoken

        byte = tiktoken.Encoding("bytes", pat_str=r"(?s).", mergeable_ranks={bytes([i]): i for i in range(256)}, special_tokens={})
        get, tiktoken.get_encoding, of, tiktoken.encoding_for_model = tiktoken.get_encoding, lambda _: byte, tiktoken.encoding_for_model, lambda _: byte
        try:
            vectors = self.connect().embed_documents(["hello", "a b", "x" * 40])
        finally:
            tiktoken.get_encoding, tiktoken.encoding_for_model = get, of
        plain = openai.OpenAI(base_url=self.server.url + "/v1", api_key="any").embeddings.create(model="minilm", input=list(b"a b"))
        for x, y in zip(vectors[1], plain.data[0].embedding):
            self.assertAlmostEqual(x, y, places=6)


if __name__ == "__main__":
    unittest.main()
