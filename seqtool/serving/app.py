"""The application: which address does what."""

from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from seqtool.serving import translating
from seqtool.serving.errors import INTERNAL, ApiError
from seqtool.serving.fields import read_fields
from seqtool.serving.models import ServedModels, language_name
from seqtool.serving.settings import ServeSettings

PAGE = files("seqtool.serving") / "page"
TITLES = {404: "Not Found", 405: "Method Not Allowed"}
SENTENCES = {
    404: "The requested URL was not found on the server. If you entered the URL manually please check your spelling "
    "and try again.",
    405: "The method is not allowed for the requested URL.",
}


class Api:
    """Answers requests."""

    def __init__(self, models: ServedModels, settings: ServeSettings) -> None:
        self.models = models
        self.settings = settings

    async def languages(self, request: Request) -> Response:
        return JSONResponse(
            [
                {"code": code, "name": language_name(code), "targets": self.models.targets(code)}
                for code in self.models.codes
            ]
        )

    async def frontend_settings(self, request: Request) -> Response:
        source, target = next(iter(self.models.folders))
        return JSONResponse(
            {
                "apiKeys": self.settings.api_keys is not None,
                "charLimit": self.settings.max_chars or -1,
                "filesTranslation": True,
                "frontendTimeout": 500,
                "keyRequired": self.settings.api_keys is not None,
                "language": {
                    "source": {"code": source, "name": language_name(source)},
                    "target": {"code": target, "name": language_name(target)},
                },
                "suggestions": False,
                "supportedFilesFormat": [".txt", ".html", ".srt"],
            }
        )

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def translate(self, request: Request) -> Response:
        fields = await read_fields(request, self.settings)
        wish = translating.read_wish(fields, self.settings)
        model = translating.find_model(self.models, wish.source, wish.target)
        translating.check_format(wish.format)
        if model is None:
            found = [[text] for text in wish.texts]
        else:
            found = await translating.translate_texts(
                model, wish.texts, wish.format, wish.n_alternatives, request.client.host if request.client else ""
            )
        return JSONResponse(translating.answer(wish, found, None))

    async def page(self, request: Request) -> Response:
        return self._packaged("index.html")

    async def page_file(self, request: Request) -> Response:
        return self._packaged(request.path_params["name"])

    def _packaged(self, name: str) -> Response:
        file = PAGE / name
        if "/" in name or "\0" in name or name.startswith(".") or not file.is_file():
            raise HTTPException(404)
        return FileResponse(str(file))


def make_app(models: ServedModels, settings: ServeSettings) -> Starlette:
    """Return the ASGI application."""
    api = Api(models, settings)
    return Starlette(
        routes=[
            Route("/", api.page),
            Route("/page/{name}", api.page_file),
            Route("/languages", api.languages),
            Route("/frontend/settings", api.frontend_settings),
            Route("/health", api.health),
            Route("/translate", api.translate, methods=["POST"]),
        ],
        exception_handlers={ApiError: answer_error, HTTPException: answer_http_error, 500: answer_bug},
    )


async def answer_error(request: Request, error: Any) -> Response:
    return JSONResponse({"error": error.message}, error.status, error.headers)


async def answer_http_error(request: Request, error: Any) -> Response:
    title = TITLES.get(error.status_code, error.detail)
    sentence = SENTENCES.get(error.status_code, error.detail)
    page = f"<!doctype html>\n<html lang=en>\n<title>{error.status_code} {title}</title>\n<h1>{title}</h1>\n"
    return HTMLResponse(f"{page}<p>{sentence}</p>\n", error.status_code, error.headers)


async def answer_bug(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": INTERNAL}, 500)
