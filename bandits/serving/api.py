"""What a service is asked and what it answers, and the description of both: ``/openapi.json``."""

from __future__ import annotations

from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, JsonValue, create_model

from bandits import __version__

from .service import Answer

MAX_BODY = 256 * 1024
MAX_CANDIDATES = 10_000
_NAME = 200
_REFUSED = {
    401: "The token is missing or wrong",
    404: "There was no such decision",
    413: "The body is too large",
    415: "The body is not application/json",
    422: "The body does not fit this description, or not the policy that serves",
    503: "The event log cannot be reached",
}


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class DecideBody(_Body):
    """The body of ``POST /decide``."""

    event_id: str | None = Field(None, min_length=1, max_length=_NAME)
    user: str | None = Field(None, min_length=1, max_length=_NAME)
    context: dict[str, JsonValue] | list[JsonValue] | None = None
    candidates: list[str | int] | None = Field(None, min_length=1, max_length=MAX_CANDIDATES)
    consent: bool = True


class RewardBody(_Body):
    """The body of ``POST /reward``."""

    event_id: str = Field(min_length=1, max_length=_NAME)
    reward: float = Field(strict=False)
    reward_id: str | None = Field(None, min_length=1, max_length=_NAME)


_FIELDS: dict[str, Any] = {name: (kind, ...) for name, kind in get_type_hints(Answer).items()}
DecideAnswer: type[BaseModel] = create_model("DecideAnswer", **_FIELDS)


class RewardAnswer(BaseModel):
    """Whether the reward is learned, now or at the end of its window."""

    learned: bool


class HealthAnswer(BaseModel):
    """The state of the service; the latest alarms of its monitors, and their lag, do not make it
    unhealthy."""

    healthy: bool
    problems: list[str]
    alarms: list[str]
    loss_window_seconds: float
    waiting_events: int
    uptime_seconds: float


class VersionAnswer(BaseModel):
    """Versions that serve, and the share of the challenger."""

    code: str
    champion: int | None
    challenger: int | None
    previous: int | None
    share: float


class ExplainAnswer(BaseModel):
    """What the log holds of a decision, and the scores that its policy would give now."""

    decision: dict[str, JsonValue]
    rewards: list[float]
    scores_now: dict[str, float | None] | None = None


class Refusal(BaseModel):
    """Why a request is refused, in one sentence."""

    error: str


def openapi(*, token: bool) -> dict[str, Any]:
    """Return the description of the addresses in the format OpenAPI 3.1.

    Parameters
    ----------
    token : bool
        Whether requests must carry one.
    """
    models: dict[str, Any] = {}

    def schema(model: type[BaseModel]) -> dict[str, str]:
        found = model.model_json_schema(ref_template="#/components/schemas/{model}")
        models.update(found.pop("$defs", {}))
        models[model.__name__] = found
        return {"$ref": f"#/components/schemas/{model.__name__}"}

    def content(model: type[BaseModel]) -> dict[str, Any]:
        return {"application/json": {"schema": schema(model)}}

    def operation(
        summary: str, answer: type[BaseModel] | None, *refused: int, **more: Any
    ) -> dict[str, Any]:
        found = content(answer) if answer else {"text/plain": {"schema": {"type": "string"}}}
        statuses = {200: {"description": summary, "content": found}}
        for status in (*refused, *((401,) if token else ())):
            statuses[status] = {"description": _REFUSED[status], "content": content(Refusal)}
        return {
            "summary": summary,
            "responses": {str(status): about for status, about in statuses.items()},
            **more,
        }

    def asked(model: type[BaseModel]) -> dict[str, Any]:
        return {"requestBody": {"required": True, "content": content(model)}}

    health = operation("What went wrong in the last minute", HealthAnswer)
    health["responses"]["503"] = {"description": "Not well", "content": content(HealthAnswer)}
    name = {
        "name": "event_id",
        "in": "path",
        "required": True,
        "schema": {"type": "string", "minLength": 1, "maxLength": _NAME},
    }
    bad = (413, 415, 422, 503)
    paths = {
        "/decide": {"post": operation("Decide", DecideAnswer, *bad, **asked(DecideBody))},
        "/reward": {"post": operation("Learn", RewardAnswer, 404, *bad, **asked(RewardBody))},
        "/health": {"get": health},
        "/metrics": {"get": operation("Numbers in the text format of Prometheus", None)},
        "/version": {"get": operation("Versions that serve", VersionAnswer)},
        "/explain/{event_id}": {
            "get": operation("Explain a decision", ExplainAnswer, 404, 422, 503, parameters=[name])
        },
    }
    described: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "Bandit Playground: a service", "version": __version__},
        "paths": paths,
        "components": {"schemas": models},
    }
    if token:
        described["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        described["security"] = [{"token": []}]
    return described
