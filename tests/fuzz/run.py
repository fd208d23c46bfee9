"""Coverage-guided fuzzing of every door: `PYTHONPATH=tests python -m fuzz.run [seconds or file]`.

It needs the extra `fuzz`. It starts from the stored rows of tests/data, from resume lists and from
what earlier runs have left in .cache/fuzz/corpus, and stops with an error at the first value for
which something does not hold. That value is left in .cache/fuzz: name its file instead of the
seconds, and it is tried again.
"""

import json
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["agui_runs"]):
    from fuzz import doors

from fuzz.mutation import mutate
from fuzz.seeds import seeds

KEPT = Path(__file__).parents[2] / ".cache" / "fuzz"


def one(data: bytes) -> None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return
    doors.check(value)


def bend(data: bytes) -> bytes:
    changed: bytes = atheris.Mutate(data, len(data) + 16)
    return changed


def custom_mutator(data: bytes, max_size: int, seed: int) -> bytes:
    return mutate(data, max_size, seed, bend)


def main(what: str) -> None:
    corpus = KEPT / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()):
        (corpus / f"seed-{number}").write_text(json.dumps(seed), encoding="utf-8")
    run = [f"-max_total_time={what}", str(corpus)] if what.isdigit() else [what]
    # The guards: memory as a whole, and what no count of lines shows, a slow call in C.
    guards = ["-max_len=4096", "-timeout=20", "-rss_limit_mb=1024"]
    more = ["-verbosity=0", "-print_final_stats=1", f"-artifact_prefix={KEPT}/"]
    atheris.Setup([sys.argv[0], *guards, *more, *run], one, custom_mutator=custom_mutator)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:] or ["60"])
