"""Options that many commands have in common, added to a command's own."""

import importlib
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any

import typer

Modules = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="PACKAGE.MODULE",
        help="Import a module of yours first: its metrics, methods, views, shifts; repeatable.",
    ),
]


def extend_options(
    extended: Callable[..., Any], run: Callable[..., Any], added: Mapping[str, tuple[Any, Any]]
) -> Callable[..., Any]:
    """The extended command with the options of `run` and those added, (type, default) by name."""
    own = signature(run)
    extended.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[
            *own.parameters.values(),
            *(
                Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
                for name, (kind, default) in added.items()
            ),
        ]
    )
    kinds = {name: kind for name, (kind, _) in added.items()}
    extended.__annotations__ = {**run.__annotations__, **kinds}
    return extended


def add_import_option(run: Callable[..., Any]) -> Callable[..., Any]:
    """The command with `--import`, after which it sees the records of the user's own modules."""

    @wraps(run)
    def import_and_run(*, modules: list[str] | None, **options: Any) -> Any:
        for name in modules or ():
            import_records(name)
        return run(**options)

    return extend_options(import_and_run, run, {"modules": (Modules, None)})


def import_records(name: str) -> None:
    """Imports a module, also from the working folder, and registers its records."""
    from rightly.classifiers.sources import add_working_folder
    from rightly.registry import register_module

    try:
        with add_working_folder():
            module = importlib.import_module(name)
    except Exception as error:  # it is somebody else's code
        raise ValueError(
            f"--import must name a module that can be imported, got {name!r}: "
            f"{type(error).__name__}: {error}; install it, or run in the folder that it is in"
        ) from error
    register_module(module)
