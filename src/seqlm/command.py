"""The command ``seqlm``: fit, score, generate, export, arpa.

seqlm fit my.txt --model lstm --output my-lstm
seqlm score my-lstm other.txt --by word > surprisals.csv
seqlm generate my-lstm "The " --num-preds 200 --seed 1
"""

import math
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import seqlm
from seqlm.core.errors import DataError, Interrupted, ParamsError, needs_extra, reporting
from seqlm.core.files import open_unpacked, require_own_file, write_text, writing
from seqlm.core.progress import count_noun, shown

if TYPE_CHECKING:
    from seqlm.models.language_model import LanguageModel
    from seqlm.models.surprisals import Score

NGRAM_MODELS = ("kneser-ney", "laplace")
_NOT_SET = {"texts", "smoothing", "progress"}
"""Arguments of the functions that ``fit`` calls which its own arguments decide."""
_STDIN = Path("-")
_PATH = click.Path(path_type=Path, allow_dash=True, readable=False)


class _Group(click.Group):
    """Commands whose errors are one line and an exit code."""

    def main(self, *args: Any, **extra: Any) -> Any:
        warnings.showwarning = lambda message, *_: click.echo(f"warning: {message}", err=True)
        try:
            with reporting(_fail, "use a shorter text or a smaller model"):
                return super().main(*args, **extra | {"standalone_mode": False})
        except click.UsageError as error:
            _fail(error.format_message(), ParamsError.exit_code)
        except (click.Abort, KeyboardInterrupt):
            _fail("interrupted", Interrupted.exit_code)


def _fail(message: str, code: int) -> None:
    click.echo(f"error: {' '.join(message.split())}", err=True)
    sys.exit(code)


@click.group(
    cls=_Group,
    invoke_without_command=True,
    context_settings={"max_content_width": 100, "show_default": True},
)
@click.version_option(package_name="seqlm", message="seqlm %(version)s")
@click.pass_context
def main(context: click.Context) -> None:
    """Train, score and sample language models of text, from n-grams to recurrent networks.

    MODEL is a folder that `seqlm fit`, `model.save` or the pipeline wrote, or an ARPA file.
    A text is the path of a UTF-8 file, plain or packed; - is standard input.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@main.command()
@click.argument("texts", nargs=-1, required=True, type=_PATH)
@click.option("--output", required=True, type=_PATH, help="New folder.")
@click.option(
    "--model",
    default="lstm",
    help="lstm, gru, rnn, scratch or transformer; kneser-ney or laplace for n-grams.",
)
@click.option("--by", help="Kind of token: char, word or subword. [default: char; n-grams: word]")
@click.option(
    "--normalise", help="letters: keep only A to Z, in lower case; none: all of the text."
)
@click.option("--order", type=int, help="N-grams: tokens of an n-gram. [default: 3]")
@click.option("--val", help="Networks: a file, or the share at the end, that chooses the epoch.")
@click.option("--seed", type=int, help="Networks: seed of the random numbers.")
@click.option("--num-threads", type=int, help="Networks: threads that train.")
@click.option("--checkpoint", type=_PATH, help="Networks: resume from here.")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any other setting; repeatable."
)
@click.option("--quiet", is_flag=True, help="No progress bar.")
def fit(texts: Sequence[Path], output: Path, settings: Sequence[str], **options: Any) -> None:
    """Train a model on TEXTS and write it to a folder.

    Example: seqlm fit my.txt --model lstm --output my-lstm
    """
    from seqlm.models.saving import require_new_folder

    require_new_folder(output)
    given = {name: value for name, value in options.items() if value is not None}
    for name, value in map(_setting, settings):
        if name in options or name in _NOT_SET:
            raise ParamsError(f"--set {name}: an argument or an option of its own decides this")
        given[name] = value
    architecture, quiet = given.pop("model"), given.pop("quiet")
    contents = [_read(path) for path in texts]
    with _new_folder(output):
        if architecture in NGRAM_MODELS:
            given["smoothing"] = architecture.replace("-", "_")
            model: LanguageModel = _call(seqlm.fit_ngram, contents, **given)
        else:
            if "val" in given:
                given["val"] = _share_or_text(given["val"])
            model = _call(seqlm.fit_network, contents, architecture, progress=not quiet, **given)
        model.save(output)
    click.echo(f"{output}: {model.name}; seqlm.open({str(output)!r}) reads it", err=True)


@contextmanager
def _new_folder(folder: Path) -> Iterator[None]:
    """Make an empty folder before the work whose result goes there: it may be impossible. Without a
    result a folder that is new is removed."""
    with writing(folder):
        is_new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        if is_new:
            with suppress(OSError):
                folder.rmdir()


def _call(function: Any, *args: Any, **options: Any) -> Any:
    """Call a public function. An option that it does not have raises ParamsError."""
    try:
        return function(*args, **options)
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        name = str(error).split("'")[1]
        option = f"--{name.replace('_', '-')}"
        raise ParamsError(f"{option} has no effect on this kind of model: leave it out") from error


def _setting(text: str) -> tuple[str, Any]:
    """The name and the value, as YAML, of ``NAME=VALUE``."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ParamsError(f"--set {text}: write NAME=VALUE")
    try:
        return name, YAML(typ="safe", pure=True).load(value)
    except YAMLError as error:
        raise ParamsError(f"--set {text}: the value is not YAML") from error


