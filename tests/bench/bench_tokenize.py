#!/usr/bin/env python3
"""How fast nl-tokenize is beside the Python packages gigatoken and tokenizers; not part of the test run.

    python bench_tokenize.py BUILD/bin/nl-tokenize TOKENIZERS DATA [NAME...]

TOKENIZERS holds a folder with tokenizer.json for each NAME (llama3_1, qwen2_5, gptoss), DATA wikitext-2-raw-test.txt and
tinyshakespeare.txt. Two texts of 20 MB are made in a temporary folder: prose, the two files over and over with words
changed, and code, the Python and C sources found on this machine. All run on one thread with empty caches, in turn, and
the best of some runs counts, in CPU time, which other programs disturb less: nl-tokenize as a whole process, from file to
file; gigatoken's encode_files alone, with its tokenizer loaded, from a file to memory. Prints MB/s and ratios, and exits 1 if
ids differ from those of `tokenizers` on the first 500 kB, or of gigatoken on all (which is said, not failed: it may be wrong).
"""
import glob
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time

import gigatoken
import numpy
from tokenizers import Tokenizer

SIZE, PART, RUNS = 20_000_000, 500_000, 3


def prose(data):
    texts = [open(os.path.join(data, name), encoding="utf-8").read() for name in ("wikitext-2-raw-test.txt", "tinyshakespeare.txt")]
    r, out, size = random.Random(1), [], 0
    while size < SIZE:
        for line in "".join(texts).splitlines(True):
            words = line.split(" ")
            for i in range(len(words)):  # a word in fifty is another one
                if r.randrange(50) == 0 and words[i].isalpha():
                    words[i] = "".join(r.sample(words[i], len(words[i])))
            out.append(" ".join(words))
            size += len(out[-1].encode())
            if size >= SIZE:
                break
    return "".join(out).encode()


def code():
    out, size = [], 0
    for pattern in ("/usr/lib/python3*/**/*.py", "/usr/include/**/*.h", "/usr/lib/gcc/**/*.h", "/usr/local/lib/**/*.py",
                    sys.prefix + "/lib/python3*/**/*.py"):
        for path in sorted(glob.glob(pattern, recursive=True)):
            try:
                text = open(path, encoding="utf-8").read().replace("\0", "")
            except (OSError, UnicodeDecodeError):
                continue
            out.append(text)
            size += len(text.encode())
            if size >= SIZE:
                return "".join(out).encode()
    return "".join(out).encode()


def ids_of(path):
    """The ids of a stream, see nl-stream(5)."""
    data, at, ids = open(path, "rb").read(), 0, []
    while at < len(data):
        kind, _, length = struct.unpack_from("<4sIQ", data, at)
        if kind == b"TOKS":
            ids.append(numpy.frombuffer(data, "<u4", length // 4, at + 16))
        at += 16 + length
    return numpy.concatenate(ids) if ids else numpy.zeros(0, "<u4")


def cpu(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def run_ours(program, folder, text, out, *options):
    before = cpu(resource.RUSAGE_CHILDREN)
    subprocess.run([program, "--raw", "--threads", "1", "-m", folder, *options, text], stdout=open(out, "wb"), check=True)
    return cpu(resource.RUSAGE_CHILDREN) - before


def run_gigatoken(folder, text, out):
    """In a process of its own: its caches are empty then."""
    script = ("import gigatoken,sys,time;t=gigatoken.Tokenizer.from_json(open(sys.argv[1]).read());"
              "s=gigatoken.TextFileSource([sys.argv[2]]);b=time.process_time();r=t.encode_files(s,parallel=False);"
              "print(time.process_time()-b);import numpy;numpy.concatenate([numpy.asarray(x) for x in r]).astype('<u4').tofile(sys.argv[3])")
    got = subprocess.run([sys.executable, "-c", script, folder + "/tokenizer.json", text, out], capture_output=True, text=True)
    if got.returncode != 0:
        print("gigatoken: " + got.stderr.strip().splitlines()[-1])
        return None
    return float(got.stdout)


def compare(program, folder, name, text, where):
    size = os.path.getsize(text)
    ours, theirs = where + "/ours", where + "/theirs"
    run_ours(program, folder, text, ours)  # writes the compiled tokenizer
    times, other = [], []
    for _ in range(RUNS):
        times.append(run_ours(program, folder, text, ours))
        other.append(run_gigatoken(folder, text, theirs))
    ids, part = ids_of(ours), open(text, "rb").read(PART).decode(errors="ignore")
    reference = Tokenizer.from_file(folder + "/tokenizer.json")
    begin = time.process_time()
    wanted = reference.encode(part, add_special_tokens=False).ids
    slow = time.process_time() - begin
    open(where + "/part", "w", encoding="utf-8", newline="").write(part)
    run_ours(program, folder, where + "/part", where + "/part.ids")
    good = numpy.array_equal(ids_of(where + "/part.ids"), numpy.array(wanted, "<u4"))
    speed = size / min(times) / 1e6
    line = f"{name:10} {os.path.basename(text):6} {size / 1e6:6.1f} MB  nl-tokenize {speed:6.1f} MB/s"
    if None not in other:
        same = numpy.array_equal(ids, numpy.fromfile(theirs, "<u4"))
        line += f"  gigatoken {size / min(other) / 1e6:6.1f} MB/s{'' if same else ' (other ids)'}  ratio {min(other) / min(times):5.2f}"
    line += f"  tokenizers {len(part.encode()) / slow / 1e6:5.2f} MB/s  ratio {speed * slow * 1e6 / len(part.encode()):6.1f}"
    print(line + ("" if good else "  WRONG IDS"), flush=True)
    return good


def main():
    program, tokenizers, data = sys.argv[1:4]
    names = sys.argv[4:] or ["llama3_1", "qwen2_5", "gptoss"]
    good = True
    with tempfile.TemporaryDirectory() as where:
        for name, text in (("prose", prose(data)), ("code", code())):
            open(os.path.join(where, name), "wb").write(text)
        for name in names:
            for kind in ("prose", "code"):
                good &= compare(program, os.path.join(tokenizers, name), name, os.path.join(where, kind), where)
        test = os.path.join(data, "wikitext-2-raw-test.txt")
        for name in names:
            took = min(run_ours(program, os.path.join(tokenizers, name), test, where + "/ours") for _ in range(10))
            print(f"{name:10} WikiText-2 test, the whole process: {took * 1000:.0f} ms")
    sys.exit(not good)


main()
