"""``denspu evaluate``: the answers of a model beside true labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from denspu.cli.predict import (
    CHUNK,
    Chunk,
    Device,
    Encoding,
    IdColumn,
    Ids,
    Json,
    ModelPath,
    TextColumn,
    VectorColumn,
    model_folder,
)


def evaluate(
    model: ModelPath,
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="[INPUT]",
            help="Folder or file of the items. By default the run's unlabelled items.",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Table with item and label (1, 0, or nothing: not known)."),
    ] = None,
    label_column: Annotated[
        str | None,
        typer.Option(help="Column of --labels; without it, of INPUT itself."),
    ] = None,
    item_column: Annotated[
        str | None, typer.Option(help="Column of --labels with the names.")
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="A score, prior, recall=0.9 or precision=0.9. By default the model's "
            "own.",
        ),
    ] = None,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.9,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    chunk: Chunk = CHUNK,
    device: Device = None,
    id_column: IdColumn = None,
    text_column: TextColumn = None,
    vector_column: VectorColumn = None,
    ids: Ids = None,
    encoding: Encoding = None,
    json: Json = False,
) -> None:
    """Compare the model with true labels, and its own estimates with both."""
    from denspu.runs.evaluate import evaluate_files
    from denspu.runs.options import Reading

    found = evaluate_files(
        model_folder(model),
        source,
        labels=labels,
        label_column=label_column,
        item_column=item_column,
        threshold=threshold,
        level=level,
        random_state=seed,
        chunk=chunk,
        device=device,
        reading=Reading(id_column, text_column, vector_column, ids, encoding),
    )
    if json:
        from json import dumps

        print(dumps(found.to_json(), indent=1))
        return
    print(found)
