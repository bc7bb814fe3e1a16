"""Goldens of internal/tokenizer: small tokenizers and what PyPI tokenizers, sentencepiece and tiktoken make of a set of texts.

Run by hand from the repository root:  python tools/golden/tokenizer.py [mended]

With "mended" it writes only mended.json and golden_mended.json, which need transformers and neither sentencepiece nor tiktoken: a
tokenizer as Mistral's models were published for MLX, and the ids and texts of what transformers makes of it with fix_mistral_regex
and of the decoder that its vocabulary has. Without, it writes internal/tokenizer/testdata/<name>.json (the tokenizers), golden.json (texts, and for each tokenizer the ids
and the decoded text), golden_demo.json (the same texts through the embedded demo model's tokenizer), <name>.model with
golden_files.json (SentencePiece and tiktoken) and golden_unicode.json (rune classes of the reference). The training text
below was written for this file.
"""
import base64
import io
import json
import os
import random
import sys
import tempfile
import unicodedata

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers as pre, processors, trainers

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
OUT = os.path.join(ROOT, "internal", "tokenizer", "testdata")
DEMO = os.path.join(ROOT, "internal", "demo", "model")

CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
END = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
START = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
CASED = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + END
QWEN2 = CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + END
QWEN35 = CONTRACTION + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + END
O200K = (START + "*" + CASED + "+" + CONTRACTION + "?|" + START + "+" + CASED + "*" + CONTRACTION
         + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + END)
