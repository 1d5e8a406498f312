"""``denspu predict``: new files through the model of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ModelPath = Annotated[
    Path, typer.Option(help="The model of a run: run/model, or run itself.")
]
Device = Annotated[
    str | None, typer.Option(help="auto, cpu, cuda, cuda:1. By default as saved.")
]
Chunk = Annotated[
    int,
    typer.Option(min=1, help="Items in memory at a time; the answers stay the same."),
]
IdColumn = Annotated[
    str | None,
    typer.Option(help="Column with the names of the rows, if not as fitted."),
]
TextColumn = Annotated[
    str | None, typer.Option(help="Column with the texts, if not as fitted.")
]
VectorColumn = Annotated[
    str | None, typer.Option(help="Column with embeddings, if not as fitted.")
]
Ids = Annotated[
    Path | None, typer.Option(help="File with one id a line, for .npy embeddings.")
]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of texts and CSV files, if not as fitted.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object with all facts.")]

WIDTH = 9
CHUNK = 4096


def predict(
    source: Annotated[
        Path, typer.Argument(metavar="INPUT", help="Folder or file of new items.")
    ],
    model: ModelPath,
    out: Annotated[Path, typer.Option(help="Answers: a .csv or .parquet file.")],
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="A score, prior, recall=0.9, precision=0.9, or top=200 (of these "
            "items). By default the model's own.",
        ),
    ] = None,
    chunk: Chunk = CHUNK,
    device: Device = None,
    id_column: IdColumn = None,
    text_column: TextColumn = None,
    vector_column: VectorColumn = None,
    ids: Ids = None,
    encoding: Encoding = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an older file.")
    ] = False,
    json: Json = False,
) -> None:
    """Score new items with the model of a run; any number of them.

    The file has the columns item, score, probability, rank and decision. What cannot be
    read is listed beside it, in NAME.skipped.csv.
    """
    import sys

    from denspu.runs.options import Reading
    from denspu.runs.predict import predict_files

    shown = sys.stderr.isatty()

    def tell(done: int, skipped: int) -> None:
        if shown:
            print(f"\r{done:,} scored, {skipped:,} skipped", end="", file=sys.stderr)

    found = predict_files(
        model_folder(model),
        source,
        out,
        chunk=chunk,
        device=device,
        threshold=threshold,
        overwrite=overwrite,
        reading=Reading(id_column, text_column, vector_column, ids, encoding),
        tell=tell,
    )
    if shown:
        print("\r\033[K", end="", file=sys.stderr)
    if json:
        from json import dumps

        print(dumps(found.to_json(), indent=1))
        return
    for note in found.notes:
        say("note", note)
    say("items", found.summary())
    say("threshold", found.threshold_sentence)
    if found.n_skipped:
        say("skipped", f"{found.n_skipped:,}, listed in {found.skipped_out}")
    say("wrote", found.out)


def model_folder(path: Path) -> Path:
    """Return the folder of the model; the run folder around it is taken too."""
    inside = path / "model"
    alone = not (path / "manifest.json").exists()
    return inside if alone and (inside / "manifest.json").exists() else path


def say(word: str, sentence: str) -> None:
    """Print one line: what it is about, and what is to be said."""
    print(f"{word:<{WIDTH}} {sentence}", flush=True)
