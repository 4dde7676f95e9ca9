"""The project's own Python files, parsed; what they import, and what they name."""

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("shared/fencepost", "cli/fencepost_cli", "functions")


@dataclass(frozen=True)
class Source:
    """One file. `module` is its dotted name (functions: by their folder)."""

    path: Path
    module: str
    tree: ast.Module

    @property
    def shown(self) -> str:
        return str(self.path.relative_to(ROOT))


@dataclass(frozen=True)
class Import:
    module: str
    at_import: bool  # at module level: it happens when the file is imported
    for_types: bool  # below TYPE_CHECKING: it never happens


@cache
def product() -> tuple[Source, ...]:
    """Every file that ships."""
    files = [file for folder in PRODUCT for file in sorted((ROOT / folder).rglob("*.py"))]
    return tuple(Source(file, _module(file), ast.parse(file.read_bytes())) for file in files)


def _module(file: Path) -> str:
    relative = file.relative_to(ROOT).with_suffix("")
    parts = relative.parts if relative.parts[0] == "functions" else relative.parts[1:]
    return ".".join(part for part in parts if part != "__init__")


def imports(source: Source) -> Iterator[Import]:
    yield from _imports(source.tree, at_import=True, for_types=False)


def _imports(node: ast.AST, *, at_import: bool, for_types: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        inside = at_import and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        typed = for_types or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test))
        for module in _imported(child):
            yield Import(module, at_import, for_types)
        yield from _imports(child, at_import=inside, for_types=typed)


def _imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [name.name for name in names]
        case ast.ImportFrom(module=str() as module, names=names, level=0):
            return [f"{module}.{name.name}" for name in names]
        case ast.ImportFrom():
            return ["a relative import"]
    return []


def functions_of(source: Source) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def names_in(source: Source) -> Iterator[str]:
    """The names the file gives: its own, and of classes, functions, arguments, attributes and variables."""
    yield from source.path.relative_to(ROOT).with_suffix("").parts[1:]
    for node in ast.walk(source.tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield name
            case ast.AsyncFunctionDef(name=name):
                yield name
            case ast.arg(arg=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


@cache
def tracked() -> tuple[Path, ...]:
    """Every text file of the project: what git knows, or everything but what was built where there is no git."""
    try:
        told = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
        ).stdout
        files = [ROOT / name for name in told.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        built = {".venv", ".cache", ".aws-sam", ".git", "__pycache__"}
        files = [file for file in ROOT.rglob("*") if not built & set(file.relative_to(ROOT).parts)]
    return tuple(file for file in files if file.is_file())