MISTRAL = START + "*" + CASED + "+|" + START + "+" + CASED + r"*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + END
# Not one of the known expressions, so that the engine is used.
UNKNOWN = r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))|[\p{Han}]+| ?[\p{L}\p{M}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

DEEPSEEK = ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*" + END)
KIMI_START, KIMI_CASED = (x[:-1] + r"&&[^\p{Han}]]" for x in (START, CASED))
KIMI = (r"[\p{Han}]+|" + KIMI_START + "*" + KIMI_CASED + "+" + CONTRACTION + "?|" + KIMI_START + "+" + KIMI_CASED + "*" + CONTRACTION
        + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + END)

PROSE = """
The kettle's on the hearth and it won't boil. We've waited; they'll wait too, I'm sure. Don't touch the handle: it's hot!
A small fire warms a small room. The room is small, the fire is small, and the night is long. HELLO World, helloWorld, HTTPServer.
func main() { for i := 0; i < 100; i++ { fmt.Println("value", i, 12345, 3.14159) } } // the end of the loop
def add(a, b):\n    return a + b\n\n\nclass Room:\n        def __init__(self):\n                self.fire = None
{"name": "light", "arguments": {"room": "kitchen", "level": 75}}\n{"name": "warm", "arguments": {"degrees": 2024}}
Das Feuer wärmt die große Stube. La bouilloire chante près du feu, c'est l'hiver. El fuego calienta la habitación pequeña.
Огонь греет маленькую комнату. Η φωτιά ζεσταίνει το δωμάτιο. 火が小さな部屋を暖める。火炉温暖了小房间。 불이 작은 방을 따뜻하게 한다.
النار تدفئ الغرفة الصغيرة. आग छोटे कमरे को गर्म करती है। ไฟอุ่นห้องเล็ก 🔥🏠 👩‍👩‍👧 cafe\u0301 café naïve
"""

TEXTS = [
    "", " ", "  ", "\n", "\r\n", " \n ", "\t\t x", "a", "   leading and trailing   ", "Hello, world!", "HELLO WORLD", "helloWorld HTTPServer iPhone XMLHttp",
    "I'm you're he's we'll they'd I've don't", "I'M YOU'RE HE'S WE'LL THEY'D I'VE DON'T", "it'ſ 'ſ 'S 'sss ''s ' s 's't", "x'llama 'retry 'venue",
    "1 12 123 1234 12345 1234567890", "3.14159, 1,000,000 and ½ ² Ⅷ ٣٤٥ १२३", "v1.2.3-rc4", "a\n\nb\n\n\nc", "a \n \n b", "a  b   c    d", "line\r\nline\r\n\r\nline", "x\u00a0y\u2003z\u3000w\u0085v",
    "tab\tseparated\t\tvalues\n", "    indented\n        more\n\tdone", "if (a && b) { return c[0]->d; } // ok\n\n", "https://example.com/a/b?c=d&e=f#g\n/path//to/\n/file", "!!!\n/\n//\n?", "...\n\n\n   ...", "(\u0301) !\u0301 \u0301\u0301 a\u0301 A\u0301B",
    "cafe\u0301 café Å Å ﬁ ½", "Größe ẞ ß ŉ İ ı ǅ ǆ ǄǅǆA", "Привет, мир! ПРИВЕТ", "Γειά σου Κόσμε ΓΕΙΆ", "こんにちは世界、カタカナ。", "火炉温暖了小房间", "불이 작은 방을", "각 각", "مرحبا بالعالم ١٢٣", "नमस्ते दुनिया क्षि", "ไฟอุ่นห้องเล็ก", "שלום עולם",
    "🔥 fire 🏠🏠 👩‍👩‍👧 🇫🇷 👍🏽", "🤷🏾‍♀️", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐐀𐐨 𠀀", "zero\u200bwidth\u200djoin\ufeff", "a\u0000b\u0007c\u007f", "\ufffd\uffff\U0010ffff",
    "<|start|>user\nhello<|end|>\n<|start|>assistant\n", "<|start|><|end|><|start|>", "<|start|", "<|start|>x<|sta", "<<|end|>>", "<think>hmm</think>", "a<mask>b a <mask> b  <mask>  ", "<mask><mask> <mask>", "word keyword key word-key key_ keyé key", "CAFE\u0301 and CAFÉ token", "    four        eight",
    "The kettle's on the hearth and it won't boil." * 2, "a" * 90, "ab" * 50, " " * 60, "\n" * 45 + "x", "the " * 12, "=" * 70, "аб" * 24, "🔥" * 12,
    "a\u1df6\u0316 e\u1ac5\u0301 a\u08d5\u0316\u0301 a\u1df9\u0316\u0301", "a" + "\u0301" * 40 + "b", "e\u0301" + "\u0302\u0323" * 20 + " \u1112\u1161\u11ab \u03c9\u0345\u0301", "o" + "\u0344\u0316\u0328" * 14 + "q\u0307\u0323",
]

POOLS = [(0x20, 0x7F), (0x20, 0x7F), (0xA0, 0x17F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF), (0x600, 0x669), (0x900, 0x96F), (0x1100, 0x1112), (0x1C4, 0x1CC),
         (0x2000, 0x200F), (0x2150, 0x218B), (0x3041, 0x3096), (0x4E00, 0x4EFF), (0xAC00, 0xACFF), (0x1F300, 0x1F5FF), (9, 13), (0x2B0, 0x2C1)]
BITS = [" ", "  ", "\n", " \n\n", "\t", "'s", "'LL", "123456", "'ſ", "<|start|>", "<|end|>", "<mask>", "<think>", " key ", "CAFÉ", "/", "\r\n"]


def random_texts(count):
    r = random.Random(3)
    out = []
    for _ in range(count):
        s = ""
        for _ in range(r.randint(1, 8)):
            lo, hi = r.choice(POOLS)
            s += "".join(chr(r.randint(lo, hi)) for _ in range(r.randint(1, 4)))
            if r.random() < 0.5:
                s += r.choice(BITS)
        # Runes newer than Unicode 15 have different classes on the two sides.
        out.append("".join(c for c in s if unicodedata.category(c) != "Cn"))
    return out


def byte_level(prefix=False, regex=False):
    return pre.ByteLevel(add_prefix_space=prefix, use_regex=regex)


def split(rx):
    return pre.Sequence([pre.Split(Regex(rx), "isolated"), byte_level()])


def train(pre_tokenizer, normalizer=None, size=440, specials=("<|start|>", "<|end|>"), **options):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizer
    if normalizer:
        t.normalizer = normalizer
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator([PROSE], trainers.BpeTrainer(vocab_size=size, initial_alphabet=sorted(pre.ByteLevel.alphabet()), show_progress=False))
    if options:
        d = json.loads(t.to_str())
        d["model"].update(options)
        t = Tokenizer.from_str(json.dumps(d))
    t.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in specials])
    return t