def _share_or_text(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return _read(Path(value))


def _read(path: Path) -> str:
    """The text of a UTF-8 file, plain or packed with gzip, bzip2 or xz; the path ``-`` is standard
    input.

    Raises DataError if it cannot be read or decoded.
    """
    from seqlm.preprocess.cleaning import decode_raw

    name = _text_name(path)
    if path == _STDIN:
        content = sys.stdin.buffer.read()
    else:
        require_own_file(path, name)
        with open_unpacked(path, name) as file:
            content = file.read()
    if not content:
        raise DataError(f"{name}: empty: use another text")
    return decode_raw(content, name).decode()


def _text_name(path: Path) -> str:
    return "standard input" if path == _STDIN else shown(path)


_named = click.option("--name", "names", multiple=True, help="Model of the folder; repeatable.")


@main.command()
@click.argument("model", type=_PATH)
@click.argument("text", type=_PATH, default="-")
@click.option("--by", type=click.Choice(["token", "word"]), help="A CSV row for each.")
@click.option("--page", type=click.Path(path_type=Path, dir_okay=False), help="Write a page.")
@_named
def score(model: Path, text: Path, by: str | None, page: Path | None, names: Sequence[str]) -> None:
    """Score TEXT: print totals, or the surprisal of each word or token as CSV.

    Example: seqlm score my-lstm other.txt --by word > surprisals.csv
    """
    if by is not None and page is not None:
        raise ParamsError("--page has no effect with --by: leave one of them out")
    models, content = open_models(model, names), _read(text)
    if by is not None:
        _write_surprisals(models, content, by)
        return
    scored, remarks = {}, []
    for one in models:
        scored[one.name] = one.score_text(content)
        score = scored[one.name].score(f"{one.name}: {_text_name(text)}", content)
        click.echo(f"{one.name}: {_describe(score, one.vocab.kind)}")
        remarks += [f"{one.name}: {remark}" for remark in score.remarks]
    click.echo("\n".join(remarks), nl=bool(remarks))
    if page is not None:
        _write_page(page, Path(_text_name(text)).name, scored, remarks)


def _describe(score: "Score", kind: str) -> str:
    """A score of a model over a kind of token as one line."""
    perplexity, known, bits = (
        "infinite" if math.isinf(value) else f"{value:.3f}"
        for value in (score.perplexity, score.perplexity_known, score.bits_per_character)
    )
    without = f" ({known} without unknown ones)" if 0 < score.unknown_share < 1 else ""
    return (
        f"perplexity {perplexity} per {kind}{without}, {bits} bits per character, "
        f"{count_noun(score.tokens, 'token')}, {score.unknown_share:.1%} of them unknown"
    )


def _write_surprisals(models: "Sequence[LanguageModel]", text: str, by: Any) -> None:
    import pandas as pd

    tables = {model.name: model.surprisals(text, by=by) for model in models}
    table = pd.concat(tables, names=["model"]).reset_index("model")
    if len(tables) == 1:
        table = table.drop(columns="model")
    table.to_csv(sys.stdout, index=False, float_format="%.9g", lineterminator="\n")


def _write_page(page: Path, name: str, scored: Any, remarks: Sequence[str]) -> None:
    with needs_extra("pipeline", "a page"):
        from seqlm.pipeline.report.page import build_surprisal_page
        from seqlm.pipeline.score.excerpts import MAX_SHOWN_CHARS, page_content

    content = {model: page_content(surprisals) for model, surprisals in scored.items()}
    length = max(len(surprisals.encoded.text) for surprisals in scored.values())
    if length > MAX_SHOWN_CHARS:
        part = f"this page shows the first {MAX_SHOWN_CHARS:,} of {length:,} characters"
        remarks = [*remarks, part]
    write_text(page, build_surprisal_page(name, content, remarks))
    click.echo(f"the page: {page}")


@main.command()
@click.argument("model", type=_PATH)
@click.argument("prefixes", nargs=-1)
@click.option("--num-preds", type=int, default=100, help="Tokens to generate.")
@click.option("--temperature", type=float, default=1.0, help="0: always the most likely token.")
@click.option("--top-k", type=int, help="Only the k most likely tokens.")
@click.option("--top-p", type=float, help="Only the most likely tokens with this probability.")
@click.option("--seed", type=int, default=0, help="Seed of the random numbers.")
@_named
def generate(model: Path, prefixes: Sequence[str], names: Sequence[str], **options: Any) -> None:
    """Continue PREFIXES, each in a line of its own.

    Example: seqlm generate my-lstm "The " --num-preds 200 --seed 1
    """
    models = open_models(model, names)
    for one in models:
        for prefix in prefixes or [""]:
            title = f"{one.name}: " if len(models) > 1 else ""
            click.echo(f"{title}{prefix}{one.generate(prefix, **options)}")


@main.command()
@click.argument("folder", type=_PATH)
@click.option("--name", "--model", "names", multiple=True, help="Only this model; repeatable.")
@click.option("--root", type=_PATH, default=".", help="The run's folder.")
def export(folder: Path, names: Sequence[str], root: Path) -> None:
    """Write models of a finished run to a new FOLDER that needs no pipeline.

    Example: seqlm export my-models --name lstm
    """
    from seqlm.models.saving import save

    models = seqlm.open(root)
    num_files = save(folder, {name: models[name].write for name in names or models})
    click.echo(f"{folder}: {num_files} files; seqlm.open({str(folder)!r}) reads them")


@main.command()
@click.argument("model", type=_PATH)
@click.argument("file", type=_PATH)
@_named
def arpa(model: Path, file: Path, names: Sequence[str]) -> None:
    """Write a Kneser-Ney model to an ARPA FILE, packed if its name ends in .gz.

    Example: seqlm arpa my-model my-model.arpa.gz
    """
    (chosen,) = open_models(model, names, at_most=1)
    to_arpa = getattr(chosen, "to_arpa", None)
    if to_arpa is None:
        raise ParamsError(f"{chosen.name}: only Kneser-Ney models have the form of an ARPA file")
    to_arpa(file)
    click.echo(f"{file}: {chosen.name}")


def open_models(
    path: Path, names: Sequence[str] = (), at_most: float = math.inf
) -> "list[LanguageModel]":
    """The models of a folder or an ARPA file; ``names`` chooses if a folder has several.

    Raises ParamsError if there are several and none is named, or more than ``at_most``.
    """
    if path.is_file():
        if names:
            raise ParamsError(f"{path}: an ARPA file has one model: leave out --name")
        return [seqlm.open_arpa(path)]
    models = seqlm.open(path)
    chosen = list(names) or models.saved
    if len(chosen) > at_most or (not names and len(chosen) > 1):
        listed = ", ".join(models)
        raise ParamsError(f"{path}: holds several models: choose one with --name: {listed}")
    return [models[name] for name in chosen]


if __name__ == "__main__":
    main()
