"""The models that are served, by their direction; a folder that was replaced is opened anew while requests go on."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seqtool.errors import SeqtoolError
from seqtool.run_directory import RunDir
from seqtool.serving.batcher import Batcher
from seqtool.serving.metrics import Metrics
from seqtool.serving.settings import ServeSettings
from seqtool.translation.engines.interface import SearchOptions
from seqtool.translation.engines.settings import EngineSettings
from seqtool.translation.export.languages import NAMES, known_codes, split_pair
from seqtool.translation.translator import Translator

Direction = tuple[str, str]  # codes of source and target


def find_directions(models: Sequence[Path], named: Sequence[str]) -> dict[Direction, Path]:
    """Return the folder for each direction: languages are those that a run knows, or as in en-de=DIR."""
    folders: dict[Direction, Path] = {}
    for text in named:
        codes, _, place = text.partition("=")
        if not place:
            raise SeqtoolError(f"`name` {text}: write the languages and the model's folder, as in en-de=DIR")
        _add(folders, split_pair(codes, "`name`", "en-de=DIR"), Path(place))
    known_folders = {folder.resolve() for folder in folders.values()}
    for folder in models:
        if folder.resolve() in known_folders:  # its languages are given by name
            continue
        pair = known_codes(RunDir(folder).require_files())
        if pair is None:
            raise SeqtoolError(f"{folder}: its languages are not known; give them with `name`, as in en-de={folder}")
        _add(folders, pair, folder)
    if not folders:
        raise SeqtoolError("no model is given; name a run directory with `model`")
    return folders


def _add(folders: dict[Direction, Path], pair: Direction, folder: Path) -> None:
    if pair in folders:
        raise SeqtoolError(
            f"{folders[pair]} and {folder} both translate {'-'.join(pair)}; leave out one of them, or give its "
            "languages with `name`"
        )
    folders[pair] = folder


@dataclass(eq=False)
class ServedModel:
    """A model that is open, with its queue."""

    folder: Path
    identity: str  # of its files
    translator: Translator
    batcher: Batcher
    n_users: int = field(default=0)
    _options: dict[Any, SearchOptions] = field(default_factory=dict)

    def options(self, n_best: int, **changes: Any) -> SearchOptions:
        """Return the model's search options, with a beam that is wide enough."""
        key = (n_best, *changes.items())
        if key not in self._options:
            beam = self.translator.make_options().beam
            wider = n_best if n_best > beam else None
            self._options[key] = self.translator.make_options(n_best=n_best, beam=wider, **changes)
        return self._options[key]

    @contextmanager
    def in_use(self) -> Iterator["ServedModel"]:
        """Keep the model open for a request."""
        self.n_users += 1
        try:
            yield self
        finally:
            self.n_users -= 1

    def close(self) -> None:
        """Finish what waits, and free the memory."""
        self.batcher.close()
        self.translator.close()


class ServedModels:
    """All models that are served."""

    def __init__(
        self,
        folders: Mapping[Direction, Path],
        engine: EngineSettings,
        settings: ServeSettings,
        metrics: Metrics,
        notify: Callable[[str], None],
    ) -> None:
        self.folders = dict(folders)
        self._engine, self._settings, self._metrics, self._notify = engine, settings, metrics, notify
        self._models: dict[Direction, ServedModel] = {}
        self._reloading = asyncio.Lock()

    def open(self) -> None:
        """Open all models."""
        for direction, folder in self.folders.items():
            self._models[direction] = self._open(folder)

    def _open(self, folder: Path) -> ServedModel:
        translator = Translator.with_engine(
            [folder], self._engine, cache_bytes=self._settings.cache_bytes // len(self.folders), notify=self._notify
        )
        translator.engine_for(translator.make_options())
        settings = self._settings
        batcher = Batcher(translator, self._metrics, max_queue=settings.max_queue, wait=settings.batch_wait)
        return ServedModel(folder, identify(folder), translator, batcher)

    def find(self, source: str, target: str) -> ServedModel | None:
        """Return the model for a direction."""
        return self._models.get((source, target))

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

    @property
    def codes(self) -> list[str]:
        """The codes of all languages, sources first."""
        return list(dict.fromkeys([*(source for source, _ in self.folders), *(target for _, target in self.folders)]))

    def targets(self, source: str) -> list[str]:
        """Return what a language can be translated to; into itself it always can, unchanged."""
        return sorted({source, *(pair[1] for pair in self.folders if pair[0] == source)})

    async def reload(self) -> None:
        """Open the models anew whose files changed; requests that were begun end with the former."""
        async with self._reloading:
            for direction, model in list(self._models.items()):
                try:
                    if await asyncio.to_thread(identify, model.folder) == model.identity:
                        continue
                    fresh = await asyncio.to_thread(self._open, model.folder)
                except (SeqtoolError, OSError) as error:
                    self._notify(f"{model.folder} cannot be opened, so its former model is kept: {error}")
                    continue
                self._models[direction] = fresh
                self._notify(f"{model.folder}: opened anew")
                while model.n_users:
                    await asyncio.sleep(0.05)
                await asyncio.to_thread(model.close)

    def close(self) -> None:
        """Close all models."""
        for model in self._models.values():
            model.close()


def identify(folder: Path) -> str:
    """Return what changes when a model's files do."""
    run = RunDir(folder)
    record = [*run.model_files, run.manifest, *sorted(run.ctranslate2.glob("*"))]
    return repr([(file.name, (found := file.stat()).st_ino, found.st_size, found.st_mtime_ns) for file in record])


def language_name(code: str) -> str:
    """Return a language's name, or its code if it has none here."""
    return NAMES.get(code, code)