def train_sentencepiece(pre_tokenizer, normalizer, strip=True, missing=()):
    """A BPE over characters with byte tokens, in the form that SentencePiece models are converted to."""
    t = Tokenizer(models.BPE(unk_token="<unk>"))
    t.pre_tokenizer = pre.Metaspace()
    t.train_from_iterator([PROSE.replace("\n", " ")], trainers.BpeTrainer(vocab_size=420, show_progress=False, limit_alphabet=80))
    d = json.loads(t.to_str())
    vocab = d["model"]["vocab"]
    for token in ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256) if b not in missing]:
        vocab.setdefault(token, len(vocab))
    d["model"].update(byte_fallback=True, fuse_unk=True, unk_token="<unk>")
    t = Tokenizer.from_str(json.dumps(d))
    t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizer
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
                                  + ([decoders.Strip(" ", 1, 0)] if strip else []))
    t.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in ["<unk>", "<s>", "</s>", "<|start|>", "<|end|>"]])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", vocab["<s>"])])
    return t


def train_words(model, trainer, normalizer, pre_tokenizer, decoder, specials, texts=None):
    t = Tokenizer(model)
    t.normalizer, t.pre_tokenizer, t.decoder = normalizer, pre_tokenizer, decoder
    t.train_from_iterator([texts or PROSE], trainer)
    t.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in specials])
    return t


def charsmap():
    """A compiled character map from rules of our own, as SentencePiece makes it."""
    rules = {"\ufb01": "fi", "\u00bd": "1/2", "\u2003": " ", "\u3000": " ", "\u00a0": " ", "\t": " ", "\n": " ", "\r": " ", "e\u0301": "\u00e9", "\u200b": "",
             "\uff21": "A", "\u2460": "1", "\u1112\u1161": "\ud558", "\u2126": "\u03a9"}
    path = os.path.join(tempfile.mkdtemp(), "rules.tsv")
    with open(path, "w", encoding="utf-8") as f:
        for k, v in rules.items():
            f.write(" ".join(f"{ord(c):X}" for c in k) + "\t" + " ".join(f"{ord(c):X}" for c in v) + "\n")
    return path


def sentencepiece_model(**options):
    import sentencepiece
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(PROSE.strip().split("\n")), model_writer=out, minloglevel=2, num_threads=1,
                                             hard_vocab_limit=False, **options)
    return out.getvalue()


def precompiled(model):
    """The character map inside a SentencePiece model: field 2 of field 3."""
    from sentencepiece import sentencepiece_model_pb2 as pb
    m = pb.ModelProto()
    m.ParseFromString(model)
    return m.normalizer_spec.precompiled_charsmap


