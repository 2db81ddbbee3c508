"""The application: which address does what."""

import asyncio
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from seqtool.errors import SeqtoolError
from seqtool.serving import translating
from seqtool.serving.answers import Json, answer_bug, answer_error, answer_http_error
from seqtool.serving.detection import Candidate, Detector
from seqtool.serving.downloads import Downloads
from seqtool.serving.errors import NOT_UNDERSTOOD, ApiError, bad_request
from seqtool.serving.fields import BodyReader, Fields, read_fields
from seqtool.serving.limits import ApiKeys, RateLimit
from seqtool.serving.metrics import Metrics
from seqtool.serving.models import ServedModels, language_name
from seqtool.serving.openapi import make_spec
from seqtool.serving.settings import ServeSettings
from seqtool.translation.documents.formats import open_document

PAGE = {file.name: str(file) for file in (files("seqtool.serving") / "page").iterdir()}
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
FILE_FORMATS = {".txt": "text", ".html": "html", ".srt": "srt"}


class Api:
    """Answers requests."""

    def __init__(
        self,
        models: ServedModels,
        settings: ServeSettings,
        *,
        metrics: Metrics,
        downloads: Downloads,
        rate: RateLimit,
        keys: ApiKeys | None,
    ) -> None:
        self.models, self.settings, self.metrics, self.downloads = models, settings, metrics, downloads
        self.rate, self.keys = rate, keys
        self.bodies = BodyReader(settings)
        self.detector = Detector(models.codes)

    # What every request for a translation passes

    async def _read(self, request: Request) -> tuple[Fields, str]:
        """Return the fields of a request whose client may ask, and the client's name."""
        fields = await read_fields(request, self.bodies)
        client = request.client.host if request.client else ""
        if self.keys is not None:
            key = fields.text("api_key") or bearer(request)
            self.keys.check(key)
            client = f"key {key}"
        self.rate.check(client)
        return fields, client

    def _note(self, request: Request, texts: list[str]) -> None:
        n_chars = sum(map(len, texts))
        self.metrics.characters.inc(n_chars)
        notes: dict[str, Any] = request.scope["seqtool"]
        notes["chars"] = n_chars
        if self.settings.log_texts:
            notes["q"] = texts

    # LibreTranslate's addresses

    async def languages(self, request: Request) -> Response:
        """GET /languages."""
        return Json(
            [
                {"code": code, "name": language_name(code), "targets": self.models.targets(code)}
                for code in self.models.codes
            ]
        )

    async def frontend_settings(self, request: Request) -> Response:
        """GET /frontend/settings."""
        target = next(iter(self.models.folders))[1]
        return Json(
            {
                "apiKeys": self.keys is not None,
                "charLimit": self.settings.max_chars or -1,
                "filesTranslation": True,
                "frontendTimeout": 500,
                "keyRequired": self.keys is not None,
                "language": {
                    "source": {"code": "auto", "name": "Auto Detect"},
                    "target": {"code": target, "name": language_name(target)},
                },
                "suggestions": False,
                "supportedFilesFormat": list(FILE_FORMATS),
            }
        )

    async def health(self, request: Request) -> Response:
        """GET /health."""
        return Json({"status": "ok"})

    async def translate(self, request: Request) -> Response:
        """POST /translate."""
        fields, client = await self._read(request)
        wish = translating.read_wish(fields, self.settings)
        sources = await self._find_sources(wish)
        translating.check_languages(self.models, [source.code for source in sources], wish.target)
        translating.check_format(wish.format)
        self._note(request, wish.texts)
        found = await self._translate(wish, sources, client)
        if self.settings.log_texts:
            request.scope["seqtool"]["translations"] = [texts[0] for texts in found]
        return Json(translating.answer(wish, found, sources if wish.source == translating.AUTO else None))

    async def _find_sources(self, wish: translating.Wish) -> list[Candidate]:
        if wish.source != translating.AUTO:
            return [Candidate(wish.source, 100.0)] * len(wish.texts)
        return await asyncio.to_thread(self.detector.detect_each, wish.texts)

    async def _translate(self, wish: translating.Wish, sources: list[Candidate], client: str) -> list[list[str]]:
        """Return each text's translation and its alternatives; the texts of one language are translated together."""
        found = [[text] for text in wish.texts]  # in the target language, or nothing to translate
        for source in {candidate.code for candidate in sources} - {wish.target}:
            model = self.models.find(source, wish.target)
            assert model is not None
            rows = [row for row, candidate in enumerate(sources) if candidate.code == source]
            rows = [row for row in rows if translating.has_words(wish.texts[row])]
            texts = [wish.texts[row] for row in rows]
            done = await translating.translate_texts(model, wish.format, texts, wish.n_alternatives + 1, client)
            for row, ranked in zip(rows, done, strict=True):
                found[row] = ranked
        return found

    async def detect(self, request: Request) -> Response:
        """POST /detect."""
        fields, _ = await self._read(request)
        texts = translating.read_texts(fields)
        translating.check_size(texts, isinstance(fields.values["q"], list), self.settings)
        self._note(request, texts)
        candidates = await asyncio.to_thread(self.detector.detect, texts)
        return Json([candidate.to_dict() for candidate in candidates])

    async def suggest(self, request: Request) -> Response:
        """POST /suggest, which takes better translations from users elsewhere."""
        await self.bodies.read(request)
        raise ApiError(403, "Suggestions are disabled on this server.")

    async def translate_file(self, request: Request) -> Response:
        """POST /translate_file."""
        fields, client = await self._read(request)
        file = fields.files.get("file")
        if file is None:
            raise ApiError(400, NOT_UNDERSTOOD)
        for name in ("source", "target"):
            if not fields.text(name):
                raise bad_request(f"missing {name} parameter")
        if not file.name:
            raise bad_request("empty file")
        format = FILE_FORMATS.get(file.name[file.name.rfind(".") :].lower() if "." in file.name else "")
        if format is None:
            raise bad_request("file format not supported")
        try:
            text = file.content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise bad_request("the file is not UTF-8; save it as UTF-8 and send it again") from None
        content = await self._translate_file(request, fields, format, text, client)
        name = await asyncio.to_thread(self.downloads.add, file.name, fields.text("target"), content)
        return Json({"translatedFileUrl": str(request.url_for("download_file", name=name))})

    async def _translate_file(self, request: Request, fields: Fields, format: str, text: str, client: str) -> str:
        source, target = fields.text("source"), fields.text("target")
        try:
            document = await asyncio.to_thread(open_document, format, text)
        except SeqtoolError as error:
            raise bad_request(str(error)) from None
        if source == translating.AUTO:
            sample = "\n".join(document.texts)[:5000]
            source = (await asyncio.to_thread(self.detector.detect, [sample]))[0].code
        translating.check_languages(self.models, [source], target)
        self._note(request, document.texts)
        if source == target:
            return text
        model = self.models.find(source, target)
        assert model is not None
        [[content]] = await translating.translate_documents(model, format, [document], 1, client)
        return content

    async def download_file(self, request: Request) -> Response:
        """GET /download_file/NAME."""
        name = request.path_params["name"]
        path = self.downloads.find(name)
        if path is None:
            raise HTTPException(404)
        return FileResponse(path, media_type="application/octet-stream", filename=name.partition(".")[2])

    # Addresses of our own

    async def details(self, request: Request) -> Response:
        """POST /seqtool/translate: what `seqtool translate --json` prints, for each line of each text."""
        fields, client = await self._read(request)
        wish = translating.read_wish(fields, self.settings)
        n_best = translating.read_number(fields, "n_best", 1)
        if not 1 <= n_best <= self.settings.max_alternatives + 1:
            raise bad_request(f"n_best parameter must be from 1 to {self.settings.max_alternatives + 1}")
        with_scores = fields.values.get("token_scores") in (True, "true", "1")
        sources = await self._find_sources(wish)
        translating.check_languages(self.models, [source.code for source in sources], wish.target)
        self._note(request, wish.texts)
        details = [
            await self._detail(text, source.code, wish.target, n_best, with_scores, client)
            for text, source in zip(wish.texts, sources, strict=True)
        ]
        body: dict[str, Any] = {"texts": details}
        if wish.source == translating.AUTO:
            body["detectedLanguage"] = [candidate.to_dict() for candidate in sources]
        return Json(body)

    async def _detail(
        self, text: str, source: str, target: str, n_best: int, with_scores: bool, client: str
    ) -> dict[str, Any]:
        lines = text.split("\n")
        model = self.models.find(source, target)
        if model is None:  # the languages are the same
            return {"text": text, "lines": [{"text": line} for line in lines]}
        with model.in_use():
            options = model.options(n_best, alignment=True, token_scores=with_scores)
            done = await model.batcher.translate(lines, options, client)
        return {"text": "\n".join(line.text for line in done), "lines": [line.to_dict(n_best) for line in done]}

    async def metrics_page(self, request: Request) -> Response:
        """GET /metrics."""
        content, kind = await asyncio.to_thread(
            self.metrics.text, lambda: sum(len(model.batcher) for model in self.models)
        )
        return Response(content, media_type=kind)

    async def spec(self, request: Request) -> Response:
        """GET /spec."""
        return Json(make_spec(self.models, self.settings))

    async def page(self, request: Request) -> Response:
        """GET /."""
        return self._packaged("index.html")

    async def page_file(self, request: Request) -> Response:
        """GET /page/NAME."""
        return self._packaged(request.path_params["name"])

    def _packaged(self, name: str) -> Response:
        if name not in PAGE:
            raise HTTPException(404)
        return FileResponse(PAGE[name], headers={"content-security-policy": PAGE_POLICY, "cache-control": "no-cache"})


def bearer(request: Request) -> str:
    """Return the key of an Authorization header."""
    kind, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if kind.lower() == "bearer" else ""


def make_app(api: Api) -> Starlette:
    """Return the application without what is around it."""
    routes = [
        Route("/translate", api.translate, methods=["POST"]),
        Route("/", api.page),
        Route("/page/{name}", api.page_file),
        Route("/languages", api.languages),
        Route("/frontend/settings", api.frontend_settings),
        Route("/health", api.health),
        Route("/spec", api.spec),
        Route("/metrics", api.metrics_page),
        Route("/download_file/{name}", api.download_file, name="download_file"),
        Route("/detect", api.detect, methods=["POST"]),
        Route("/suggest", api.suggest, methods=["POST"]),
        Route("/translate_file", api.translate_file, methods=["POST"]),
        Route("/seqtool/translate", api.details, methods=["POST"]),
    ]
    handlers: Any = {ApiError: answer_error, HTTPException: answer_http_error, Exception: answer_bug}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False  # LibreTranslate answers 404, and a redirection would trust the host's name
    return app
