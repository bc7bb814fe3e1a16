"""llama.cpp's server on a GGUF file, on a free port that it prints, until standard input ends: peer.py FILE THREADS"""

import sys

import xllamacpp

p = xllamacpp.CommonParams()
p.model.path, threads = sys.argv[1], int(sys.argv[2])
p.hostnames, p.port = ["127.0.0.1"], 0
p.n_parallel, p.n_ctx, p.swa_full, p.verbosity = 1, 2048, True, 0
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = threads
server = xllamacpp.Server(p)
print(server.listening_address, flush=True)
sys.stdin.read()