def build_words():
    """WordPiece, Unigram and WordLevel models and the components that go with them."""
    unigram = trainers.UnigramTrainer(vocab_size=300, unk_token="<unk>", special_tokens=["<unk>", "<s>", "</s>"], show_progress=False)
    bytes_too = trainers.UnigramTrainer(vocab_size=300, unk_token="<unk>", show_progress=False, special_tokens=["<unk>"] + [f"<0x{b:02X}>" for b in range(256)])
    wordpiece = trainers.WordPieceTrainer(vocab_size=400, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False, limit_alphabet=90)
    charmap = normalizers.Precompiled(precompiled(sentencepiece_model(vocab_size=260, model_type="unigram", normalization_rule_tsv=charsmap())))
    falcon = train(pre.Sequence([pre.Punctuation("contiguous"), byte_level(regex=True), pre.Digits(individual_digits=False), pre.Split(Regex("[0-9][0-9][0-9]"), "isolated")]))
    made = {
        "bert": train_words(models.WordPiece(unk_token="[UNK]"), wordpiece, normalizers.BertNormalizer(), pre.BertPreTokenizer(), decoders.WordPiece(), ["[CLS]", "[SEP]", "[MASK]"]),
        "bert_cased": train_words(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=12), wordpiece, normalizers.BertNormalizer(lowercase=False, handle_chinese_chars=False), pre.Whitespace(), decoders.WordPiece(cleanup=False), []),
        "unigram": train_words(models.Unigram(), unigram, normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]), pre.Metaspace(), decoders.Metaspace(), []),
        "unigram_map": train_words(models.Unigram(), unigram, normalizers.Sequence([charmap, normalizers.Strip(), normalizers.Nmt()]),
                                   pre.Sequence([pre.WhitespaceSplit(), pre.Metaspace()]), decoders.Metaspace(), []),
        "unigram_bytes": train_words(models.Unigram(byte_fallback=True), bytes_too, None, pre.Metaspace(prepend_scheme="never"),
                                     decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]), []),
        "level": train_words(models.WordLevel(unk_token="<unk>"), trainers.WordLevelTrainer(vocab_size=120, special_tokens=["<unk>"], show_progress=False),
                             normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]),
                             pre.Sequence([pre.CharDelimiterSplit("-"), pre.Punctuation("merged_with_previous"), pre.WhitespaceSplit()]), None, []),
        "suffix": train_words(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", continuing_subword_prefix="@@"),
                              trainers.BpeTrainer(vocab_size=300, special_tokens=["<unk>"], end_of_word_suffix="</w>", continuing_subword_prefix="@@", show_progress=False, limit_alphabet=60),
                              normalizers.Sequence([normalizers.NFKD(), normalizers.Lowercase()]), pre.Sequence([pre.Whitespace(), pre.Punctuation("merged_with_next")]), decoders.BPEDecoder(), []),
        "bytes_normalized": train_words(models.BPE(), trainers.BpeTrainer(vocab_size=420, initial_alphabet=sorted(pre.ByteLevel.alphabet()), show_progress=False),
                                        normalizers.Sequence([normalizers.Prepend("x"), normalizers.ByteLevel()]), pre.Split(Regex("\u0120?[a-z]++|[^a-z&&[^\u0120]]{1,4}+"), "isolated"), decoders.ByteLevel(), []),
        "falcon": falcon,
        "deepseek": train(pre.Sequence([pre.Split(Regex(r"\p{N}{1,3}"), "isolated"), pre.Split(Regex("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"), "isolated"), pre.Split(Regex(DEEPSEEK), "isolated"), byte_level()])),
        "kimi": train(pre.Sequence([pre.Split(Regex(KIMI), "removed", invert=True), byte_level()])),
        "fixed": train(pre.Sequence([pre.FixedLength(7), byte_level()])),
    }
    made["bert"].post_processor = processors.BertProcessing(("[SEP]", made["bert"].token_to_id("[SEP]")), ("[CLS]", made["bert"].token_to_id("[CLS]")))
    return made


def build():
    made = {
        "gpt2": train(byte_level(prefix=True, regex=True)),
        "llama3": train(split(LLAMA3), ignore_merges=True),
        "qwen2": train(split(QWEN2), normalizers.NFC()),
        "qwen35": train(split(QWEN35), normalizers.NFC()),
        "o200k": train(split(O200K)),
        "mistral": train(split(MISTRAL)),
        "unknown": train(split(UNKNOWN)),
        "digits": train(pre.Sequence([pre.Digits(individual_digits=True), byte_level(regex=True)])),
        "sentencepiece": train_sentencepiece(None, normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]), missing=range(0xE2, 0xE4)),
        "metaspace_first": train_sentencepiece(pre.Metaspace(prepend_scheme="first", split=False), None),
        "metaspace_words": train_sentencepiece(pre.Metaspace(prepend_scheme="always", split=True), None),
        "split_space": train_sentencepiece(pre.Split(" ", "merged_with_previous"), normalizers.Replace(" ", "\u2581"), strip=False),
        "added": train(split(QWEN2), normalizers.NFC()),
    }
    made["llama3"].post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|start|> $A", pair="<|start|> $A <|start|> $B", special_tokens=[("<|start|>", made["llama3"].token_to_id("<|start|>"))])])
    made["gpt2"].post_processor = processors.RobertaProcessing(
        ("<|end|>", made["gpt2"].token_to_id("<|end|>")), ("<|start|>", made["gpt2"].token_to_id("<|start|>")))
    made["added"].add_special_tokens([AddedToken("<mask>", special=True, normalized=False, lstrip=True, rstrip=True)])
    made["added"].add_tokens([
        AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False), AddedToken("key", single_word=True, normalized=False),
        AddedToken("CAFE\u0301", normalized=True), AddedToken("        ", normalized=False), AddedToken("Ġé", normalized=False)])
    made["qwen2"].add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False)])
    return made


