"""Checks a request to train before torch is loaded: a mistake is reported at once, and nothing has been removed."""

from seqtool.corpus.preparing.prepared import find_other_corpus, read_manifest
from seqtool.corpus.reading.blocks import count_pairs
from seqtool.corpus.reading.corpus import require_files
from seqtool.errors import OptionError, SeqtoolError
from seqtool.files import make_folder
from seqtool.run_directory import RunDir
from seqtool.training.data import read_valid
from seqtool.training.request import TrainRequest


def check_request(request: TrainRequest) -> None:
    """Raise for what cannot be read, written or continued; make the folder of the run, or put it right after a kill."""
    if request.start_from:
        RunDir(request.start_from).require_model()
        if request.start_from.resolve() == request.out.resolve():
            raise OptionError(f"{request.out}: `start_from` and `out` are the same folder; give `out` another one")
    run = RunDir(request.out)
    run.restore()
    if run.weights.exists() and not run.checkpoint_folders() and not request.fresh:
        raise SeqtoolError(
            f"{run.path}: holds a model, and no checkpoint to continue from; "
            "give another `out` (with `start_from` this one to fine-tune it), or `fresh=True` to start over"
        )
    if not request.starts_over:
        check_same_corpus(run, request)
    require_files((*request.corpora, *request.held_apart))
    if twice := [str(corpus) for corpus in request.also_valid if corpus == request.valid]:
        raise OptionError(f"{twice[0]}: `valid` names it twice; give each validation set once")
    for corpus in (*([request.valid] if request.valid else []), *request.also_valid):
        read_valid(corpus)
    if request.fresh:
        for corpus in (*request.corpora, *request.held_apart):
            count_pairs(corpus)
    make_folder(request.out)


def check_same_corpus(run: RunDir, request: TrainRequest) -> None:
    """Raise if a run that is under way was begun with another corpus."""
    manifest = read_manifest(run.prepared)
    if not run.checkpoint_folders() or manifest is None:
        return
    if change := find_other_corpus(manifest, request.corpora):
        raise SeqtoolError(
            f"{run.path}: the corpus is not the one that this run was begun with ({change}). Restore it to continue, "
            "give `out` for a new run (`start_from` this one to fine-tune it), or `fresh=True` to start over"
        )
