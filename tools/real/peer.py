"""llama.cpp's server on a GGUF file, on a free port that it prints, until standard input ends: peer.py FILE THREADS [DRAFTER [NAME=NUMBER...]]

DRAFTER is one of ngram_simple, ngram_map_k, ngram_map_k4v, ngram_mod and ngram_cache; names and numbers are its settings."""

import sys

import xllamacpp

p = xllamacpp.CommonParams()
p.model.path, threads = sys.argv[1], int(sys.argv[2])
p.hostnames, p.port = ["127.0.0.1"], 0
p.n_parallel, p.n_ctx, p.swa_full, p.verbosity = 1, 2048, True, 0
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = threads
if len(sys.argv) > 3:
    drafter = sys.argv[3]
    p.speculative.types = [getattr(xllamacpp.common_speculative_type, "COMMON_SPECULATIVE_TYPE_" + drafter.upper())]
    for setting in sys.argv[4:]:
        name, number = setting.split("=")
        setattr(getattr(p.speculative, drafter), name, int(number))
server = xllamacpp.Server(p)
print(server.listening_address, flush=True)
sys.stdin.read()