def cases(t, texts):
    out = {"ids": [], "special": [], "plain": [], "text": {}, "skipped": {}}
    for i, text in enumerate(texts):
        t.encode_special_tokens = False
        ids = t.encode(text, add_special_tokens=False).ids
        special = t.encode(text, add_special_tokens=True).ids
        t.encode_special_tokens = True
        plain = t.encode(text, add_special_tokens=False).ids
        t.encode_special_tokens = False
        out["ids"].append(ids)
        # Rows that differ from the plain ones only, to keep the file small.
        if i < 20:
            out["special"].append(None if special == ids else special)
        out["plain"].append(None if plain == ids else plain)
        whole = t.decode(ids, skip_special_tokens=False)
        if whole != text:
            out["text"][i] = whole
        skipped = t.decode(ids, skip_special_tokens=True)
        if skipped != whole:
            out["skipped"][i] = skipped
    # Ids in random order give broken UTF-8.
    r = random.Random(5)
    size = t.get_vocab_size()
    out["random"] = []
    for _ in range(40):
        ids = [r.randrange(size) for _ in range(r.randint(1, 12))]
        out["random"].append([ids, t.decode(ids, skip_special_tokens=False)])
    return out


def sentencepiece_files():
    """SentencePiece models of both kinds, and what the library makes of the texts."""
    import sentencepiece
    made = {
        "sp_bpe": dict(vocab_size=560, model_type="bpe", byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False, character_coverage=0.98,
                       user_defined_symbols=["<sep>", "key", "    "], control_symbols=["<|start|>"]),
        "sp_bpe_plain": dict(vocab_size=300, model_type="bpe", normalization_rule_tsv=charsmap(), character_coverage=0.98),
        "sp_unigram": dict(vocab_size=260, model_type="unigram", normalization_rule_tsv=charsmap(), character_coverage=0.98, user_defined_symbols=["<sep>", "key"]),
        "sp_unigram_bytes": dict(vocab_size=560, model_type="unigram", byte_fallback=True, normalization_rule_name="identity", add_dummy_prefix=False, remove_extra_whitespaces=False),
        "sp_suffix": dict(vocab_size=260, model_type="unigram", normalization_rule_name="identity", treat_whitespace_as_suffix=True, character_coverage=0.98, unk_surface="?"),
    }
    for name, options in made.items():
        data = sentencepiece_model(**options)
        sp = sentencepiece.SentencePieceProcessor(model_proto=data)
        yield name, data, lambda s, sp=sp: sp.encode(s), lambda ids, sp=sp: sp.decode(ids), sp.get_piece_size()


