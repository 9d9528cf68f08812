"""Packages that only a part of the product needs, by the extra that installs them."""

from __future__ import annotations

from importlib import import_module

from .errors import UserError

EXTRAS = {
    "torch": ("neural", "neural agents need PyTorch"),
    "faiss": ("retrieval", "two-stage retrieval needs faiss"),
    "optuna": ("optuna", "a search by Optuna needs Optuna"),
    "distributed": ("cluster", "a sweep on a cluster needs Dask"),
    "uvicorn": ("serve", "a service needs Starlette and uvicorn"),
    "prometheus_client": ("serve", "the metrics of a service need prometheus_client"),
    "redis": ("redis", "a service on several machines needs the client of Redis"),
    "streamlit": ("app", "the app needs Streamlit"),
    "gymnasium": ("gym", "an environment of Gymnasium needs Gymnasium"),
}
"""Of each module: its extra, and what needs it."""


def require(module: str) -> None:
    """Import an optional package.

    Raises
    ------
    UserError
        It is not installed.
    """
    try:
        import_module(module)
    except ImportError:
        extra, needs = EXTRAS[module]
        raise UserError(
            f'{needs}, which is not installed: pip install "bandit-playground[{extra}]"'
        ) from None