def tiktoken_file(pattern):
    """A tiktoken vocabulary made of the merges of a trained BPE."""
    import tiktoken
    t = train(split(LLAMA3), size=440, specials=())
    runes = {c: b for b, c in tiktoken_bytes()}
    ranks = {bytes(runes[c] for c in token): rank for token, rank in t.get_vocab().items()}
    # tiktoken wants a token's parts to have lower ranks than it; the trainer's ids are in order of the merges.
    data = b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in sorted(ranks.items(), key=lambda x: x[1]))
    e = tiktoken.Encoding("golden", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return data, e


def tiktoken_bytes():
    """The pairs of byte and printable character of byte-level vocabularies."""
    plain = list(range(0x21, 0x7F)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    rest = [b for b in range(256) if b not in plain]
    return [(b, chr(b)) for b in plain] + [(b, chr(256 + i)) for i, b in enumerate(rest)]


def files(texts):
    """Goldens of tokenizer.model and tiktoken.model."""
    out = {}

    def add(name, data, encode, decode, size):
        with open(os.path.join(OUT, name + ".model"), "wb") as f:
            f.write(data)
        r = random.Random(7)
        rows = [[r.randrange(size) for _ in range(r.randint(1, 12))] for _ in range(40)]
        ids = [encode(s) for s in texts]
        out[name] = {"ids": ids, "text": [decode(i) for i in ids], "random": [[row, decode(row)] for row in rows]}

    for item in sentencepiece_files():
        add(*item)
    for name, pattern in (("tiktoken_llama3", LLAMA3), ("tiktoken_kimi", KIMI)):
        data, e = tiktoken_file(pattern)
        add(name, data, lambda s, e=e: e.encode_ordinary(s), lambda ids, e=e: e.decode(ids), e.n_vocab)
    return out


def unicode_classes():
    """Runes, as ranges, that components of the reference treat in their own way."""
    clean = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    accents = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
    marks, punct = normalizers.StripAccents(), pre.BertPreTokenizer()
    tests = {
        "control": lambda c: clean.normalize_str("a" + c + "b") == "ab",
        "nonspacing": lambda c: accents.normalize_str(c) == "",
        "mark": lambda c: marks.normalize_str(c) == "",
        "punct": lambda c: len(punct.pre_tokenize_str("a" + c + "b")) == 3,
    }
    out = {}
    for name, test in tests.items():
        ranges = []
        for c in range(0x20, 0x110000):
            if 0xD800 <= c < 0xE000 or not test(chr(c)):
                continue
            if ranges and ranges[-1][1] == c - 1:
                ranges[-1][1] = c
            else:
                ranges.append([c, c])
        out[name] = ranges
    return out


def mended(texts):
    """A byte-level vocabulary with the decoder of SentencePiece models and the wrong expression, and what it is once both are right."""
    import transformers
    from transformers.tokenization_utils_tokenizers import TokenizersBackend

    t = train(split(LLAMA3), specials=("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "<|start|>", "<|end|>"))
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    with open(os.path.join(OUT, "mended.json"), "w", encoding="utf-8") as f:
        f.write(t.to_str() + "\n")
    folder = tempfile.mkdtemp()
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump({"model_type": "mistral3", "transformers_version": "4.57.1"}, f)
    right = TokenizersBackend._patch_mistral_regex(Tokenizer.from_str(t.to_str()), folder, is_local=True, init_kwargs={}, fix_mistral_regex=True)
    t.decoder = right.decoder = decoders.ByteLevel()
    made_by = f"tokenizers {tokenizers.__version__}, transformers {transformers.__version__}, python {sys.version.split()[0]}"
    write("golden_mended.json", {"made_by": made_by, "texts": texts, "tokenizers": {"decoder": cases(t, texts), "decoder and expression": cases(right, texts)}})
    print(made_by)


def write(name, value):
    with open(os.path.join(OUT, name), "w", encoding="utf-8") as f:
        json.dump(value, f, ensure_ascii=True, separators=(",", ":"))
        f.write("\n")


def main():
    os.makedirs(OUT, exist_ok=True)
    texts = TEXTS + random_texts(32)
    if sys.argv[1:] == ["mended"]:
        return mended(texts)
    import sentencepiece
    import tiktoken
    made_by = f"tokenizers {tokenizers.__version__}, python {sys.version.split()[0]}"
    files_by = f"sentencepiece {sentencepiece.__version__}, tiktoken {tiktoken.__version__}, python {sys.version.split()[0]}"
    golden = {"made_by": made_by, "texts": texts, "tokenizers": {}}
    for name, t in (build() | build_words()).items():
        with open(os.path.join(OUT, name + ".json"), "w", encoding="utf-8") as f:
            f.write(t.to_str() + "\n")
        golden["tokenizers"][name] = cases(t, texts)
    write("golden.json", golden)
    demo = Tokenizer.from_file(os.path.join(DEMO, "tokenizer.json"))
    extra = ["<|im_start|>system\nYou are a demo.<|im_end|>\n<|im_start|>user\nWhat's the weather in Oslo?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
             '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call><|im_end|>']
    write("golden_demo.json", {"made_by": made_by, "texts": texts + extra, "tokenizers": {"demo": cases(demo, texts + extra)}})
    write("golden_files.json", {"made_by": files_by, "texts": texts, "files": files(texts)})
    write("golden_unicode.json", {"made_by": made_by, "classes": unicode_classes()})
    print(made_by + "; " + files_by)


if __name__ == "__main__":
    main()
